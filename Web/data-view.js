// SPDX-License-Identifier: Apache-2.0

/** The keys of a store, which are edited in place, and change while one looks. */

import {
    announce, bdi, button, dialog, dialogHead, field, fill, h, icon, iconButton, refill, toast, when,
} from './dom.js';
import { InputError, lineEditor, save, switchFor } from './editor.js';
import { change, keySheet, mayReplace, replace, undo } from './key-sheet.js';
import { compareText, fromWire, isSame } from './client/exact.js';
import { encode } from './client/plist.js';
import { FileError, fileBytesMax, storesOf } from './import-file.js';
import { sentenceOf } from './model.js';
import { signInAgain } from './sign-in-view.js';
import { bytes, contains, contentOf, counted, cut, kindName, kindOf, preview, shortKey, visible } from './text.js';
import { usageDialog } from './treemap.js';

/** Where a browser notes that a key alone does nothing: who speaks to it may say one by accident. */
const noSlash = 'ubiquity no slash';
/** Rows that are made at once. */
const shownMax = 100;
/** The columns that the list can be sorted by, with the order of what they show. */
const columns = [
    ['key', 'Key', () => 0],
    ['kind', 'Type', (a, b) => compareText(a.kind, b.kind)],
    ['date', 'Changed', (a, b) => b.date - a.date],
];
const announcedMax = 3;
/** How long a row shows that another device has changed it. */
const highlightMilliseconds = 3_000;

export function dataView(model, { openStore, failure }) {
    if (!model.store) {
        const [head, text] = failure ? ['The store is not open', failure]
            : ['Nothing here yet', 'As soon as an app stores something in your account, you will see it here.'];
        return { title: 'Data', element: h('div.empty', {}, icon('data'), h('h1', {}, head), h('p', {}, text),
            button('Open a store', openStore)) };
    }
    const view = new DataView(model);
    return { title: model.storeName(model.store.identifier), element: view.element, dispose: () => view.dispose() };
}

class DataView {
    constructor(model) {
        this.model = model;
        this.store = model.store.identifier;
        /** @type {Map<string, {element: HTMLElement, isEditing: boolean, isUnsaved?: () => boolean}>} */
        this.rows = new Map();
        /** The timers that end the highlights of rows. */
        this.highlights = new WeakMap();
        this.selected = new Set();
        this.shown = shownMax;
        this.sorting = { by: 'key', isBackwards: false };
        this.listeners = new AbortController();
        const { signal } = this.listeners;
        this.title = h('h1');
        this.status = h('p.status', { role: 'status' });
        this.banner = h('div.slot');
        this.usage = h('div.usage');
        this.list = h('ul.keys', { 'aria-label': 'Keys' });
        this.columns = h('div.columns', { role: 'group', 'aria-label': 'Sort' });
        this.foot = h('div.foot');
        this.tools = h('div.tools');
        this.search = h('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search keys and values',
            'aria-keyshortcuts': '/', spellcheck: 'false', oninput: () => this.drawList() });
        this.element = h('div.view.data', {},
            h('header.head', {}, this.title, this.status), this.usage, this.banner,
            this.tools, this.columns, this.list, this.foot);
        // What nobody has scrolled to is not drawn.
        this.watch = new IntersectionObserver(([{ isIntersecting }]) => { if (isIntersecting) this.showMore(); }, { rootMargin: '600px' });
        signal.addEventListener('abort', () => this.watch.disconnect());
        model.addEventListener('change', (event) => this.changed(event), { signal });
        model.addEventListener('status', () => this.drawStatus(), { signal });
        model.addEventListener('devices', () => this.drawAllRows(), { signal });
        model.addEventListener('stores', () => this.drawTitle(), { signal });
        document.addEventListener('keydown', (event) => this.pressed(event), { signal });
        window.addEventListener('beforeunload', (event) => {
            if ([...this.rows.values()].some(({ isUnsaved }) => isUnsaved?.())) event.preventDefault();
        }, { signal });
        for (const name of ['online', 'offline']) window.addEventListener(name, () => this.drawStatus(), { signal });
        for (const name of ['dragover', 'dragleave', 'drop']) this.element.addEventListener(name, (event) => this.dropped(event));
        this.drawTitle();
        this.drawTools();
        this.drawColumns();
        this.drawStatus();
        this.drawList();
    }

    dispose() { this.listeners.abort(); }

    pressed(event) {
        const isTyping = event.target.closest?.('input, textarea, select, dialog');
        const hasCommand = event.ctrlKey || event.metaKey;
        const isUndo = hasCommand && !event.shiftKey && event.key.toLowerCase() === 'z';
        if (isTyping || event.altKey || (hasCommand && !isUndo)) return;
        const row = event.target.closest?.('li[data-row]');
        const move = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
        if (isUndo) undo(this.model);
        else if (event.key === '/' && !localStorage.getItem(noSlash)) this.search.focus();
        else if (row && move) row[move]?.querySelector('.key').focus();
        else if (row && event.key === 'Delete') this.remove([row.key]);
        else return;
        event.preventDefault();
    }

    // What is around the list

    drawTitle() {
        const name = this.model.storeName(this.store);
        fill(this.title, bdi(name), name !== this.store && h('span.hint', {}, this.store));
    }

    drawStatus() {
        const { status, others } = this.model;
        if (!status) return;
        const elsewhere = [...others.values()].reduce((sum, keys) => sum + keys, 0);
        const waiting = status.pendingKeys.length + elsewhere;
        const changes = counted(waiting, 'change');
        const place = others.size === 1 ? 'in another store' : 'in other stores';
        const where = !elsewhere ? '' : elsewhere === waiting ? ` ${place}` : `, ${elsewhere.toLocaleString('en')} ${place}`;
        const [kind, text] = status.diskError !== null ? ['bad', 'This browser cannot save']
            : status.connection === 'unauthorized' || status.connection === 'signedOut' ? ['bad', 'Signed out']
                : status.connection === 'connected' || status.connection === 'polling'
                    ? waiting ? ['busy', `Sending ${changes}${where}`]
                        : status.setAsideKeys.length ? ['bad', 'Not everything is synced'] : ['good', 'Up to date']
                    : status.connection === 'connecting' && !status.lastError ? ['busy', 'Connecting']
                        : ['away', `${navigator.onLine ? 'Not connected' : 'Offline'}${waiting ? `, ${waiting === 1 ? '1 change waits' : `${changes} wait`}${where}` : ''}`];
        if (this.status.textContent !== text) fill(this.status, text);
        this.status.className = `status ${kind}`;
        this.status.title = [...others.keys()].map((identifier) => this.model.storeName(identifier)).join(', ');
        this.drawUsage(status);
        this.drawBanners(status, kind);
        if (!this.rows.size) this.drawList();
    }

    drawUsage({ usage, limits }) {
        const bar = (label, used, max, text) => h('div', {}, h('span', {}, text),
            h('meter', { 'aria-label': label, min: 0, max, value: Math.min(used, max), high: max * 0.9, optimum: 0 }));
        const text = JSON.stringify([usage, limits.storeBytesMax, limits.keysMax]);
        if (this.usageText === text) return;
        this.usageText = text;
        fill(this.usage, bar('Keys', usage.keys, limits.keysMax, `${counted(usage.keys, 'key')} of ${limits.keysMax.toLocaleString('en')}`),
            bar('Bytes', usage.bytes, limits.storeBytesMax, `${bytes(usage.bytes)} of ${bytes(limits.storeBytesMax)}`),
            button('Storage use', () => usageDialog(this.model), { kind: 'small' }));
    }

    drawBanners(status, kind) {
        const { refused, isUnsaved } = this.model;
        const text = JSON.stringify([kind, status.diskError, isUnsaved, refused.length, status.connection, status.explanation, navigator.onLine]);
        if (this.bannerText === text) return;
        this.bannerText = text;
        refill(this.banner,
            kind === 'away' && h('div.note', {}, h('p', {}, h('strong', {}, navigator.onLine ? sentenceOf(status.explanation) : 'You are offline.', ' '),
                'You can go on: changes are kept in this browser, and sent when the server can be reached.')),
            status.connection === 'unauthorized' && h('div.note.bad', {}, h('p', {}, h('strong', {}, 'This browser was signed out. '),
                status.lastError ? sentenceOf(status.lastError) : '', ' What you see is from before.'),
            button('Sign in again', () => signInAgain(this.model), { kind: 'main' })),
            status.diskError !== null && h('div.note.bad', {}, h('p', {}, h('strong', {}, 'This browser cannot save. '), sentenceOf(status.diskError),
                isUnsaved && ' What you changed last is in this tab only: keep it open.', ' It is tried again and again; if the disk is full, make room.')),
            status.setAsideKeys.length > 0 && h('div.note.bad', {}, h('p', {}, sentenceOf(status.explanation),
                ' This browser keeps what it has; saving such a key again replaces what the server has.')),
            refused.length > 0 && h('div.note.bad', {}, h('details', {},
                h('summary', {}, `The server refused ${counted(refused.length, 'change')}`),
                h('ul', {}, refused.slice(0, 20).map(({ key, reason, date }) => h('li', {}, h('strong', {}, bdi(shortKey(key))),
                    ': ', sentenceOf(reason), ' ', when(date))))),
            button('Dismiss', () => this.model.forgetRefused().catch((error) => toast(sentenceOf(error))))));
    }

    drawTools() {
        const count = this.selected.size;
        this.tools.classList.toggle('selected', count > 0);
        if (count) {
            fill(this.tools, h('strong', { role: 'status' }, `${count} selected`), h('span.space'),
                button('Clear', () => this.select([])), button('Remove', () => this.remove([...this.selected]), { symbol: 'remove', kind: 'danger' }));
            return;
        }
        const slash = h('input', { type: 'checkbox', onchange: () => {
            try {
                if (slash.checked) localStorage.removeItem(noSlash);
                else localStorage.setItem(noSlash, 'true');
            } catch {
                slash.checked = true;
                toast('This browser cannot keep that: its storage is full.');
            }
        } });
        slash.checked = !localStorage.getItem(noSlash);
        const more = h('details.menu', {}, h('summary.button', {}, 'More'), h('div', {},
            button('Export as JSON', () => { more.open = false; this.export(); }, { symbol: 'file', kind: 'quiet' }),
            button('Export as a property list', () => { more.open = false; this.exportList(); }, { symbol: 'file', kind: 'quiet' }),
            button('Import a file', () => { more.open = false; this.import(); }, { symbol: 'add', kind: 'quiet' }),
            h('label.option', {}, slash, 'The key / searches')));
        more.addEventListener('focusout', ({ relatedTarget }) => { if (!more.contains(relatedTarget)) more.open = false; });
        more.addEventListener('keydown', ({ key }) => { if (key === 'Escape') more.open = false; });
        fill(this.tools, h('div.search', {}, icon('search'), this.search),
            button('Add a key', () => keySheet(this.model, null), { symbol: 'add', kind: 'main' }),
            h('a.button', { href: `#/back/${encodeURIComponent(this.model.store.identifier)}` }, icon('history'), h('span', {}, 'Go back in time')),
            more);
    }

    drawColumns() {
        refill(this.columns, columns.map(([id, name]) => {
            const { by, isBackwards } = this.sorting;
            const way = by !== id ? '' : isBackwards ? ' ↑' : ' ↓';
            return h('button', { type: 'button', class: `column ${id}`, 'aria-pressed': String(by === id),
                'aria-label': `Sort by ${name.toLowerCase()}${by === id && !isBackwards ? ', backwards' : ''}`, onclick: (event) => {
                    this.sorting = { by: id, isBackwards: by === id && !isBackwards };
                    this.drawColumns();
                    this.drawList();
                } }, name, way);
        }));
    }

    /** The keys in the order that is chosen. */
    sorted(keys) {
        const { by, isBackwards } = this.sorting;
        const order = columns.find(([id]) => id === by)[2];
        const of = (key) => {
            const wire = this.model.value(key);
            return { key, kind: by === 'kind' && wire ? kindName(wire) : '', date: (by === 'date' && this.model.author(key)?.date.getTime()) || 0 };
        };
        const found = keys.map(of).sort((a, b) => order(a, b) || compareText(a.key, b.key)).map(({ key }) => key);
        return isBackwards ? found.reverse() : found;
    }

    select(keys) {
        this.selected = new Set(keys);
        for (const [key, row] of this.rows) row.element.querySelector('input[type=checkbox]').checked = this.selected.has(key);
        const isInside = this.tools.contains(document.activeElement);
        this.drawTools();
        if (isInside) this.tools.querySelector('.button').focus();
    }

    // The list

    changed({ keys, reason }) {
        // Mostly, the same keys are there in the same order.
        const isSameList = !this.search.value && this.sorting.by === 'key' && keys.every((key) => this.rows.has(key) && this.model.value(key));
        for (const key of keys) this.drawRow(key);
        for (const key of keys) if (!this.model.value(key)) this.selected.delete(key);
        if (!isSameList) this.drawList();
        this.drawStatus();
        if (reason !== 'serverChange') return;
        this.flash(keys);
        if (keys.length > announcedMax) announce(`${keys.length} keys changed on another device.`);
        else if (keys.length) announce(keys.map((key) => this.news(key)).join(' '));
    }

    news(key) {
        const author = this.model.value(key) && this.model.author(key);
        return author ? `${shortKey(key)} was changed by ${this.model.deviceName(author.deviceID)}.` : `${shortKey(key)} was removed.`;
    }

    flash(keys) {
        for (const row of keys.map((key) => this.rows.get(key)?.element).filter(Boolean)) {
            // Not an animation: with many changes, each frame would draw all their rows.
            row.classList.add('fresh');
            clearTimeout(this.highlights.get(row));
            this.highlights.set(row, setTimeout(() => row.classList.remove('fresh'), highlightMilliseconds));
        }
    }

    drawList() {
        const sought = this.search.value.toLowerCase();
        // A row in which somebody types stays, even if its key is removed meanwhile.
        const edited = [...this.rows].filter(([key, row]) => row.isEditing && !this.model.value(key)).map(([key]) => key);
        const all = this.sorted([...this.model.keys(), ...edited]);
        const found = all.filter((key) => {
            const wire = this.model.value(key);
            return !sought || !wire || key.toLowerCase().includes(sought) || contains(wire, sought);
        });
        const keys = found.slice(0, this.shown);
        const hidden = found.length - keys.length;
        this.columns.hidden = all.length < 2;
        for (const [key, row] of this.rows) {
            if (!this.model.value(key) && !row.isEditing) {
                row.element.remove();
                this.rows.delete(key);
            }
        }
        // Moves only what is not in its place, so that nothing flickers or loses the focus.
        let next = this.list.firstChild;
        for (const key of keys) {
            const row = (this.rows.get(key) ?? this.drawRow(key)).element;
            if (row === next) next = next.nextSibling;
            else this.list.insertBefore(row, next);
        }
        while (next) {
            const after = next.nextSibling;
            next.remove();
            next = after;
        }
        refill(this.foot,
            !all.length && !this.model.status.isInitialSyncComplete && h('p.quiet', {}, 'Loading…'),
            !all.length && this.model.status.isInitialSyncComplete && h('div.empty', {}, icon('data'), h('h2', {}, 'This store is empty'), h('p', {}, 'Add the first key, or let an app do it.')),
            all.length > 0 && !found.length && h('p.quiet', {}, 'No key or value contains this text.'),
            hidden > 0 && button(`Show more: ${counted(hidden, 'key')}`, () => this.showMore()));
        // Anew, because the end may still be in sight.
        this.watch.unobserve(this.foot);
        if (hidden) this.watch.observe(this.foot);
    }

    showMore() {
        this.shown += shownMax;
        this.drawList();
    }

    drawAllRows() { for (const key of this.rows.keys()) this.drawRow(key); }

    /** Makes or updates a row, unless somebody is typing in it. */
    drawRow(key) {
        const wire = this.model.value(key);
        let row = this.rows.get(key);
        if (!wire || row?.isEditing) return row;
        if (!row) {
            row = { element: h('li', { 'data-row': '' }), isEditing: false };
            row.element.key = key;
            this.rows.set(key, row);
        }
        const focused = row.element.contains(document.activeElement) ? document.activeElement.dataset.part : null;
        const author = this.model.author(key);
        const check = h('input', { type: 'checkbox', 'data-part': 'check', 'aria-label': `Select ${shortKey(key)}`, onchange: () => {
            if (check.checked) this.selected.add(key);
            else this.selected.delete(key);
            this.drawTools();
        } });
        check.checked = this.selected.has(key);
        fill(row.element, h('label.check', {}, check),
            h('button.key', { type: 'button', 'data-part': 'key', title: 'All about this key', onclick: () => this.open(key) }, bdi(shortKey(key))),
            this.valueCell(key, wire, row),
            h('span.kind', {}, kindName(wire)),
            h('span.when', {}, author && [bdi(this.model.deviceName(author.deviceID)), ' · ', when(author.date)]),
            iconButton('open', `Details of ${shortKey(key)}`, () => this.open(key), { class: 'symbol more', tabindex: -1, 'aria-hidden': 'true' }));
        if (focused) row.element.querySelector(`[data-part="${focused}"]`)?.focus();
        return row;
    }

    valueCell(key, wire, row) {
        if (kindOf(wire) === 'boolean') {
            const control = switchFor(contentOf(wire), shortKey(key), (isOn) => {
                const failed = this.change(key, { boolean: isOn });
                if (!failed) return;
                toast(failed);
                this.drawRow(key);
            });
            control.dataset.part = 'value';
            return h('div.value', {}, control);
        }
        const text = preview(wire);
        return h('div.value', {}, h('button.edit', { type: 'button', 'data-part': 'value', 'aria-label': `Edit ${shortKey(key)}: ${text}`,
            onclick: () => this.edit(key, row) }, text === '' ? h('i', {}, 'empty') : h('bdi', {}, text)));
    }

    /** Shows all about a key. Its row may be drawn anew meanwhile: then the focus returns to the new one. */
    async open(key) {
        await keySheet(this.model, key);
        if (document.activeElement !== document.body) return;
        (this.rows.get(key)?.element.querySelector('.key') ?? this.tools.querySelector('.button')).focus();
    }

    /** Returns a sentence if the store refuses it. */
    change(key, wire) { return change(this.model, this.store, new Map([[key, wire]]), `“${shortKey(key)}” saved.`); }

    /** Edits in the row; what does not fit there, in the sheet. */
    edit(key, row) {
        const wire = this.model.value(key);
        const editor = wire && lineEditor(wire);
        if (!editor) return this.open(key);
        const { element } = editor;
        element.setAttribute('aria-label', `Value of ${shortKey(key)}`);
        row.isEditing = true;
        row.isUnsaved = () => {
            try { return !isSame(editor.read(), wire); } catch { return true; }
        };
        /** Whether somebody is asked, for which the focus leaves the row. */
        let isAsked = false;
        // What cannot be saved stays as it was typed, until somebody corrects it or gives it up.
        const stay = (why, keepsFocus) => {
            element.setCustomValidity(why);
            if (keepsFocus) element.reportValidity();
            else toast(`“${shortKey(key)}” is not saved. ${why}`);
        };
        const end = (isKept, keepsFocus) => {
            if (!row.isEditing || isAsked) return;
            let value = wire;
            try {
                if (isKept) value = editor.read();
            } catch (error) {
                if (!(error instanceof InputError)) throw error;
                stay(error.message, keepsFocus);
                return;
            }
            const finish = (isSure) => {
                isAsked = false;
                if (!isSure) {
                    element.focus();
                    return;
                }
                const failed = isSame(value, wire) ? null : this.change(key, value);
                if (failed) {
                    stay(failed, keepsFocus);
                    return;
                }
                row.isEditing = false;
                row.isUnsaved = undefined;
                this.drawRow(key);
                if (!this.model.value(key)) this.drawList();
                if (keepsFocus) row.element.querySelector('[data-part=value]')?.focus();
            };
            isAsked = true;
            const isSure = isSame(value, wire) || mayReplace(this.model, new Map([[key, wire]]));
            if (isSure === true) finish(true);
            else isSure.then(finish);
        };
        element.addEventListener('input', () => element.setCustomValidity(''));
        element.addEventListener('keydown', (event) => {
            if (event.key !== 'Enter' && event.key !== 'Escape') return;
            event.preventDefault();
            event.stopPropagation();
            end(event.key === 'Enter', true);
        });
        element.addEventListener('blur', () => end(true, false));
        row.element.querySelector('.value').replaceChildren(element);
        element.focus();
        element.select?.();
        return undefined;
    }

    remove(keys) {
        const existing = keys.filter((key) => this.model.value(key));
        if (!existing.length) return;
        const name = existing.length === 1 ? `“${shortKey(existing[0])}”` : counted(existing.length, 'key');
        const index = [...this.list.children].findIndex((row) => row.key === existing[0]);
        const failed = change(this.model, this.store, new Map(existing.map((key) => [key, null])), `${name} removed.`);
        if (failed) {
            toast(failed);
            return;
        }
        this.select([]);
        const { children } = this.list;
        (children[Math.min(index, children.length - 1)]?.querySelector('.key') ?? this.search).focus();
    }

    // Files

    /** The form of `ubiquity export --json`. */
    export() {
        const entries = this.model.keys().map((key) => `${JSON.stringify(key)}: ${JSON.stringify(this.model.value(key))}`);
        save(`{\n${entries.join(',\n')}\n}\n`, `${this.model.store.identifier}.json`, 'application/json');
    }

    /** In the binary form, which keeps all types. */
    exportList() {
        const values = this.model.keys().map((key) => [key, fromWire(this.model.value(key))]);
        save(encode(Object.fromEntries(values)), `${this.model.store.identifier}.plist`);
    }

    import() {
        const chooser = h('input', { type: 'file', hidden: true, onchange: () => {
            chooser.remove();
            if (chooser.files[0]) this.read(chooser.files[0]);
        } });
        document.body.append(chooser);
        chooser.click();
    }

    async read(file) {
        try {
            if (file.size > fileBytesMax) throw new FileError(`It has more than ${bytes(fileBytesMax)}`);
            const faults = new Map();
            const stores = storesOf(new Uint8Array(await file.arrayBuffer()), faults);
            if (!stores.length) throw new FileError('There is no store in it');
            await importDialog(this.model, file.name, stores, faults);
        } catch (error) { toast(`${visible(cut(file.name, 100))} cannot be imported. ${sentenceOf(error)}`); }
    }

    dropped(event) {
        if (!event.dataTransfer.types.includes('Files')) return;
        event.preventDefault();
        this.element.classList.toggle('target', event.type === 'dragover');
        if (event.type === 'drop' && event.dataTransfer.files.length) this.read(event.dataTransfer.files[0]);
    }
}

/** Shows what a file would change, store by store, before it does. */
const importDialog = (model, file, stores, faults) => dialog('box.wide', 'Import', (close) => {
    const place = h('div.stack');
    const store = model.store.identifier;
    const own = stores.findIndex(({ name }) => name === store);
    const draw = (values) => {
        const changes = [...values].filter(([key, wire]) => !isSame(wire, model.value(key)));
        const seen = new Map(changes.map(([key]) => [key, model.value(key)]));
        const known = changes.filter(([key]) => model.value(key));
        const problem = h('p.problem', { role: 'alert' });
        fill(place, h('p', {}, `${counted(known.length, 'key')} would be overwritten, ${counted(changes.length - known.length, 'key')} added. `,
            changes.length < values.size && `${counted(values.size - changes.length, 'key')} in the file ${values.size - changes.length === 1 ? 'is' : 'are'} equal already.`),
        changes.length > 0 && h('ul.changes', { tabindex: 0, 'aria-label': 'Changes' },
            [...known, ...changes.filter(([key]) => !model.value(key))].slice(0, 200).map(([key, wire]) => changeItem(key, model.value(key), wire))),
        changes.length > 200 && h('p.hint', {}, `And ${counted(changes.length - 200, 'more key', 'more keys')}.`), problem,
        h('footer', {}, button('Cancel', close), changes.length > 0 && button(`Import ${counted(changes.length, 'key')}`, async () => {
            const result = await replace(model, store, new Map(changes), seen, `${counted(changes.length, 'key')} imported.`);
            if (typeof result === 'string') problem.textContent = result;
            else if (result) close();
        }, { kind: 'main' })));
    };
    const choice = h('select', { onchange: () => draw(stores[choice.value].values) },
        stores.map(({ name }, i) => h('option', { value: i }, shortKey(name ?? 'The whole file'))));
    choice.value = Math.max(own, 0);
    draw(stores[Math.max(own, 0)].values);
    return [dialogHead(`Import ${visible(cut(file, 100))}`, close),
        faults.size > 0 && h('details.note.bad', {}, h('summary', {}, `${counted(faults.size, 'key')} cannot be imported, and ${faults.size === 1 ? 'is' : 'are'} skipped`),
            h('ul', {}, [...faults].slice(0, 100).map(([key, reason]) => h('li', {}, h('strong', {}, bdi(shortKey(key))), ': ', sentenceOf(reason))),
                faults.size > 100 && h('li', {}, `And ${counted(faults.size - 100, 'more key', 'more keys')}.`))),
        stores.length > 1 && field('From the store', choice), place];
});

/** A change of a key: its value now, and then. */
export const changeItem = (key, now, then, box = null, more = null) => h('li', {}, box, h('strong', {}, bdi(shortKey(key))),
    h('span', {}, now ? h('del', {}, bdi(preview(now, 80))) : h('i', {}, 'absent'), ' → ',
        then ? h('ins', {}, bdi(preview(then, 80))) : h('i', {}, 'removed')), more);
