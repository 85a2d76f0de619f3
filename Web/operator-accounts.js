// SPDX-License-Identifier: Apache-2.0

/** The accounts: search, make, sign devices in and out, limit, delete. */

import {
    bdi, button, confirm, dialog, dialogHead, field, fill, h, icon, loopbackNote, nameInput, refill, signInCommand, toast, when,
} from './dom.js';
import { isLoopback } from './client/http.js';
import { qrPicture } from './qr.js';
import { bytes, counted, ownAddress, shownName, time, versionText } from './text.js';

const accountsPerPage = 50;
const typingMilliseconds = 250;

export const shown = (name) => shownName(name, 'without a name');

/** A moment in milliseconds of the protocol. */
export const whenMilliseconds = (milliseconds) => when(new Date(Number(milliseconds ?? 0)));

/** Runs an action of a button, and says what went wrong. */
export async function attempt(action, place = null) {
    try {
        await action();
    } catch (error) {
        if (place) fill(place, h('p.note.bad', { role: 'alert' }, error.message));
        else toast(error.message);
    }
}

/**
 * A list that the server answers page by page. `show(page, none)` begins it anew, with the answer of
 * `page(after)`, its elements and where the next page begins, or with what to say if there are none.
 */
export function pagedList(name, label, more) {
    const list = h(`${name}.rows`, { 'aria-label': label });
    const foot = h('div.foot');
    const problem = h('div.slot', { role: 'status' });
    /** Which question is the newest one: the answer to an earlier one may come later. */
    let turn = 0;

    const stop = () => {
        turn += 1;
        list.ariaBusy = 'true';
        fill(foot);
        return turn;
    };
    const show = async (page, none, after = null) => {
        const isInside = foot.contains(document.activeElement);
        const own = stop();
        let answer;
        try { answer = await page(after); } catch (error) { answer = { problem: error.message }; }
        if (own !== turn) return;
        list.ariaBusy = 'false';
        if (answer.problem) {
            fill(problem, h('p.note.bad', { role: 'alert' }, answer.problem));
            fill(foot, after && button(more, () => show(page, none, after)));
            return;
        }
        if (!after) fill(list);
        list.append(...answer.items);
        fill(problem, !list.children.length && h('p.quiet', {}, none));
        fill(foot, answer.next && button(more, () => show(page, none, answer.next)));
        if (isInside) (answer.items[0]?.querySelector('button') ?? foot.querySelector('button') ?? document.getElementById('main'))?.focus();
    };
    return { elements: [problem, list, foot], show, stop };
}

export function accountsView(server) {
    const list = pagedList('ul', 'Accounts', 'More accounts');
    const search = h('input', { type: 'search', 'aria-label': 'Search accounts', placeholder: 'Search accounts', maxlength: 128,
        autocapitalize: 'off', autocomplete: 'off', spellcheck: 'false' });
    let timer = 0;

    const load = () => {
        const text = search.value.trim();
        list.show(async (after) => {
            const { accounts = [] } = await server.get(['accounts'], { search: text, after, limit: accountsPerPage });
            return { items: accounts.map((account) => row(server, account, load)),
                next: accounts.length === accountsPerPage && accounts.at(-1).name };
        }, text ? 'No account’s name contains this. Capital letters count.' : 'There is no account yet.');
    };
    search.addEventListener('input', () => {
        list.stop();
        clearTimeout(timer);
        timer = setTimeout(load, typingMilliseconds);
    });
    load();
    return {
        title: 'Accounts',
        element: h('div.view', {}, h('header.head', {}, h('h1', {}, 'Accounts'), h('span.space'),
            button('Create an account', () => createDialog(server, load), { symbol: 'add', kind: 'main' })),
        h('div.tools', {}, h('div.search', {}, icon('search'), search)), list.elements),
        dispose: () => {
            list.stop();
            clearTimeout(timer);
        },
    };
}

function row(server, account, refresh) {
    const devices = account.devices ?? [];
    const seen = Math.max(0, ...devices.map(({ seenMilliseconds }) => Number(seenMilliseconds ?? 0)));
    return h('li', {}, h('button.open', { type: 'button', onclick: () => accountSheet(server, account, refresh) },
        h('strong', {}, bdi(shown(account.name))), h('span', {}, counted(devices.length, 'device')),
        h('span', {}, seen ? ['seen ', whenMilliseconds(seen)] : 'never seen'), icon('open')));
}

const createDialog = (server, refresh) => dialog('box', 'Create an account', (close) => {
    const name = nameInput({ autofocus: true, maxlength: 128, autocapitalize: 'off', autocomplete: 'off', spellcheck: 'false' });
    const problem = h('div.slot');
    return h('form', { onsubmit: (event) => {
        event.preventDefault();
        attempt(async () => {
            const made = await server.post(['accounts'], { name: name.value.trim() });
            close();
            refresh();
            codeDialog(name.value.trim(), made);
        }, problem);
    } }, dialogHead('Create an account', close),
    field('Name', name, 'Of the person, such as an e-mail address. No other account may have it.'), problem,
    h('footer', {}, button('Cancel', close), h('button.button.main', {}, 'Create')));
});

/** A code, shown once: the server keeps its hash only. */
const codeDialog = (name, { code, expiresMilliseconds, pin, server }) => dialog('box', 'Code for a new device', (close) => {
    // Opened on the server's own machine, the page may not have the address that others use.
    const address = server && isLoopback(ownAddress()) ? server : ownAddress();
    return [dialogHead('Code for a new device', close), qrPicture(`${address}/#${code}${pin ? `;${pin}` : ''}`),
        h('p.code.shown', { 'aria-label': 'Code' }, code),
        h('p.hint', {}, 'Signs one device in to the account of ', bdi(shown(name)), ', until ',
            time(new Date(Number(expiresMilliseconds))), '. On that device, scan this, or open ', h('strong', {}, address),
            ' and enter the code, or type'),
        signInCommand(address, code, pin), loopbackNote(address),
        h('footer', {}, button('Done', close, { kind: 'main', autofocus: true })),
    ];
});

/** Everything about one account. */
function accountSheet(server, account, refresh) {
    const { form, isUnsaved } = limitsForm(server, account.name);
    return dialog('sheet', `Account ${shown(account.name)}`, (close) => accountParts(server, account, form, refresh, close), isUnsaved);
}

function accountParts(server, account, limitsOf, refresh, close) {
    const { name } = account;
    const problem = h('div.slot', { role: 'status' });
    const devices = h('ul.devices', { 'aria-label': 'Devices of the account' });
    const stores = h('div.slot');
    const title = shown(name);
    const draw = () => attempt(async () => {
        const found = (await server.get(['accounts', name, 'devices'])).devices ?? [];
        refill(devices, found.map((device) => deviceItem(server, name, device, () => {
            draw();
            refresh();
        })));
        if (!found.length) fill(devices, h('li.quiet', {}, 'No device is signed in.'));
    }, problem);
    attempt(async () => {
        const found = (await server.get(['accounts', name, 'stores'])).stores ?? [];
        fill(stores, found.length ? h('details', {}, h('summary', {}, `${counted(found.length, 'store')}: ${contentOf(found)}`),
            h('ul.lines', {}, found.map((store) => h('li', {}, h('span.name', {}, store.appName && [h('strong', {}, bdi(shown(store.appName))), ' '], bdi(store.identifier)), h('span.quiet', {}, contentOf([store]))))))
            : h('p.quiet', {}, 'No stores yet.'));
    }, problem);
    draw();
    return [dialogHead(title, close),
        h('p.author', {}, 'Created ', whenMilliseconds(account.createdMilliseconds), ' · ID ', h('code', {}, account.id)), problem,
        h('div.line', {}, button('Code for a new device', () => attempt(async () =>
            codeDialog(name, await server.post(['accounts', name, 'codes'], {})), problem), { symbol: 'add', kind: 'small' }),
        button('Delete the account', () => attempt(() => erase(server, account, () => {
            close();
            refresh();
        }), problem), { symbol: 'remove', kind: 'danger' })),
        h('section', {}, h('h3', {}, 'Devices'), devices), h('section', {}, h('h3', {}, 'Content'), stores),
        h('section', {}, h('h3', {}, 'Limits'), limitsOf)];
}

const total = (stores, name) => stores.reduce((all, store) => all + Number(store[name] ?? 0), 0);
const contentOf = (stores) => `${counted(total(stores, 'keys'), 'key')}, ${bytes(total(stores, 'bytes'))}`;

function deviceItem(server, account, device, refresh) {
    const name = shown(device.name);
    const revoke = async () => {
        const isSure = await confirm(`Sign out ${name}?`, 'The device can neither read nor write the account’s data from then on, '
            + 'on this server. What is on its disk already stays there.', 'Sign out');
        if (!isSure) return;
        await attempt(async () => {
            await server.delete(['accounts', account, 'devices', device.id]);
            toast(`${name} is signed out.`);
            refresh();
        });
    };
    return h('li.line', {}, icon('device'), h('div.what', {}, h('strong', {}, bdi(name)),
        h('p.hint', {}, 'seen ', device.seenMilliseconds ? whenMilliseconds(device.seenMilliseconds) : 'never', device.version && ` · ${versionText(device.version)}`,
            device.stores?.length > 0 && ` · only ${device.stores.join(', ')}`)),
    h('span.space'), button('Sign out', revoke, { symbol: 'out', kind: 'small', 'aria-label': `Sign out ${name}` }));
}

const limits = [
    ['storeBytesMax', 'Bytes per store'], ['keysMax', 'Keys per store'], ['historyDays', 'Days of history'],
    ['historyVersions', 'Versions per key'], ['historyBytes', 'Bytes of history'],
];

function limitsForm(server, name) {
    const problem = h('div.slot', { role: 'status' });
    const inputs = limits.map(([key, label]) => [key, label,
        h('input', { inputmode: 'numeric', pattern: '[0-9]{1,15}', title: 'Up to 15 digits, without commas', placeholder: 'the server’s', autocomplete: 'off' })]);
    const show = (message) => { for (const [key, , input] of inputs) input.value = input.defaultValue = message[key] ?? ''; };
    const submit = h('button.button.small', { disabled: true }, 'Save limits');
    const form = h('form.limits', { onsubmit: (event) => {
        event.preventDefault();
        attempt(async () => {
            const given = inputs.filter(([, , input]) => input.value.trim()).map(([key, , input]) => [key, input.value.trim()]);
            show(await server.put(['accounts', name, 'limits'], Object.fromEntries(given)));
            fill(problem, h('p.hint', {}, 'Saved. Nothing is removed that is there already.'));
        }, problem);
    } }, inputs.map(([, label, input]) => field(label, input)), problem, h('div', {}, submit));
    attempt(async () => {
        const { limits: usual = {} } = await server.get(['config']);
        for (const [key, , input] of inputs) if (usual[key]) input.placeholder = Number(usual[key]).toLocaleString('en');
        show(await server.get(['accounts', name, 'limits']));
        // Saving what was not read would remove it.
        submit.disabled = false;
    }, problem);
    return { form, isUnsaved: () => inputs.some(([, , input]) => input.value.trim() !== input.defaultValue) };
}

/** Asks with what would be lost. */
async function erase(server, account, done) {
    const [{ stores = [] }, { devices = [] }] = await Promise.all([
        server.get(['accounts', account.name, 'stores']), server.get(['accounts', account.name, 'devices'])]);
    const ends = `${counted(devices.length, 'device')} will be signed out.`;
    const isSure = await confirm(`Delete ${shown(account.name)}?`, stores.length
        ? `${counted(stores.length, 'store')} (${contentOf(stores)}) will be lost, with all history. ${ends} Only a backup can bring this back.`
        : `It has no stores. ${ends}`, 'Delete for good');
    if (!isSure) return;
    await server.delete(['accounts', account.name]);
    toast(`${shown(account.name)} was deleted.`);
    done();
}
