// SPDX-License-Identifier: Apache-2.0

/**
 * A store of a sealed account in a browser without its key: what can be seen without it, and how the browser gets
 * one.
 */

import { bdi, button, command, dialog, dialogHead, fill, h, toast, when } from './dom.js';
import { sentenceOf } from './model.js';
import { qrPicture } from './qr.js';
import { bytes, counted, shortKey } from './text.js';

/** How often the list is read while somebody looks. */
const readMilliseconds = 60_000;
const shownMax = 1_000;

export function lockedView(model) {
    const { identifier } = model.store;
    const name = model.storeName(identifier);
    const list = h('ul.keys.sealed', { 'aria-label': 'Keys' });
    const foot = h('div.foot', {}, h('p.quiet', {}, 'Loading…'));
    const waiting = h('p.hint');

    const read = async () => {
        let keys;
        try { keys = await model.sealedKeys(); } catch (error) {
            // What is shown stays.
            if (!list.children.length) fill(foot, h('p.quiet', {}, sentenceOf(error)));
            return;
        }
        if (model.store?.identifier !== identifier) return;
        fill(list, keys.slice(0, shownMax).map(({ key, isSealed, size, deviceID, date }) => h('li', {},
            h('span.key', {}, bdi(shortKey(key))),
            h('div.value', {}, h('i', {}, isSealed ? 'sealed' : 'not sealed yet')),
            h('span.kind', {}, bytes(size)),
            h('span.when', {}, bdi(model.deviceName(deviceID)), ' · ', when(date)))));
        const more = keys.length - shownMax;
        fill(foot, !keys.length && h('p.quiet', {}, 'This store is empty.'),
            more > 0 && h('p.hint', {}, `And ${counted(more, 'more key', 'more keys')}.`));
    };
    const drawStatus = () => {
        const count = model.status?.pendingKeys.length ?? 0;
        fill(waiting, count > 0 && `${counted(count, 'change')} in this browser ${count === 1 ? 'waits' : 'wait'} until it is unlocked.`);
    };

    const end = new AbortController();
    const { signal } = end;
    const timer = setInterval(() => { if (!document.hidden) read(); }, readMilliseconds);
    signal.addEventListener('abort', () => clearInterval(timer));
    document.addEventListener('visibilitychange', () => { if (!document.hidden) read(); }, { signal });
    model.addEventListener('status', drawStatus, { signal });
    drawStatus();
    read();

    const element = h('div.view.data', {},
        h('header.head', {}, h('h1', {}, bdi(name), name !== identifier && h('span.hint', {}, identifier)),
            h('p.status.away', { role: 'status' }, 'Locked')),
        h('div.note', {}, h('div', {}, h('p', {}, h('strong', {}, 'This account is sealed. '),
            'Only devices with its key can read the values, and this browser does not have it. Names, sizes, devices and times '
            + 'are not sealed.'), waiting),
        button('Unlock', () => unlockDialog(model), { kind: 'main' })),
        list, foot);
    return { title: name, element, dispose: () => end.abort() };
}

/** What a person reads before this page has to do with keys. */
export const trust = 'Whoever controls this server could send you a page that reads your values. A device with the app does not '
    + 'have that risk.';

/** Gives this browser the key, once the person has read whom that trusts. */
const unlockDialog = (model) => dialog('box', 'Unlock this browser', (close, element) => {
    const stop = new AbortController();
    element.addEventListener('close', () => stop.abort());
    const place = h('div.stack');
    const keeps = h('input', { type: 'checkbox' });
    const show = async () => {
        const problem = h('p.problem', { role: 'alert' });
        let code;
        try { code = await model.device.unlockCode(); } catch (error) {
            fill(place, h('p.note.bad', {}, sentenceOf(error)));
            return;
        }
        const state = h('p.waiting', { role: 'status' }, 'Waiting for the other device');
        fill(place, h('p', {}, 'On a device that can read the values, type'), command('ubiquity approve'),
            h('p.hint', {}, 'and paste this code when it asks, or scan it. In a browser that can read them, enter it under Devices, Add a device. It works for 15 minutes.'),
            qrPicture(code), h('p.code.shown.long', { 'aria-label': 'Code' }, code), state, problem);
        try {
            await model.device.unlock(code, { signal: stop.signal, isKept: keeps.checked });
            if (stop.signal.aborted) return;
            close();
            toast('This browser is unlocked.');
        } catch (error) {
            if (stop.signal.aborted) return;
            problem.textContent = sentenceOf(error);
            state.replaceWith(button('Show a new code', show));
        }
    };
    fill(place, h('p', {}, trust), h('label.line', {}, keeps, 'Keep this browser unlocked'),
        h('p.hint', {}, 'Otherwise, the key is gone when this page is closed in all tabs. A key that stays in this browser can also be taken by '
            + 'a page that the server sends later.'),
        h('footer', {}, button('Cancel', close, { autofocus: true }), button('Unlock this browser', show, { kind: 'danger' })));
    return [dialogHead('Unlock this browser', close), place];
});
