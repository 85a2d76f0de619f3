// SPDX-License-Identifier: Apache-2.0

/** The first run of an empty server: this browser makes the first account, by a code of the server's log. */

import { coded } from './devices-view.js';
import { command, field, h, loopbackNote, mark, nameInput, signInCommand } from './dom.js';
import { browserName, sentenceOf } from './model.js';
import { qrPicture } from './qr.js';
import { codeInput } from './sign-in-view.js';

export function firstRunView(model, code) {
    const problem = h('p.problem', { role: 'alert' });
    const secret = codeInput(12, code);
    const account = nameInput({ maxlength: 128, autocomplete: 'username', autocapitalize: 'off', spellcheck: 'false' });
    const browser = nameInput({ maxlength: 100, value: browserName() });
    const submit = h('button.button.main', {}, 'Create the account');
    const make = async (event) => {
        event.preventDefault();
        submit.disabled = true;
        problem.textContent = '';
        try {
            await model.signIn({ code: secret.value, accountName: account.value.trim() }, browser.value.trim());
            place.replaceWith(nextSteps(model));
        } catch (error) {
            problem.textContent = sentenceOf(error);
            submit.disabled = false;
        }
    };
    queueMicrotask(() => (code ? account : secret).focus());
    const place = h('main.sign-in', {}, h('div.hero', {}, mark(), h('h1', { id: 'title' }, 'Welcome to Ubiquity'),
        h('p', {}, 'This server has no account yet. Create the first one here.')),
    h('section.card', { 'aria-labelledby': 'title' }, h('form', { onsubmit: make },
        field('Code', secret, code ? 'From the link that you opened.' : 'At the end of the link in the server’s log. It works once, '
            + 'for an hour after the server’s start; a restart makes a new one.'),
        field('Name of the account', account, 'Such as your first name or your e-mail address.'),
        field('Name of this browser', browser), problem, submit)),
    h('details', {}, h('summary', {}, 'Other ways'), h('p', {}, 'On the server’s machine, this creates an account and prints a code:'),
        command('ubiquity account create NAME'),
        h('p', {}, 'With the operator’s credential, the ', h('a', { href: 'operator' }, 'operator’s page'), ' does so too.')));
    return place;
}

/** What to do with a new account. Each code signs in one device. */
function nextSteps(model) {
    const step = (title, ...content) => h('li.card', {}, h('h2', {}, title), content);
    const go = h('button.button.main.wide', { type: 'button', onclick: () => {
        location.hash = '#/data';
        location.reload();
    } }, 'Open my data');
    document.title = 'Your account is ready – Ubiquity';
    queueMicrotask(() => go.focus());
    return h('main.sign-in', {}, h('div.hero', {}, mark(), h('h1', {}, 'Your account is ready'),
        h('p', {}, 'This browser is its first device. Three steps to go on with:')),
    h('ol.steps', {}, step('Sign in a computer', coded(model, ({ server, code, pin }) => signInCommand(server, code, pin))),
        step('Sign in a phone', coded(model, ({ link, server }) => [qrPicture(link), h('p.hint', {}, 'Scan this with its camera.'), loopbackNote(server)])),
        step('Keep a first value, and see it here', command('ubiquity set theme dark --store TEAMID.com.example.app'))),
    go, h('p.hint', {}, 'Codes for further devices are on the page Devices.'));
}
