// SPDX-License-Identifier: Apache-2.0

/**
 * Controls for values, each with what fits its type. An editor has an `element`, and `read()`, which
 * returns the value in the protocol's form, or throws an `InputError` with a sentence.
 */

import { toWire, wireArray, wireDictionary, wireReal } from './client/exact.js';
import { button, h, icon, iconButton } from './dom.js';
import {
    bytes, bytesOf, contentOf, counted, cut, dataLength, dateReference, hex, kindName, kindOf, kinds, preview,
    visible,
} from './text.js';

/** A longer text is shown in part until somebody wants to edit it. */
const textMax = 20_000;
const textShown = 2_000;
const childrenShown = 100;
const hexShown = 512;
const hexEditable = 1_024;

export class InputError extends Error {}

const empty = {
    string: { string: '' }, boolean: { boolean: false }, integer: { integer: '0' }, real: { real: 0 },
    data: { data: '' }, array: { array: {} }, dictionary: { dictionary: {} },
};
export const emptyValue = (kind) =>
    empty[kind] ?? { date: (Math.floor(Date.now() / 1_000) * 1_000 - dateReference) / 1_000 };

/** A value of another type that says the same, as far as there is one. */
function converted(wire, kind) {
    const text = kindOf(wire) === 'string' ? contentOf(wire) : preview(wire);
    try {
        switch (kind) {
            case 'string': return ['data', 'array', 'dictionary'].includes(kindOf(wire)) ? emptyValue(kind)
                : { string: kindOf(wire) === 'boolean' ? String(contentOf(wire)) : text };
            case 'integer': return readInteger(text);
            case 'real': return readReal(text);
            case 'array': return { array: { values: [wire] } };
            default: return emptyValue(kind);
        }
    } catch { return emptyValue(kind); }
}

const fail = (sentence) => { throw new InputError(sentence); };

function readInteger(text) {
    if (!/^[+-]?\d{1,20}$/.test(text.trim())) fail('Enter a whole number, such as 42.');
    const number = BigInt(text.trim().replace(/^\+/, ''));
    if (number < -(2n ** 63n) || number >= 2n ** 64n) fail('This number is too large: an integer has 64 bits.');
    return toWire(number);
}

/** @returns {any} A value in the protocol's form. @throws {InputError} if it is not clear which number is meant, or it cannot be kept. */
export function readReal(text) {
    const typed = text.trim();
    if (/^-?Infinity$|^NaN$/.test(typed)) return { real: wireReal(Number(typed)) };
    // Some keyboards have a comma only. Between thousands, nobody knows what it stands for.
    if (/^[+-]?[1-9]\d{0,2}(,\d{3})+$/.test(typed)) fail(`Write ${typed.replaceAll(',', '')}, or ${typed.replace(',', '.').replaceAll(',', '')}: it is not clear what a comma means here.`);
    const plain = typed.replace(',', '.');
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) fail('Enter a number, such as 1.5.');
    const number = Number(plain);
    if (!Number.isFinite(number)) fail('This number is too large.');
    if (number === 0 && /^[^e]*[1-9]/i.test(plain)) fail('This number is too small: it would become 0.');
    return { real: wireReal(number) };
}

/** An editor that only changes what was changed: what an input cannot hold stays as it was. */
function input(wire, shown, attributes, read) {
    const element = h('input', { ...attributes, value: shown });
    const first = element.value;
    return { element, read: () => (element.value === first ? wire : read(element.value)) };
}

function textEditor(wire) {
    const text = contentOf(wire);
    const area = h('textarea', { rows: text.length > 200 ? 8 : 3, spellcheck: 'false', dir: 'auto', 'aria-label': 'Text' });
    let first = null;
    const load = () => {
        area.value = text;
        // Without what a text area changes, such as carriage returns.
        first = area.value;
    };
    const read = () => (first === null || area.value === first ? wire : { string: area.value });
    if (text.length <= textMax) {
        load();
        const isSeen = visible(text.replace(/[\n\t]/g, '')) === text.replace(/[\n\t]/g, '');
        return { read, element: isSeen ? area : h('div', {}, area,
            h('p.hint', {}, 'There are characters in it that cannot be seen: ', h('bdi', {}, visible(cut(text, 200))))) };
    }
    const element = h('div', {}, h('pre.cut', { dir: 'auto' }, visible(cut(text, textShown))),
        h('p.hint', {}, `The first ${counted(textShown, 'character')} of ${text.length.toLocaleString('en')}. `,
            button('Edit all', () => {
                load();
                element.replaceWith(area);
                area.focus();
            })));
    return { element, read };
}

function dateEditor(wire) {
    const date = new Date(Number(contentOf(wire)) * 1_000 + dateReference);
    const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
    const year = local.getUTCFullYear();
    if (!(year >= 1 && year <= 9_999)) {
        return input(wire, String(contentOf(wire)), { 'aria-label': 'Seconds after the beginning of 2001' },
            (text) => ({ date: readReal(text).real }));
    }
    const text = local.toISOString().slice(0, -1).replace(/\.000$/, '');
    return input(wire, text, { type: 'datetime-local', step: '0.001', 'aria-label': 'Date and time' }, (changed) => {
        const moment = new Date(changed).getTime();
        return Number.isNaN(moment) ? fail('Enter a date and a time.') : { date: (moment - dateReference) / 1_000 };
    });
}

/** Sixteen bytes a line: where, which, and their characters. */
function dump(data) {
    const lines = [];
    for (let at = 0; at < data.length; at += 16) {
        const row = data.subarray(at, at + 16);
        const text = [...row].map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '·')).join('');
        lines.push(`${at.toString(16).padStart(6, '0')}  ${hex(row).padEnd(47)}  ${text}`);
    }
    return lines.join('\n');
}

function dataEditor(wire) {
    let base64 = contentOf(wire);
    const element = h('div.bytes');
    /** @type {HTMLTextAreaElement | null} */
    let area = null;
    const chooser = h('input', { type: 'file', hidden: true, 'aria-label': 'File', onchange: async () => {
        const file = chooser.files[0];
        if (!file) return;
        base64 = contentOf(toWire(new Uint8Array(await file.arrayBuffer())));
        draw();
        element.querySelector('.button').focus();
    } });
    const draw = () => {
        const size = dataLength(base64);
        area = size <= hexEditable ? h('textarea', { rows: 3, spellcheck: 'false', 'aria-label': 'Bytes in hexadecimal',
            value: hex(bytesOf(base64)) }) : null;
        element.replaceChildren(
            size ? h('pre.dump', { tabindex: 0, 'aria-label': 'The bytes' }, dump(bytesOf(base64, hexShown))) : '',
            h('p.hint', {}, size > hexShown ? `The first ${bytes(hexShown)} of ${bytes(size)}.` : bytes(size)),
            area ?? '', h('div.line', {}, button('Use a file', () => chooser.click()),
                button('Save as a file', () => save(bytesOf(base64), 'data.bin'))), chooser);
    };
    draw();
    return { element, read: () => {
        const digits = area?.value.replace(/\s/g, '') ?? null;
        if (digits === null) return { data: base64 };
        if (digits.length % 2 || !/^[0-9a-f]*$/i.test(digits)) fail('Enter two hexadecimal digits for each byte.');
        return toWire(Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16)));
    } };
}

/** Hands a file to the person. */
export function save(content, name, type = 'application/octet-stream') {
    const address = URL.createObjectURL(new Blob([content], { type }));
    h('a', { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** The elements of a list, or the entries of a dictionary, each with an editor once it is opened. */
function containerEditor(wire) {
    const isDictionary = kindOf(wire) === 'dictionary';
    const content = contentOf(wire);
    const children = (isDictionary ? content.entries ?? [] : content.values ?? []).map((one) =>
        (isDictionary ? { key: one.key, wire: one.value } : { wire: one }));
    const list = h('ul.tree');
    const element = h('div', {}, list);
    let shown = childrenShown;
    const row = (child, index) => {
        const name = isDictionary
            ? h('input.name', { value: child.key, 'aria-label': 'Key', spellcheck: 'false', oninput: () => { child.key = name.value; } })
            : h('span.number', {}, String(index + 1));
        const body = h('div.body');
        const openEditor = () => {
            child.editor ??= anyEditor(child.wire);
            body.replaceChildren(child.editor.element);
            toggle.setAttribute('aria-expanded', 'true');
        };
        const toggle = h('button.toggle', { type: 'button', 'aria-expanded': 'false', onclick: () => {
            if (toggle.getAttribute('aria-expanded') === 'false') openEditor();
            else {
                body.replaceChildren();
                toggle.setAttribute('aria-expanded', 'false');
            }
        } }, icon('open'), h('bdi', {}, `${kindName(child.wire)}: ${preview(child.wire, 60)}`));
        if (child.editor || child.isNew) openEditor();
        return h('li', {}, h('div.line', {}, name, toggle, iconButton('remove', 'Remove', () => {
            children.splice(children.indexOf(child), 1);
            draw();
            (list.children[Math.min(index, list.children.length - 1)] ?? element).querySelector('.toggle, .button').focus();
        })), body);
    };
    const draw = () => {
        list.replaceChildren(...children.slice(0, shown).map(row));
        element.replaceChildren(list, h('div.line', {},
            children.length > shown && button(`Show more of ${children.length.toLocaleString('en')}`, () => {
                shown += childrenShown * 10;
                draw();
            }) || '',
            button(isDictionary ? 'Add an entry' : 'Add an element', () => {
                children.push({ key: '', wire: emptyValue('string'), isNew: true });
                shown = Math.max(shown, children.length);
                draw();
                list.lastChild.querySelector('input, textarea')?.focus();
            }, { symbol: 'add' })));
    };
    draw();
    const value = (child) => child.editor?.read() ?? child.wire;
    return { element, read: () => {
        if (!isDictionary) return wireArray(children.map(value));
        if (new Set(children.map(({ key }) => key)).size < children.length) fail('Two entries have the same key.');
        return wireDictionary(children.map((child) => ({ key: child.key, value: value(child) })));
    } };
}

export function switchFor(isOn, label, onchange = null) {
    const element = h('button.switch', { type: 'button', role: 'switch', 'aria-label': label,
        'aria-checked': String(isOn), onclick: () => {
            element.setAttribute('aria-checked', String(element.getAttribute('aria-checked') !== 'true'));
            onchange?.(element.getAttribute('aria-checked') === 'true');
        } });
    return element;
}

/** The editor of a value whose type stays. */
export function plainEditor(wire) {
    switch (kindOf(wire)) {
        case 'boolean': {
            const element = switchFor(contentOf(wire), 'Yes or no');
            return { element: h('div.line', {}, element), read: () => ({ boolean: element.getAttribute('aria-checked') === 'true' }) };
        }
        case 'integer': case 'unsigned': return input(wire, contentOf(wire), { inputmode: 'numeric', 'aria-label': 'Integer' }, readInteger);
        case 'real': return input(wire, String(contentOf(wire)), { inputmode: 'decimal', 'aria-label': 'Number' }, readReal);
        case 'date': return dateEditor(wire);
        case 'data': return dataEditor(wire);
        case 'array': case 'dictionary': return containerEditor(wire);
        default: return textEditor(wire);
    }
}

/** An editor in one line, for a row of the list; null for a value that needs more room. */
export function lineEditor(wire) {
    const kind = kindOf(wire);
    if (['integer', 'unsigned', 'real', 'date'].includes(kind)) return plainEditor(wire);
    const text = contentOf(wire);
    if (kind !== 'string' || text.length > 200 || visible(text) !== text) return null;
    return input(wire, text, { 'aria-label': 'Text', dir: 'auto', spellcheck: 'false' }, (string) => ({ string }));
}

/** The editor of a value, with a choice of its type. */
export function anyEditor(wire) {
    // What was typed in it is there again if somebody returns to its type.
    const first = plainEditor(wire);
    let current = first;
    const place = h('div.control', {}, current.element);
    const kind = kindOf(wire) === 'unsigned' ? 'integer' : kindOf(wire);
    const choice = h('select', { 'aria-label': 'Type', onchange: () => {
        let last = wire;
        try {
            last = current.read();
        } catch { /* What cannot be read cannot be kept either. */ }
        current = choice.value === kind ? first : plainEditor(converted(last, choice.value));
        place.replaceChildren(current.element);
    } }, kinds.map(([id, name]) => h('option', { value: id }, name)));
    choice.value = kind;
    return { element: h('div.any', {}, choice, place), read: () => current.read() };
}
