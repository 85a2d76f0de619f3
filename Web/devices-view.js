// SPDX-License-Identifier: Apache-2.0

/** The devices of the account: how they are, and how others come and go. */

import {
    bdi, button, confirm, dialog, dialogHead, field, fill, h, icon, loopbackNote, nameInput, refill, signInCommand, toast, when,
} from './dom.js';
import { trust } from './locked-view.js';
import { sentenceOf } from './model.js';
import { qrPicture } from './qr.js';
import { codeInput, grouped } from './sign-in-view.js';
import { counted, cut, duration, shownName, time, versionText, visible } from './text.js';

/** A clock that is less wrong than this is right. */
const clockMilliseconds = 2_000;
const refreshMilliseconds = 15_000;

export function devicesView(model) {
    const list = h('ul.devices', { 'aria-label': 'Devices' });
    const problem = h('div.slot', { role: 'status' });
    let isOver = false;
    let drawn = '';
    const draw = async () => {
        // What somebody types stays.
        if (list.querySelector('form')) return;
        try {
            const devices = await model.devices();
            if (isOver) return;
            fill(problem);
            const text = JSON.stringify(devices);
            if (text === drawn) return;
            drawn = text;
            devices.sort((a, b) => Number(b.isThisDevice) - Number(a.isThisDevice) || Number(b.lastSeen) - Number(a.lastSeen));
            refill(list, devices.map((device) => deviceCard(model, device, draw)));
        } catch (error) {
            if (!isOver) fill(problem, h('p.note.bad', {}, sentenceOf(error)));
        }
    };
    const timer = setInterval(draw, refreshMilliseconds);
    draw();
    return {
        title: 'Devices',
        element: h('div.view', {}, h('header.head', {}, h('h1', {}, 'Devices'), h('span.space'),
            button('Add a device', () => addDialog(model).then(draw), { symbol: 'add', kind: 'main' })),
        h('p.lead', {}, 'Each device has its own access to your account, which you can end here.'), problem, list),
        dispose: () => {
            isOver = true;
            clearInterval(timer);
        },
    };
}

function deviceCard(model, device, refresh) {
    const name = shownName(device.name, 'A device without a name');
    const isWrong = device.clockAheadMilliseconds !== null && Math.abs(device.clockAheadMilliseconds) >= clockMilliseconds;
    const ahead = device.clockAheadMilliseconds;
    const facts = [
        ['Last seen', device.lastSeen ? when(device.lastSeen) : 'never'],
        ['Signed in', device.signedIn ? when(device.signedIn) : 'unknown'],
        device.expires && ['Until', time(device.expires)],
        ['Clock', ahead === null ? 'not known yet' : isWrong ? `${duration(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'behind'}` : 'right'],
        ['Version', versionText(device.version) || 'unknown'],
        device.stores?.length && ['Only for', device.stores.map((one) => model.storeName(one)).join(', ')],
    ].filter(Boolean);
    const badge = device.behind === null ? ['', 'Nothing stored yet'] : device.behind === 0 ? ['good', 'Up to date']
        : ['away', `${counted(device.behind, 'change')} behind`];
    const title = h('h2', {}, bdi(name));
    const rename = () => {
        const input = nameInput({ value: device.ownName, maxlength: 100, 'aria-label': `New name of ${name}` });
        const form = h('form.line.rename', { onsubmit: async (event) => {
            event.preventDefault();
            try {
                await model.device.renameDevice(device.id, input.value.trim());
                end();
                model.refreshNames();
                refresh();
            } catch (error) { toast(sentenceOf(error)); }
        } }, input, h('button.button.small', {}, 'Save'), button('Cancel', () => end(), { kind: 'small' }));
        const end = () => {
            form.replaceWith(title);
            renaming.focus();
        };
        form.addEventListener('keydown', ({ key }) => { if (key === 'Escape') end(); });
        title.replaceWith(form);
        input.select();
    };
    const signOut = async () => {
        if (device.isThisDevice) return signOutDialog(model);
        const isSure = await confirm(`Sign out ${name}?`, 'It can neither read nor write your data from then on. '
            + 'What is on its disk already stays there.', 'Sign out');
        if (!isSure) return undefined;
        try {
            await model.device.signOutDevice(device.id);
            toast(`${name} is signed out.`);
            refresh();
        } catch (error) { toast(sentenceOf(error)); }
        return undefined;
    };
    const renaming = button('Rename', rename, { symbol: 'rename', kind: 'small', 'aria-label': `Rename ${name}` });
    return h('li.card', {}, h('div.line', {}, icon('device'), title, device.isThisDevice && h('span.badge', {}, 'This browser'),
        h(`span.status.${badge[0] || 'none'}`, {}, badge[1])),
    h('dl', {}, facts.map(([term, text]) => h('div', {}, h('dt', {}, term), h(`dd${term === 'Clock' && isWrong ? '.bad' : ''}`, {}, text)))),
    h('div.line', {}, renaming,
        button('Sign out', signOut, { symbol: 'out', kind: 'small', 'aria-label': `Sign out ${name}` })));
}

/** What `show` makes of a new code, once the server has given one. */
export function coded(model, show) {
    const place = h('div.stack', {}, h('p.quiet', {}, 'Asking the server…'));
    model.device.pair().then((made) => fill(place, show(made)), (error) => fill(place, h('p.note.bad', {}, sentenceOf(error))));
    return place;
}

/** A code for a new device, or the approval of one that shows a code. */
const addDialog = (model) => dialog('box', 'Add a device', (close) => {
    const place = coded(model, ({ code, pin, link, wholeCode, server, expires }) => [
        qrPicture(link), h('p.code.shown', { 'aria-label': 'Code' }, code),
        h('p.hint', {}, 'Scan this with the other device, or open ', h('strong', {}, server), ' there and enter the code, or type'),
        signInCommand(server, code, pin), loopbackNote(server),
        wholeCode !== link && wholeCodeOf(wholeCode, model.hasKeys),
        h('p.hint', {}, `For one device${expires ? `, until ${time(expires)}` : ''}.`)]);
    const input = codeInput(8, '', true);
    input.autofocus = true;
    return [dialogHead('Add a device', close), place,
        h('form.waits', { onsubmit: (event) => {
            event.preventDefault();
            close();
            const stores = /^\s*ubiquity:unlock(?:#([^;]*))?;/i.exec(input.value);
            if (stores) handOverDialog(model, input.value, stores[1]?.split(',') ?? []);
            else approveDialog(model, input.value);
        } }, field('Does the device show a code?', input), h('button.button', {}, 'Continue')),
        model.hasKeys && h('p.hint', {}, 'One that begins with “ubiquity:” also brings the key of your sealed account.')];
});

/** A code that is for apps and the command line, because no browser reads it. */
const wholeCodeOf = (code, bringsKey) => h('div.stack', {}, h('p', {}, 'Your account is sealed: signed in like this, the device is locked until you unlock it.'),
    bringsKey && [h('details', {}, h('summary', {}, 'Bring it the key'), h('p.hint', {}, 'In the app, or where ', h('code', {}, 'ubiquity sign-in'),
        ' asks, paste or scan this code. It brings the key: show it to nobody else.'),
    qrPicture(code), h('p.code.shown.long', { 'aria-label': 'Code with the key' }, code))]);

const lostMax = 20;

/** Gives a locked device of this account the key that it asks for. */
async function handOverDialog(model, code, stores) {
    const isSure = await confirm('Give a device the key?', [
        h('p', {}, 'A device of your account asks for the key of ', stores.length ? `these stores: ${stores.join(', ')}.` : 'all of your stores.'),
        h('p', {}, 'Give it the key only if you hold that device in your hands, and it shows this code.'),
        h('p.code.shown.long', { 'aria-label': 'Code' }, code), h('p.hint', {}, trust)], 'Give it the key');
    if (!isSure) return;
    try {
        await model.device.handOver(code);
        toast('The device has the key in a moment.');
    } catch (error) { toast(sentenceOf(error)); }
}

/**
 * Asks whether a device that waits may come in. One key never lets it in; and by a link, which may be a
 * stranger's, only somebody who reads the code.
 */
export const approveDialog = (model, code, isLink = false) => dialog('box', 'Approve a device', (close) => {
    const place = h('div.stack', { 'aria-live': 'polite' }, h('p.quiet', {}, 'Asking the server…'));
    const act = async (action, done) => {
        try {
            await action();
            close();
            toast(done);
        } catch (error) { fill(place, h('p.note.bad', {}, sentenceOf(error))); }
    };
    const ask = async () => {
        try {
            const waiting = await model.device.waitingDevice(code);
            const name = visible(cut(waiting.name, 100));
            const shown = grouped(waiting.userCode);
            const bringsKey = model.hasKeys && code !== waiting.userCode;
            const deny = button('Deny', () => act(() => model.device.deny(waiting), `${name} was denied.`), { kind: 'danger' });
            const approve = h('button.button.main', { disabled: isLink }, 'Approve');
            const last = h('input.code', { maxlength: 4, placeholder: 'XXXX', autocomplete: 'off', autocapitalize: 'characters', spellcheck: 'false',
                oninput: () => { approve.disabled = last.value.toUpperCase() !== shown.slice(-4); } });
            fill(place, h('p', {}, h('strong', {}, bdi(name)), ' at ', bdi(waiting.address || 'an unknown address'), ' wants to sign in to your account.'),
                h('p.code.shown', { 'aria-label': 'Code' }, shown),
                h('p', {}, 'Approve it only if you hold that device in your hands, and it shows this code: it could then read and change ',
                    waiting.stores.length ? `these stores: ${waiting.stores.join(', ')}.` : 'all of your data.'),
                bringsKey && [h('p', {}, 'It also gets the key of your sealed account.'), h('p.hint', {}, trust)],
                model.hasKeys && !bringsKey && h('p.hint', {}, 'Your account is sealed, and these eight characters bring no key: the device is locked '
                    + 'until you unlock it. If it shows a code that begins with “ubiquity:”, that one brings the key.'),
                h('form.stack', { onsubmit: (event) => {
                    event.preventDefault();
                    act(() => model.device.approve(waiting), `${name} may sign in.${bringsKey ? ' It gets the key.' : ''}`);
                } }, isLink && field('To approve it, type the last four characters of the code', last,
                    'You came by a link. Whoever sent it may want to get into your account.'),
                h('footer', {}, deny, approve)));
            deny.focus();
        } catch (error) { fill(place, h('p.note.bad', {}, sentenceOf(error))); }
    };
    ask();
    return [dialogHead('Approve a device', close), place];
});

/** Signing out removes what this browser keeps; unsent changes are lost with it, of whichever store. */
export async function signOutDialog(model) {
    let lost = null;
    try { lost = await model.unsent(); } catch { /* Said below. */ }
    const count = lost?.reduce((sum, { keys }) => sum + keys, 0);
    const isSure = await confirm('Sign out of this browser?', [h('p', {}, 'Everything that this page keeps in this browser is removed. '
        + 'Your data stays on the server and on your other devices.'),
    lost === null && h('p.note.bad', {}, 'What could not be sent yet will be lost. This browser does not say what that is.'),
    lost?.length > 0 && h('div.note.bad', {}, h('div', {}, h('p', {}, h('strong', {}, `${counted(count, 'change')} that could not be sent yet will be lost:`)),
        h('ul', {}, lost.slice(0, lostMax).map(({ identifier, keys, isOwn }) =>
            h('li', {}, `${model.storeName(identifier)}: ${counted(keys, 'change')}${isOwn ? '' : ', of another account'}`)),
        lost.length > lostMax && h('li', {}, `and ${counted(lost.length - lostMax, 'more store')}`))))], 'Sign out');
    if (!isSure) return;
    await model.signOut();
    location.replace('.');
}
