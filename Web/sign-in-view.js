// SPDX-License-Identifier: Apache-2.0

/** Signing in: with a code, by the approval of another device, or with the identity provider. */

import { bdi, button, command, confirm, dialog, field, fill, h, mark, nameInput } from './dom.js';
import { begin, providerName, providerOf } from './identity.js';
import { browserName, readConfig, sentenceOf } from './model.js';
import { qrPicture } from './qr.js';
import { shownName } from './text.js';

/** A code as it is shown, in groups of four. */
export const grouped = (text) => (text.toUpperCase().replace(/[^0-9A-Z]/g, '').slice(0, 12).match(/.{1,4}/g) ?? []).join('-');

/** @param {boolean} takesWhole Whether a code with a secret is taken as it is. */
export function codeInput(length, value = '', takesWhole = false) {
    const input = h('input.code', { required: true, autocomplete: 'one-time-code', autocapitalize: 'characters',
        spellcheck: 'false', maxlength: takesWhole ? 4_096 : length + length / 4 - 1, value: grouped(value),
        placeholder: Array(length / 4).fill('XXXX').join('-') });
    // Of a code with a secret, this page takes no keys: a person has to want that, where it says whom it trusts.
    if (!takesWhole) input.addEventListener('paste', (event) => {
        const front = /^\s*ubiquity:(?:[^;]*#)?([^;#]+);/i.exec(event.clipboardData?.getData('text') ?? '')?.[1];
        if (!front) return;
        event.preventDefault();
        input.value = grouped(front);
    });
    input.addEventListener('input', () => {
        // Such a code begins with a letter that others do not have.
        if (takesWhole && /^\s*u/i.test(input.value)) return;
        // Only at the end: in the middle, the cursor would jump.
        if (input.selectionStart === input.value.length) input.value = grouped(input.value);
    });
    return input;
}

/** A link may be a stranger's, who then reads what is written here. */
const isWanted = (account) => confirm('Sign in to this account?', [
    h('p', {}, 'The link that you opened leads to the account of ', h('strong', {}, bdi(shownName(account, 'somebody without a name'))), '.'),
    h('p', {}, 'Sign in only if that is you: whoever has the account sees all that you write here.')], 'Sign in', 'main');

/** A server could say that this browser was signed out, and then make an account up. */
export const allowsUnsealed = () => confirm('Sign in to an account that is not sealed?', [
    h('p', {}, 'This browser has had a sealed account. The one that you are signing in to is not sealed, says the server: whoever controls '
        + 'it can read what you write there.'),
    h('p', {}, 'If you did not expect that, cancel: the server may be after your values.')], 'Sign in');

/** @param {{code: string, note: string | null, failure: string, config: any, onSignedIn: () => void}} options */
export function signInView(model, { code = '', note = null, failure = '', config, onSignedIn }) {
    const problem = h('p.problem', { role: 'alert' }, failure);
    const input = codeInput(12, code);
    const name = nameInput({ maxlength: 100, value: browserName() });
    const submit = h('button.button.main', {}, 'Sign in');
    const card = h('section.card', { 'aria-labelledby': 'title' });

    const draw = () => fill(card,
        h('form', { onsubmit: async (event) => {
            event.preventDefault();
            submit.disabled = true;
            problem.textContent = '';
            try {
                const isLink = code !== '' && input.value === grouped(code);
                await model.signIn({ code: input.value, isWanted: isLink ? isWanted : undefined, allowsUnsealed }, name.value.trim());
                onSignedIn();
            } catch (error) {
                problem.textContent = sentenceOf(error);
                input.select();
            }
            submit.disabled = false;
        } },
        field('Code', input, 'From “ubiquity pair” or the devices page on a device of yours, or from the server operator.'),
        field('Name of this browser', name), problem, submit),
        h('p.or', {}, 'or'), other,
        button('Approve on another device', ask, { kind: 'wide' }));
    const provider = providerOf(config);
    const other = provider && button(`Sign in with ${providerName(provider)}`, async () => {
        problem.textContent = '';
        try {
            await begin(provider, name.value.trim() || browserName());
        } catch (error) { problem.textContent = sentenceOf(error); }
    }, { kind: 'wide' });

    const ask = async () => {
        problem.textContent = '';
        fill(card, h('p.hint', { role: 'status' }, 'Asking the server…'));
        const controller = new AbortController();
        const cancel = () => {
            controller.abort();
            draw();
        };
        try {
            const request = await model.requestSignIn({ allowsUnsealed }, name.value.trim() || browserName());
            fill(card, h('p', {}, 'On a device that is signed in, type'),
                command(`ubiquity approve ${request.userCode}`),
                h('p.hint', {}, 'or enter the code under Devices, Add a device; or scan this with a phone that is signed in, and type the code’s last four characters there.'),
                qrPicture(request.link), h('p.code.shown', { 'aria-label': 'Code' }, request.userCode),
                h('p.waiting', { role: 'status' }, 'Waiting for the approval'), button('Cancel', cancel, { kind: 'wide' }));
            await request.approved(controller.signal);
            onSignedIn();
        } catch (error) {
            if (controller.signal.aborted) return;
            draw();
            problem.textContent = sentenceOf(error);
        }
    };

    draw();
    queueMicrotask(() => (code ? submit : input).focus());
    return h('main.sign-in', {}, h('div.hero', {}, mark(), h('h1', { id: 'title' }, 'Sign in to Ubiquity'),
        h('p', {}, 'Your settings and other small data, on all of your devices.')),
    note && h('p.note', {}, note), card,
    h('details', {}, h('summary', {}, 'I have no account yet'), h('p', {}, 'The server operator creates one there:'),
        command('ubiquity account create NAME'), h('p', {}, 'This prints the code to enter above.')));
}

/** For a browser that was signed out from elsewhere. @param {string} code From a link. */
export async function signInAgain(model, code = '') {
    const { id } = model.account;
    const config = await readConfig();
    return dialog('box', 'Sign in again', (close) => signInView(model, { code, config, onSignedIn: () => {
        // Of another account, everything here is different.
        if (model.account.id !== id) location.replace('.');
        close();
    } }));
}
