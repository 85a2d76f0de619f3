// SPDX-License-Identifier: Apache-2.0

/** The apps that may have stores, and the audit log. */

import { bdi, button, confirm, field, fill, h, refill, toast } from './dom.js';
import { attempt, pagedList, shown, whenMilliseconds } from './operator-accounts.js';
import { counted, cut, identifierPattern, visible } from './text.js';

export function appsView(server) {
    const list = h('ul.rows', { 'aria-label': 'Registered apps' });
    const rule = h('p.lead');
    const problem = h('div.slot', { role: 'status' });
    const name = h('input', { required: true, maxlength: 255, pattern: identifierPattern.source, autocapitalize: 'off',
        autocomplete: 'off', spellcheck: 'false', placeholder: 'TEAMID.com.example.app' });
    const title = h('input', { maxlength: 128, autocomplete: 'off', spellcheck: 'false' });
    const load = () => attempt(async () => {
        const { apps = [], registeredOnly = false } = await server.get(['apps']);
        fill(problem);
        rule.textContent = registeredOnly ? 'Only these apps may have stores on this server.'
            : 'Any app may have stores on this server: with the option “--apps registered”, only these may.';
        refill(list, apps.map((app) => h('li.line', {}, h('strong', {}, bdi(shown(app.name || app.identifier))),
            h('span.quiet', {}, app.name && [bdi(shown(app.identifier)), ' · '], 'registered ', whenMilliseconds(app.registeredMilliseconds)), h('span.space'),
            button('Unregister', () => remove(app.identifier, registeredOnly),
                { symbol: 'remove', kind: 'small', 'aria-label': `Unregister ${shown(app.identifier)}` }))));
        if (!apps.length) fill(problem, h('p.quiet', {}, 'No app is registered.'));
    }, problem);
    const remove = async (identifier, isNeeded) => {
        const isSure = await confirm(`Unregister ${shown(identifier)}?`, isNeeded
            ? 'No device can read or write the app’s stores on this server then. What they contain stays, for the time that it is registered again.'
            : 'This changes nothing as long as any app may have stores.', 'Unregister');
        if (!isSure) return;
        await attempt(async () => {
            await server.delete(['apps', identifier]);
            toast(`${shown(identifier)} is not registered any more.`);
            load();
        });
    };
    load();
    return {
        title: 'Apps',
        element: h('div.view', {}, h('header.head', {}, h('h1', {}, 'Apps')), rule,
            h('form.inline', { onsubmit: (event) => {
                event.preventDefault();
                attempt(async () => {
                    await server.put(['apps', name.value], title.value.trim() ? { name: title.value.trim() } : undefined);
                    name.value = '';
                    title.value = '';
                    load();
                }, problem);
            } }, field('Identifier', name), field('Name for people (optional)', title), h('button.button.main', {}, 'Register')), problem, list),
    };
}

/** The log's words, in an order for people. */
const deeds = [
    ['sign-in-failed', 'Sign-in failed'], ['device-signed-in', 'Device signed in'], ['device-revoked', 'Device signed out'],
    ['device-renamed', 'Device renamed'], ['device-removed', 'Expired device removed'], ['code-made', 'Code made'],
    ['sign-in-approved', 'Sign-in approved'], ['sign-in-denied', 'Sign-in denied'], ['account-created', 'Account created'],
    ['account-renamed', 'Account renamed'], ['account-exported', 'Account exported'], ['account-erased', 'Account deleted'],
    ['account-sealed', 'Account sealed'], ['account-reset', 'Sealed account emptied'],
    ['account-reset-announced', 'Emptying announced'], ['account-reset-withdrawn', 'Emptying withdrawn'],
    ['limit-changed', 'Limit changed'], ['app-registered', 'App registered'], ['app-removed', 'App unregistered'],
    ['database-restored', 'Database restored'], ['operator-credential-replaced', 'Operator’s credential replaced'],
];
const deedNames = new Map(deeds);
const actors = new Map([['operator-locally', 'the operator, on the machine'], ['operator-by-credential', 'the operator, by credential'],
    ['housekeeping', 'the server'], ['stranger', 'somebody']]);
const entriesPerPage = 100;
/** The names that are looked up to show them beside their IDs. */
const namesMax = 1_000;

export function auditView(server) {
    const list = pagedList('ol.log', 'Entries', 'Older entries');
    const deed = h('select', {}, h('option', { value: '' }, 'Everything'), deeds.map(([value, text]) => h('option', { value }, text)));
    const account = h('input', { type: 'search', maxlength: 128, placeholder: 'name or ID', autocapitalize: 'off', autocomplete: 'off', spellcheck: 'false' });
    let names = new Map();
    let isAsked = false;

    /** The ID of the account to filter by; empty for all. */
    const accountID = async () => {
        const text = account.value.trim();
        if (!text) return '';
        const found = await server.accountNamed(text);
        if (found) return found.id;
        // An account that was deleted has an ID only.
        if (/^[0-9a-f]{16}$/i.test(text)) return text.toLowerCase();
        throw new Error('There is no account with this name. A deleted account can be found by its ID.');
    };
    const load = () => {
        isAsked = true;
        const found = accountID();
        const wanted = deed.value;
        list.show(async (before) => {
            const { entries = [] } = await server.get(['audit'], { deed: wanted, account: await found, before, limit: entriesPerPage });
            return { items: entries.map((entry) => entryItem(entry, names)),
                next: entries.length === entriesPerPage && entries.at(-1).number };
        }, 'No entry is like this.');
    };
    const filter = h('form.inline', { onsubmit: (event) => {
        event.preventDefault();
        load();
    } }, field('What', deed), field('Account', account), h('button.button', {}, 'Show'));
    deed.addEventListener('change', load);
    (async () => {
        try {
            const { accounts = [] } = await server.get(['accounts'], { limit: namesMax });
            names = new Map(accounts.map(({ id, name }) => [id, name]));
        } catch { /* IDs say enough. */ }
        if (!isAsked) load();
    })();
    return {
        title: 'Audit log',
        element: h('div.view', {}, h('header.head', {}, h('h1', {}, 'Audit log')),
            h('p.lead', {}, 'Who did what to accounts, devices and apps. It never has keys, values or credentials.'), filter, list.elements),
        dispose: list.stop,
    };
}

function entryItem(entry, names) {
    const { account = '', device = '', actorDevice = '', detail = '' } = entry;
    const by = entry.actor === 'device' ? ['device ', h('code', {}, actorDevice)] : actors.get(entry.actor) ?? shown(entry.actor ?? '');
    const count = Number(entry.count ?? 0);
    return h('li', {}, h('div.line', {}, h('strong', {}, deedNames.get(entry.deed) ?? shown(entry.deed ?? '')),
        count > 1 && h('span.badge', {}, counted(count, 'time')), h('span.space'), h('span.quiet', {}, whenMilliseconds(entry.milliseconds))),
    h('p.hint', {}, account && [names.has(account) ? [bdi(shown(names.get(account))), ' '] : 'account ', h('code', {}, account), ' · '],
        device && device !== actorDevice && ['device ', h('code', {}, device), ' · '], 'by ', by,
        detail && [' · ', bdi(visible(cut(detail, 300)))]));
}
