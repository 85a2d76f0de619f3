// SPDX-License-Identifier: Apache-2.0

/** The operator's page: which view is shown, and what is around it. */

import { button, command, field, fill, h, icon, keepTimesFresh, mark, plainPage, setCurrent, toast } from './dom.js';
import { accountsView } from './operator-accounts.js';
import { appsView, auditView } from './operator-log.js';
import { Figures } from './operator-metrics.js';
import { overview } from './operator-overview.js';
import { OperatorServer } from './operator-server.js';
import { ownAddress } from './text.js';

const app = document.getElementById('app');
const server = new OperatorServer();
const figures = new Figures();
const views = new Map([
    ['overview', ['Overview', 'chart', () => overview(server, figures)]], ['accounts', ['Accounts', 'person', () => accountsView(server)]],
    ['apps', ['Apps', 'app', () => appsView(server)]], ['audit', ['Audit log', 'data', () => auditView(server)]],
]);
/** Ends the view that is shown. */
let dispose = () => {};

function start() {
    if (!window.isSecureContext) {
        fill(app, plainPage('This page needs HTTPS', 'Over plain HTTP, others could read the operator’s credential. '
            + 'Open the page by an address that begins with https, or on the server’s own machine by http://127.0.0.1.'));
        return;
    }
    keepTimesFresh();
    window.addEventListener('hashchange', () => { if (server.credential) show(); });
    server.addEventListener('signout', showSignIn);
    if (server.credential) showShell();
    else showSignIn();
}

function showSignIn() {
    dispose();
    dispose = () => {};
    for (const one of document.querySelectorAll('dialog')) one.close();
    figures.nodes.clear();
    document.title = 'Operator – Ubiquity';
    const problem = h('p.problem', { role: 'alert' });
    const input = h('input', { type: 'password', required: true, maxlength: 1024, autocomplete: 'off', spellcheck: 'false', placeholder: 'ubo_…' });
    const submit = h('button.button.main', {}, 'Sign in');
    fill(app, h('main.sign-in', {}, h('div.hero', {}, mark(), h('h1', { id: 'title' }, 'Operator’s page'),
        h('p', {}, 'Accounts, apps, audit log and health of this server.')),
    h('section.card', { 'aria-labelledby': 'title' }, h('form', { onsubmit: async (event) => {
        event.preventDefault();
        submit.disabled = true;
        problem.textContent = '';
        try {
            await server.signIn(input.value.trim());
            showShell();
        } catch (error) {
            problem.textContent = error.message;
            input.select();
        }
        submit.disabled = false;
    } }, field('Operator’s credential', input, 'It begins with ubo_. This tab keeps it until you sign out or close it; '
        + 'so does a duplicate of the tab, and a browser that opens its last tabs again may bring it back.'), problem, submit)),
    h('details', {}, h('summary', {}, 'Where is the credential?'),
        h('p', {}, 'In the file operator-credential of the server’s data folder, unless it was moved to a safer place. '
            + 'For servers on PostgreSQL, this makes a new one:'),
        command('ubiquity database credential')),
    h('p.quiet.other', {}, h('a', { href: '.' }, 'My own data'))));
    input.focus();
}

function showShell() {
    const main = h('main', { id: 'main', tabindex: -1 });
    const links = [...views].map(([id, [name, symbol]]) => h('a.tab', { href: `#/${id}`, 'data-view': id }, icon(symbol), h('span', {}, name)));
    fill(app, h('div.shell.operator', {},
        h('button.button.skip', { type: 'button', onclick: () => main.focus() }, 'Skip to the content'),
        h('nav.side', { 'aria-label': 'Main' }, h('div.brand', {}, mark(), h('strong', {}, 'Operator')), h('div.tabs', {}, links),
            h('footer', {}, h('div.who', {}, h('strong', {}, ownAddress().replace(/^https?:\/\//, ''))), button('Sign out', () => {
                server.signOut();
                toast('You are signed out. Nothing is left in this browser.');
            }, { symbol: 'out', kind: 'quiet' }))),
        main));
    show();
}

function show() {
    const [, id = 'overview'] = location.hash.split('/');
    const [name, , make] = views.get(id) ?? views.get('overview');
    dispose();
    const made = make();
    dispose = made.dispose ?? (() => {});
    for (const link of document.querySelectorAll('.tab')) setCurrent(link, link.textContent === name);
    document.title = `${made.title} – Operator – Ubiquity`;
    const main = document.getElementById('main');
    const isInside = main.contains(document.activeElement);
    fill(main, made.element);
    window.scrollTo(0, 0);
    if (isInside) main.focus({ preventScroll: true });
}

start();
