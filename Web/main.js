// SPDX-License-Identifier: Apache-2.0

/** The page: which view is shown, and what is around it. */

import { backView } from './back-view.js';
import { dataView } from './data-view.js';
import { approveDialog, devicesView, signOutDialog } from './devices-view.js';
import { firstRunView } from './first-run-view.js';
import {
    bdi, button, dialog, dialogHead, field, fill, h, icon, iconButton, keepTimesFresh, mark, plainPage, setCurrent, toast,
} from './dom.js';
import { finish, providerOf, takeAnswer } from './identity.js';
import { lockedView } from './locked-view.js';
import { Model, readConfig, sentenceOf } from './model.js';
import { allowsUnsealed, signInAgain, signInView } from './sign-in-view.js';
import { identifierPattern } from './text.js';

const app = document.getElementById('app');

/**
 * Lets the page open without the server. Where there are no service workers, it does not. The files that it keeps are
 * asked for after the first view, which comes first.
 * @param {Promise<void>} first
 */
async function openOffline(first) {
    const workers = navigator.serviceWorker;
    if (!workers) return;
    let isNew = !workers.controller;
    workers.addEventListener('controllerchange', () => {
        if (!isNew) toast('There is a new version of this page.', { name: 'Reload', act: () => location.reload() });
        isNew = false;
    });
    // The only address that may become a script here.
    const policy = window.trustedTypes?.createPolicy('worker', { createScriptURL: () => 'worker.js' });
    const address = policy?.createScriptURL('') ?? 'worker.js';
    await first;
    let registration = null;
    for (let pause = firstPauseMilliseconds; ; pause *= 2) {
        try {
            registration = await installed(await workers.register(address, { updateViaCache: 'none' }));
        } catch (error) {
            // The certificate is not trusted, or the browser allows no storage.
            if (error.name === 'SecurityError') return;
        }
        if (registration) break;
        // A page that is loaded again tries it again.
        if (pause > lastPauseMilliseconds) return;
        await new Promise((resolve) => { setTimeout(resolve, pause); });
    }
    document.addEventListener('visibilitychange', () => { if (!document.hidden) registration.update().catch(() => {}); });
}

/** How long to wait after a first installation that failed, doubling: the server was away, or busy. */
const [firstPauseMilliseconds, lastPauseMilliseconds] = [2_000, 300_000];

/** A registration when its first worker has all of the files; null if it could not get them. */
async function installed(registration) {
    const worker = registration.installing;
    if (registration.active || !worker) return registration;
    await new Promise((resolve) => {
        worker.addEventListener('statechange', resolve);
        if (worker.state !== 'installing') resolve();
    });
    return worker.state === 'redundant' ? null : registration;
}

/** A code that came with a link: after the number sign, which browsers send to nobody. */
function takeCode() {
    if (location.hash.startsWith('#/') || location.hash.length < 2) return null;
    // After a semicolon comes the server's key, which this browser has checked in its own way.
    const code = location.hash.slice(1).split(';')[0].replace(/-/g, '').toUpperCase();
    history.replaceState(null, '', location.pathname);
    if (/^[0-9A-Z]{12}$/.test(code)) return { kind: 'sign-in', code };
    return /^[0-9A-Z]{8}$/.test(code) ? { kind: 'approval', code } : null;
}

/** What takes over when the address changes, as long as this is shown: to a link's code, or to a view. */
let shown = { code: (_) => {}, view: () => {} };

window.addEventListener('hashchange', () => {
    const code = takeCode();
    if (code) shown.code(code);
    else shown.view();
});

async function start() {
    // Some providers put a fragment behind their answer, which is no code.
    const answer = takeAnswer();
    let code = takeCode();
    shown.code = (next) => { code = next; };
    if (!window.isSecureContext || !navigator.locks || !window.indexedDB) {
        fill(app, plainPage('This page needs HTTPS', 'Over plain HTTP, browsers do not let a page store data safely. Open the page by an address '
            + 'that begins with https, or on the server’s own machine by http://127.0.0.1.'));
        return;
    }
    let model;
    try {
        model = await Model.open();
    } catch (error) {
        fill(app, plainPage('This browser keeps no data', `${sentenceOf(error)} The page needs IndexedDB, which private windows may not have.`));
        return;
    }
    keepTimesFresh();
    const first = showFirst(model, answer, code);
    openOffline(first);
    await first;
}

async function showFirst(model, answer, code) {
    let failure = '';
    if (answer) {
        try {
            const { token, deviceName } = await finish(answer);
            await model.signIn({ identityToken: token, allowsUnsealed }, deviceName);
        } catch (error) { failure = sentenceOf(error); }
    }
    if (!model.account) await showSignIn(model, code, failure);
    else {
        await showShell(model, code);
        if (failure) toast(failure);
    }
}

async function showSignIn(model, code, failure) {
    const own = { code: (next) => (model.account ? useCode(model, next) : showSignIn(model, next, '')), view: () => {} };
    shown = own;
    const config = await readConfig();
    if (shown !== own) return;
    const isFirst = config.needsFirstAccount === true;
    // With a provider, the first account may come from there: only the link of the server's log asks for another way.
    if (isFirst && (code?.kind === 'sign-in' || !providerOf(config))) {
        document.title = 'Welcome – Ubiquity';
        fill(app, firstRunView(model, code?.kind === 'sign-in' ? code.code : ''));
        return;
    }
    document.title = 'Sign in – Ubiquity';
    const waiting = code?.kind === 'approval' ? code : null;
    fill(app, signInView(model, {
        code: code?.kind === 'sign-in' ? code.code : '',
        failure,
        config,
        note: waiting && 'A device waits for your approval. Sign in here first, and then approve it.',
        onSignedIn: () => showShell(model, waiting),
    }));
}

/** The signed-in page: navigation beside the view. */
async function showShell(model, code) {
    const main = h('main', { id: 'main', tabindex: -1 });
    const stores = h('ul.stores');
    const choice = h('select', { 'aria-label': 'Store', onchange: () => { location.hash = `#/data/${choice.value}`; } });
    const links = [['data', 'Data', 'data'], ['devices', 'Devices', 'device']].map(([id, name, symbol]) =>
        h('a.tab', { href: `#/${id}`, 'data-view': id }, icon(symbol), h('span', {}, name)));
    // On a phone, what is not navigation shows when it is asked for.
    const more = iconButton('person', 'Account', () => unfold(!side.classList.contains('open')), { 'aria-expanded': 'false' });
    const unfold = (isOpen) => {
        side.classList.toggle('open', isOpen);
        more.setAttribute('aria-expanded', String(isOpen));
    };
    const side = h('nav.side', { 'aria-label': 'Main' },
        h('div.brand', {}, mark(), h('strong', {}, 'Ubiquity'), choice, more),
        h('h2', {}, 'Stores'), stores,
        button('Open another store', askForStore, { symbol: 'add', kind: 'quiet' }),
        h('div.tabs', {}, links),
        h('footer', {}, h('div.who', {}, h('strong', {}, bdi(model.account.name)), h('span', {}, bdi(model.account.deviceName))),
            button('Sign out', () => signOutDialog(model), { symbol: 'out', kind: 'quiet' })));
    fill(app, h('div.shell', {},
        h('button.button.skip', { type: 'button', onclick: () => main.focus() }, 'Skip to the content'),
        side, main));

    /** A name with its identifier below. */
    const named = (identifier) => (model.storeName(identifier) === identifier ? identifier
        : [h('strong', {}, bdi(model.storeName(identifier))), h('span', {}, identifier)]);
    const drawStores = () => {
        const { stores: names } = model.notes;
        const current = model.store?.identifier ?? null;
        const isShown = !location.hash.startsWith('#/devices');
        fill(stores, names.map((name) => h('li', {}, h('a', { href: `#/data/${encodeURIComponent(name)}`,
            'aria-current': isShown && name === current ? 'page' : null, title: name }, named(name)))));
        fill(choice, names.map((name) => h('option', { value: name }, model.storeName(name))));
        choice.value = current;
        choice.hidden = !names.length;
    };

    let dispose = () => {};
    /** Whether what is shown is for a browser without the account's key. */
    let isLocked = false;
    const show = async () => {
        // What somebody types belongs to the store that is still open.
        unfold(false);
        const isInside = main.contains(document.activeElement);
        if (isInside) document.activeElement.blur();
        const [, view = 'data', encoded = ''] = location.hash.split('/');
        let failure = '';
        let store = model.notes.store ?? model.notes.stores[0] ?? null;
        try { store = decodeURIComponent(encoded) || store; } catch { /* A broken link shows the usual store. */ }
        if (store && identifierPattern.test(store)) {
            try {
                await model.openStore(store);
            } catch (error) {
                failure = sentenceOf(error, model.notes.stores);
                toast(failure);
            }
            model.sendOthers();
        }
        dispose();
        const known = { data: dataView, back: backView, devices: devicesView };
        isLocked = model.isLocked;
        const draw = isLocked && view !== 'devices' ? lockedView : Object.hasOwn(known, view) ? known[view] : dataView;
        const made = draw(model, { openStore: askForStore, failure });
        dispose = made.dispose ?? (() => {});
        for (const link of links) {
            setCurrent(link, link.dataset.view === (view === 'devices' ? 'devices' : 'data'));
        }
        document.title = `${made.title} – Ubiquity`;
        drawStores();
        fill(main, made.element);
        window.scrollTo(0, 0);
        if (isInside) main.focus({ preventScroll: true });
    };

    model.addEventListener('stores', drawStores);
    model.addEventListener('problem', ({ detail }) => toast(sentenceOf(detail)));
    window.addEventListener('beforeunload', (event) => { if (model.isUnsaved) event.preventDefault(); });
    model.addEventListener('refused', ({ identifier }) =>
        toast(`The server refused a change in ${model.storeName(identifier)}. Open it to see what is lost.`));
    document.addEventListener('visibilitychange', () => { if (!document.hidden) model.sendOthers(); });
    // Another tab has signed out. A tab that had nothing to lose by it hears no change.
    for (const event of ['change', 'status']) {
        model.addEventListener(event, () => { if (!model.account) location.reload(); });
    }
    shown = { code: (next) => useCode(model, next), view: show };
    await show();
    const refresh = async () => {
        const before = model.notes.stores.length;
        await model.refreshNames();
        if (!model.store && model.notes.stores.length > before) await show();
    };
    await refresh();
    // Without a store there is no connection that tells of the first one. Ever more slowly.
    const lookAgain = (pause) => setTimeout(async () => {
        if (model.store) return;
        if (!document.hidden) await refresh();
        lookAgain(Math.min(pause * 1.2, 60_000));
    }, pause);
    lookAgain(3_000);
    let wasConnected = false;
    model.addEventListener('status', () => {
        if (model.store && model.isLocked !== isLocked) show();
        const isConnected = model.status?.connection === 'connected';
        if (isConnected && !wasConnected) {
            refresh();
            model.sendOthers();
        }
        wasConnected = isConnected;
    });
    if (code) useCode(model, code);
}

function useCode(model, { kind, code }) {
    if (kind === 'approval') approveDialog(model, code, true);
    else if (model.status?.connection === 'unauthorized') signInAgain(model, code);
    else {
        toast(`This browser is signed in as ${model.account.name} already. The code was not used: `
            + 'it still works on another device.');
    }
}

/** A store comes into existence with its first value. */
const askForStore = () => dialog('box', 'Open a store', (close) => {
    const name = h('input', { autofocus: true, required: true, pattern: identifierPattern.source, maxlength: 255, spellcheck: 'false',
        autocapitalize: 'off', autocomplete: 'off', placeholder: 'TEAMID.com.example.app' });
    return h('form', { onsubmit: (event) => {
        event.preventDefault();
        close();
        location.hash = `#/data/${encodeURIComponent(name.value)}`;
    } }, dialogHead('Open a store', close),
    field('Identifier', name, 'As the app names it: letters, digits, dots, hyphens and underscores. A store '
        + 'that does not exist yet begins with its first value.'),
    h('footer', {}, button('Cancel', close), h('button.button.main', {}, 'Open')));
});

start();
