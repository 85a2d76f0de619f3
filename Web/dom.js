// SPDX-License-Identifier: Apache-2.0

/** Elements. Whatever comes from a store or a server gets in as text, and as nothing else. */

import { isLoopback } from './client/http.js';
import { ago, time } from './text.js';

const svgSpace = 'http://www.w3.org/2000/svg';

/** Adds children: elements, texts, lists of these; nothing for null and false. */
function add(element, children) {
    for (const child of children.flat(3)) {
        if (child === null || child === undefined || child === false) continue;
        element.append(child instanceof Node ? child : String(child));
    }
    return element;
}

/**
 * Makes an element. `on…` are listeners; true sets an attribute without a value.
 * @param {string} name With classes: `p.hint`.
 */
export function h(name, attributes = {}, ...children) {
    const [tag, ...classes] = name.split('.');
    const element = document.createElement(tag);
    if (classes.length) element.className = classes.join(' ');
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
        else if (key === 'value') element.value = value;
        else if (value === true) element.setAttribute(key, '');
        else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
    }
    return add(element, children);
}

export const fill = (element, ...children) => {
    element.replaceChildren();
    return add(element, children);
};

/** Fills an element anew. The focus stays where it was in it, or as near as can be. */
export function refill(element, ...children) {
    const places = () => [...element.querySelectorAll('a, button, input, select, summary')];
    const before = document.activeElement;
    const at = places().indexOf(before);
    fill(element, ...children);
    if (at < 0) return;
    const now = places();
    const next = now.find((one) => one.ariaLabel && one.ariaLabel === before.ariaLabel) ?? now[Math.min(at, now.length - 1)];
    (next ?? document.getElementById('main'))?.focus();
}

export function svg(name, attributes, ...children) {
    const element = document.createElementNS(svgSpace, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return add(element, children);
}

const paths = {
    add: 'M12 5v14M5 12h14',
    app: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z',
    back: 'M15 5l-7 7 7 7',
    chart: 'M4 4v16h16M8 15l4-5 3 3 5-6',
    close: 'M6 6l12 12M18 6L6 18',
    data: 'M5 6h14M5 12h14M5 18h9',
    device: 'M5 5h14v10H5zM2 19h20',
    file: 'M12 4v11m-5-5 5 5 5-5M5 20h14',
    history: 'M4 12a8 8 0 1 0 2.6-5.9M4 4v4.5h4.5M12 8v4.5l3 2',
    open: 'M9 5l7 7-7 7',
    out: 'M14 5h5v14h-5M10 12h9M6 8l-3 4 3 4M3 12h11',
    person: 'M12 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM5 20a7 7 0 0 1 14 0',
    remove: 'M5 7h14M10 7V4.5h4V7M7 7l1 12.5h8L17 7',
    rename: 'M4 20l1-4L16 5l3 3L8 19z',
    search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20',
    undo: 'M8 5 4 9l4 4M4 9h10a5.5 5.5 0 0 1 0 11H9',
};

export const icon = (name) => svg('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true', class: 'icon' },
    svg('path', { d: paths[name] }));

/** The mark of the project. */
export const mark = () => svg('svg', { viewBox: '0 0 32 32', 'aria-hidden': 'true', class: 'mark' },
    svg('rect', { width: 32, height: 32, rx: 8 }),
    svg('path', { d: 'M9 8v8a7 7 0 0 0 14 0V8' }), svg('circle', { cx: 16, cy: 15, r: 2.4 }));

/** A button with a word, and a symbol before it. */
export const button = (text, onclick, { symbol = '', kind = '', ...attributes } = {}) =>
    h(`button.button${kind ? `.${kind}` : ''}`, { type: 'button', onclick, ...attributes },
        symbol && icon(symbol), h('span', {}, text));

/** A button with a symbol alone. */
export const iconButton = (symbol, label, onclick, attributes = {}) =>
    h('button.symbol', { type: 'button', 'aria-label': label, title: label, onclick, ...attributes }, icon(symbol));

/** A time as it was, relative to now, with the exact one at hand. */
export const when = (date) => h('time', Number.isNaN(date.getTime()) ? {} : { datetime: date.toISOString(), title: time(date) }, ago(date));

/** Keeps what `when` says true while the page is open. */
export const keepTimesFresh = () => setInterval(() => {
    for (const element of document.querySelectorAll('time')) element.textContent = ago(new Date(element.dateTime));
}, 30_000);

/** A page that says one thing, and has nothing else. */
export const plainPage = (title, text) => h('main.plain', {}, mark(), h('h1', {}, title), h('p', {}, text));

/** Marks the link to the view that is shown. */
export function setCurrent(link, isCurrent) {
    if (isCurrent) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
}

/** A line for a terminal, which may be longer than the page is wide: keys scroll it too. */
export const command = (text) => h('div.command', {}, h('p', { tabindex: 0 }, h('code', {}, text)),
    navigator.clipboard && h('button.button.small', { type: 'button', onclick: async () => {
        try {
            await navigator.clipboard.writeText(text);
            toast('Copied.');
        } catch { toast('This browser does not let the page copy. Select the text instead.'); }
    } }, 'Copy'));

/** What signs a device in. A key of the server's needs quotes. */
export const signInCommand = (server, code, pin) => command(`ubiquity sign-in --server ${server} --code ${pin ? `'${code};${pin}'` : code}`);

/** What to know of a code for an address that only this machine can use. Nothing, if it is not such. */
export const loopbackNote = (server) => isLoopback(server)
    && h('p.note', {}, h('span', {}, `On every machine, ${new URL(server).hostname} is that machine itself: a phone or another computer cannot use this code. `
        + 'Start the server with --lan (a service: lan = true in server.conf), or open this page by the address that they use.'));

/** Foreign text in a sentence: whatever its direction, the sentence keeps its own. */
export const bdi = (text) => h('bdi', {}, text);

/** An input for a name. Spaces alone are none. */
export function nameInput(attributes) {
    const input = h('input', { required: true, ...attributes, oninput: () => {
        input.setCustomValidity(input.value && !input.value.trim() ? 'Enter a name: spaces alone are none.' : '');
    } });
    return input;
}

let fields = 0;
/** A label with its control. */
export function field(label, control, hint = null) {
    fields += 1;
    control.id = `field${fields}`;
    if (hint) control.setAttribute('aria-describedby', `hint${fields}`);
    return h('div.field', {}, h('label', { for: control.id }, label), control,
        hint && h('p.hint', { id: `hint${fields}` }, hint));
}

/** Says something to screen readers. */
export function announce(text) { document.getElementById('announcer').textContent = text; }

/** Shows a message for a while; at most three. */
export function toast(text, action = null) {
    const toasts = document.getElementById('toasts');
    const close = () => {
        clearTimeout(timer);
        const next = element.closest('dialog')?.querySelector('header .symbol') ?? document.getElementById('main');
        if (element.contains(document.activeElement)) next?.focus({ preventScroll: true });
        element.remove();
    };
    const element = h('div.toast', {}, h('span', {}, text),
        action && h('button', { type: 'button', onclick: () => { close(); action.act(); } }, action.name),
        iconButton('close', 'Dismiss', close));
    const timer = setTimeout(close, 10_000);
    // Whatever is beside a dialog cannot be used.
    ([...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body).append(toasts);
    toasts.append(element);
    while (toasts.children.length > 3) toasts.firstChild.remove();
}

/**
 * Shows a dialog; resolves when it is closed. `build` gets the function that closes it, which asks
 * before something would be lost: `guard` says whether.
 * @param {(close: () => void, element: HTMLDialogElement) => any} build
 */
export function dialog(kind, title, build, guard = () => false) {
    return new Promise((resolve) => {
        const element = h(`dialog.${kind}`, { 'aria-label': title });
        const close = async () => {
            const isSure = !guard() || await confirm('Discard your changes?', 'What you have changed here is not saved yet.', 'Discard');
            if (isSure) element.close();
        };
        element.addEventListener('cancel', (event) => {
            // A file chooser inside says the same.
            if (event.target !== element) return;
            event.preventDefault();
            close();
        });
        const stay = (event) => { if (guard()) event.preventDefault(); };
        window.addEventListener('beforeunload', stay);
        element.addEventListener('close', () => {
            window.removeEventListener('beforeunload', stay);
            document.body.append(document.getElementById('toasts'));
            element.remove();
            resolve(undefined);
        });
        // A click beside it.
        element.addEventListener('pointerdown', ({ target }) => { if (target === element) close(); });
        add(element, [h('div.inside', {}, build(close, element))]);
        document.body.append(element);
        element.showModal();
    });
}

/** The head of a dialog. */
export const dialogHead = (title, close) => h('header', {},
    h('h2', {}, title), iconButton('close', 'Close', close));

/** Asks before something that cannot be undone; true for yes. `content` is a text, or elements. */
export async function confirm(title, content, yes, kind = 'danger') {
    let isSure = false;
    await dialog('box', title, (close) => [
        dialogHead(title, close), typeof content === 'string' ? h('p', {}, content) : content,
        h('footer', {}, button('Cancel', close, { autofocus: true }), button(yes, () => {
            isSure = true;
            close();
        }, { kind })),
    ]);
    return isSure;
}
