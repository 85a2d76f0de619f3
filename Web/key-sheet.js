// SPDX-License-Identifier: Apache-2.0

/** All about one key: its value with all that can be edited, and what it was. */

import { announce, bdi, button, confirm, dialog, dialogHead, field, fill, h, refill, toast, when } from './dom.js';
import { anyEditor, emptyValue, InputError } from './editor.js';
import { sentenceOf } from './model.js';
import { isSame } from './client/exact.js';
import { counted, kindName, preview, shortKey, time } from './text.js';

const versionsMax = 100;

/** Changes that can be taken back, the last one last: a store, and its values before and after. */
const taken = [];
const takenMax = 100;

/**
 * Writes what was chosen beside values that somebody has seen; asks, if they have changed since. Returns whether
 * it was written, or a sentence if that failed.
 */
export async function replace(model, store, values, seen, done) {
    const own = new Map([...seen].filter(([key]) => values.has(key)));
    if (model.store?.identifier === store && !await mayReplace(model, own)) return false;
    return change(model, store, values, done) ?? true;
}

/**
 * Writes to a store, says `done` once it is saved, and offers to take it back. Returns a sentence if the store
 * refuses it.
 */
export function change(model, store, values, done) {
    let before;
    try {
        before = model.write(values, store);
    } catch (error) { return sentenceOf(error, [...values.keys()]); }
    const one = { store, before, after: new Map([...values.keys()].map((key) => [key, model.value(key)])) };
    taken.push(one);
    if (taken.length > takenMax) taken.shift();
    model.save().then((isSaved) =>
        toast(isSaved ? done : notSaved, { name: 'Undo', act: () => takeBack(model, one) }));
    return null;
}

const notSaved = 'Your change is not saved yet: only this tab has it. Keep the tab open.';

/** Takes back the last change of the store that is shown. */
export function undo(model) {
    const one = taken.findLast(({ store }) => store === model.store?.identifier);
    if (one) takeBack(model, one);
    else toast('There is nothing to undo.');
}

async function takeBack(model, one) {
    if (!taken.includes(one)) return;
    try {
        if (model.store?.identifier === one.store && !await mayReplace(model, one.after)) return;
        model.write(one.before, one.store);
        taken.splice(taken.indexOf(one), 1);
        if (await model.save()) announce('Undone.');
        else toast(notSaved);
    } catch (error) { toast(sentenceOf(error, [...one.before.keys()])); }
}

/** Asks, if keys have other values than somebody here has seen: what comes from elsewhere is not replaced unseen. */
export function mayReplace(model, seen) {
    const changed = [...seen].filter(([key, wire]) => !isSame(model.value(key), wire)).map(([key]) => key);
    if (!changed.length) return true;
    const [key] = changed;
    const [now, author] = [model.value(key), model.author(key)];
    const name = h('strong', {}, bdi(shortKey(key)));
    const what = changed.length > 1 ? [`${counted(changed.length, 'key')} have changed meanwhile, such as `, name]
        : now ? [bdi(model.deviceName(author?.deviceID)), ' has set ', name, ' meanwhile to ', h('bdi.preview', {}, preview(now, 80))]
            : [name, ' was removed meanwhile'];
    return confirm('Replace what is newer?', h('p', {}, what, '.'), 'Replace');
}

/** @param {string | null} key Null to add one. */
export function keySheet(model, key) {
    let isUnsaved = () => false;
    return dialog('sheet', key === null ? 'Add a key' : shortKey(key), (close, element) => {
        const parts = keyParts(model, key, element, () => {
            isUnsaved = () => false;
            close();
        });
        isUnsaved = parts.isUnsaved;
        return parts.build(close);
    }, () => isUnsaved());
}

/** @param {() => void} done Closes the sheet, with everything saved. */
function keyParts(model, key, element, done) {
    const isNew = key === null;
    const store = model.store.identifier;
    let wire = isNew ? emptyValue('string') : model.value(key);
    const name = h('input', { required: true, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', dir: 'auto' });
    const place = h('div');
    const author = h('p.author');
    const problem = h('p.problem', { role: 'alert' });
    const notice = h('div.slot', { role: 'status' });
    const timeline = h('ol.timeline');
    let editor = null;
    const edit = () => {
        editor = anyEditor(wire ?? emptyValue('string'));
        fill(place, editor.element);
        fill(notice);
        problem.textContent = '';
    };
    const read = () => {
        try {
            return editor.read();
        } catch (error) {
            if (!(error instanceof InputError)) throw error;
            problem.textContent = error.message;
            return null;
        }
    };
    const isDirty = () => {
        try {
            return !isSame(editor.read(), wire ?? emptyValue('string'));
        } catch { return true; }
    };
    const describe = () => {
        const last = wire && model.author(key);
        fill(author, wire ? [kindName(wire), ' · ', last && [bdi(model.deviceName(last.deviceID)), ', ', when(last.date)]] : 'Removed');
    };
    const save = (event) => {
        event.preventDefault();
        problem.textContent = '';
        const value = read();
        if (!value) return;
        const target = isNew ? name.value : key;
        if (isNew && model.value(target)) {
            problem.textContent = 'This key exists already. Close this, and edit it in the list.';
            return;
        }
        if (!isNew && wire && isSame(value, wire)) {
            done();
            return;
        }
        const failed = change(model, store, new Map([[target, value]]), `“${shortKey(target)}” ${isNew ? 'added' : 'saved'}.`);
        if (failed) problem.textContent = failed;
        else done();
    };
    const remove = () => {
        const failed = change(model, store, new Map([[key, null]]), `“${shortKey(key)}” removed.`);
        if (failed) problem.textContent = failed;
        else done();
    };
    let asked = 0;
    const drawHistory = async () => {
        asked += 1;
        const mine = asked;
        if (!timeline.firstChild) fill(timeline, h('li.quiet', {}, 'Loading…'));
        try {
            // What waits is shown in any case.
            const versions = (await model.store.history(key, { limit: versionsMax })).filter(({ outcome }) => outcome !== 'waiting');
            if (mine !== asked) return;
            const items = [waitingItem(model, key), versionItems(model, store, key, versions)].flat().filter(Boolean);
            refill(timeline, items.length ? items : h('li.quiet', {}, 'Nothing is known yet.'));
        } catch (error) { if (mine === asked) refill(timeline, waitingItem(model, key), h('li.quiet', {}, sentenceOf(error))); }
    };
    const changed = ({ keys }) => {
        if (isNew || !keys.includes(key) || model.store?.identifier !== store) return;
        const dirty = isDirty();
        wire = model.value(key);
        describe();
        drawHistory();
        if (!dirty) edit();
        else {
            const last = model.author(key);
            fill(notice, h('div.note', {}, h('p', {}, wire ? [bdi(model.deviceName(last?.deviceID)), ' changed this meanwhile to ',
                h('bdi.preview', {}, preview(wire, 80)), '. If you save, your value replaces it.'] : 'This key was removed meanwhile.'),
            button('Take over the new value', edit)));
        }
    };
    let before = null;
    const arrived = () => {
        const now = waitsFor(model, key);
        if (before && now !== before) drawHistory();
        before = now;
    };
    const listeners = new AbortController();
    model.addEventListener('change', changed, { signal: listeners.signal });
    if (!isNew) model.addEventListener('status', arrived, { signal: listeners.signal });
    element.addEventListener('close', () => listeners.abort());

    edit();
    if (!isNew) {
        describe();
        drawHistory();
    }
    queueMicrotask(() => (isNew ? name : place.querySelector('textarea, input, .switch'))?.focus());
    const build = (close) => [
        dialogHead(isNew ? 'Add a key' : bdi(shortKey(key)), close),
        !isNew && author,
        h('form', { onsubmit: save }, isNew && field('Key', name),
            h('h3', {}, 'Value'), notice, place, problem,
            h('footer', {}, !isNew && button('Remove', remove, { symbol: 'remove', kind: 'danger' }), h('span.space'),
                h('button.button.main', {}, isNew ? 'Add' : 'Save'))),
        !isNew && [h('h3', {}, 'History'), timeline],
    ];
    return { build, isUnsaved: () => isDirty() || (isNew && name.value !== '') };
}

/** What the last change of a key waits for; null if the server has it. */
const waitsFor = (model, key) => (!model.status?.pendingKeys.includes(key) ? null
    : model.isUnsaved ? 'Not saved yet' : 'Waits to be sent');

/** The change of a key that the server does not have yet. */
function waitingItem(model, key) {
    const state = waitsFor(model, key);
    if (!state) return null;
    const wire = model.value(key);
    return h('li.waiting', {}, h('div.what', {}, 'this browser ', wire ? ['set it to ', h('bdi.preview', {}, preview(wire, 120))] : 'removed it'),
        h('div.line', {}, h('span.hint', {}, state)));
}

const outcomes = { current: 'Now', replaced: 'Replaced', lost: 'Lost to a later change', refused: 'Not taken' };

/** A gap takes the place of versions that the server has thinned out: what the key was before it is not known. */
function versionItems(model, store, key, versions) {
    const wires = versions.map(({ exact }) => exact);
    const seen = new Map([[key, model.value(key)]]);
    const restore = async (wire, done) => {
        const result = await replace(model, store, new Map([[key, wire]]), seen, done);
        if (typeof result === 'string') toast(result);
    };
    return versions.map((version, i) => {
        if (version.outcome === 'gap') return h('li.gap', {}, h('div.what', {}, h('span.hint', {}, 'Earlier versions were thinned out')));
        const isRemoval = wires[i] === null;
        const before = versions.findIndex((one, j) => j > i && (one.outcome === 'gap' || one.outcome === 'replaced'));
        const isCurrent = version.outcome === 'current';
        const canUndo = isCurrent && before >= 0 && versions[before].outcome !== 'gap';
        const isOther = !isCurrent && !isSame(wires[i], model.value(key));
        return h(`li.${version.outcome}`, {},
            h('div.what', {}, h('bdi', {}, model.deviceName(version.device)), isRemoval ? ' removed it'
                : [' set it to ', h('bdi.preview', {}, preview(wires[i], 120))]),
            h('div.line', {}, h('span.hint', {}, outcomes[version.outcome], ' · ', when(version.date)),
                canUndo && button('Undo', () => restore(wires[before], 'Undone.'), { symbol: 'undo', kind: 'small' }),
                isOther && !isRemoval && button('Restore', () => restore(wires[i], 'Restored.'), { kind: 'small' })));
    });
}
