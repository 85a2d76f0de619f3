// SPDX-License-Identifier: Apache-2.0

/** The store as it was, with what differs from now, and the way back. */

import { bdi, button, field, fill, h, icon, iconButton } from './dom.js';
import { changeItem } from './data-view.js';
import { keySheet, replace } from './key-sheet.js';
import { compareText, isSame, toWire } from './client/exact.js';
import { exactOf } from './client/values.js';
import { sentenceOf } from './model.js';
import { ago, counted, shortKey, time } from './text.js';

const shortcuts = [['10 minutes ago', 600], ['1 hour ago', 3_600], ['Yesterday', 86_400], ['A week ago', 604_800]];
const shownMax = 500;

const local = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);

export function backView(model) {
    if (!model.store) return { title: 'Go back', element: h('p.quiet', {}, 'Open a store first.') };
    const { store } = model;
    const input = h('input', { type: 'datetime-local', step: 1, required: true, value: local(new Date(Date.now() - 3_600_000)) });
    const result = h('section', { 'aria-live': 'polite', tabindex: -1 });
    let asked = 0;

    const look = async () => {
        const date = new Date(input.value);
        if (Number.isNaN(date.getTime())) return;
        asked += 1;
        const mine = asked;
        if (result.contains(document.activeElement)) result.focus();
        fill(result, h('p.quiet', {}, 'Loading…'));
        let content;
        try {
            content = differences(date, await store.valuesAt(date));
        } catch (error) { content = h('p.note.bad', {}, sentenceOf(error)); }
        if (mine === asked) fill(result, content);
    };

    const differences = (date, { values, forgottenKeys }) => {
        const unknown = new Set(forgottenKeys);
        const then = new Map([...exactOf(values)].map(([key, value]) => [key, toWire(value)]));
        const keys = [...new Set([...then.keys(), ...model.keys()])].sort(compareText)
            .filter((key) => !unknown.has(key) && !isSame(then.get(key) ?? null, model.value(key)));
        const forgotten = unknown.size > 0 && h('p.note', {}, 'The values that some keys had then are not known: ',
            [...unknown].slice(0, 10).map(shortKey).join(', '), '. They stay as they are.');
        if (!keys.length) return [forgotten, h('p.quiet', {}, 'Nothing differs from now.')];
        const chosen = new Set(keys);
        const seen = new Map(keys.map((key) => [key, model.value(key)]));
        const problem = h('p.problem', { role: 'alert' });
        const rewind = button('', async () => {
            const values = new Map([...chosen].map((key) => [key, then.get(key) ?? null]));
            const result = await replace(model, store.identifier, values, seen, `${counted(chosen.size, 'key')} set back.`);
            if (typeof result === 'string') problem.textContent = result;
            else if (result) look();
        }, { symbol: 'undo', kind: 'main' });
        const draw = () => {
            rewind.lastChild.textContent = `Set back ${counted(chosen.size, 'key')}`;
            rewind.disabled = !chosen.size;
        };
        draw();
        const item = (key) => {
            const box = h('input', { type: 'checkbox', 'aria-label': `Set back ${shortKey(key)}`, onchange: () => {
                if (box.checked) chosen.add(key);
                else chosen.delete(key);
                draw();
            } });
            box.checked = true;
            return changeItem(key, seen.get(key), then.get(key) ?? null, box,
                iconButton('history', `History of ${shortKey(key)}`, () => keySheet(model, key)));
        };
        return [forgotten, h('p', {}, `${counted(keys.length, 'key')} differ${keys.length === 1 ? 's' : ''} from `,
            h('strong', {}, time(date)), ` (${ago(date)}). Now, and then:`),
        h('ul.changes', {}, keys.slice(0, shownMax).map(item)),
        keys.length > shownMax && h('p.hint', {}, `And ${counted(keys.length - shownMax, 'more key', 'more keys')}.`),
        problem, h('div.line', {}, rewind, h('span.hint', {}, 'All at once, and you can undo it.'))];
    };

    const element = h('div.view', {},
        h('header.head', {}, h('a.crumb', { href: `#/data/${encodeURIComponent(store.identifier)}` }, icon('back'), bdi(model.storeName(store.identifier))),
            h('h1', {}, 'Go back in time')),
        h('form.card.moment', { onsubmit: (event) => {
            event.preventDefault();
            look();
        } }, field('The store as it was at', input), h('button.button', {}, 'Show'),
        h('div.line', {}, shortcuts.map(([name, seconds]) => button(name, () => {
            input.value = local(new Date(Date.now() - seconds * 1_000));
            look();
        }, { kind: 'small' })))), result);
    return { title: 'Go back', element };
}
