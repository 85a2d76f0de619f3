// SPDX-License-Identifier: Apache-2.0

/** Values, sizes and times as text for people. */

/** The address of the server, which may be below a path of its host. */
export const ownAddress = () => new URL('.', location.href).href.replace(/\/$/, '');

/** Characters that have no shape, or move others around. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu;

/** Makes the characters of a text visible that would hide something. Those that join emoji stay. */
export const visible = (text) => text.replace(unseen, (one) => {
    const code = one.codePointAt(0);
    if (code === 0x200d || code === 0xfe0f) return one;
    if (one === '\n') return '↵ ';
    return `‹${code.toString(16).toUpperCase().padStart(4, '0')}›`;
});

/** The beginning of a text, without half a character at its end. */
export function cut(text, max) {
    if (text.length <= max) return text;
    const end = /[\ud800-\udbff]/.test(text[max - 1]) ? max - 1 : max;
    return `${text.slice(0, end)}…`;
}

/** A name that people gave, so that it shows what it is. */
export const shownName = (name, none = '') => visible(cut(name ?? '', 128)) || none;

/** A client's version: for a browser, such as Firefox/128.0, its name and its own version. */
export const versionText = (version) => visible(cut(version, 60)).replace('/', ' ').replace(/ (\d+)(\.0)+$/, ' $1');

/** The identifier of a store. The attribute `pattern` needs the backslash. */
export const identifierPattern = /^[A-Za-z0-9][A-Za-z0-9._\-]{0,254}$/;

export const shortKey = (key) => visible(cut(key, 256));

export const kinds = [
    ['string', 'Text'], ['boolean', 'Yes or no'], ['integer', 'Integer'], ['real', 'Number'],
    ['date', 'Date'], ['data', 'Data'], ['array', 'List'], ['dictionary', 'Dictionary'],
];
const kindNames = new Map([...kinds, ['unsigned', 'Integer'], ['sealed', 'Sealed']]);

export const kindOf = (wire) => Object.keys(wire)[0];
export const contentOf = (wire) => Object.values(wire)[0];
export const kindName = (wire) => kindNames.get(kindOf(wire)) ?? 'Value';

const number = new Intl.NumberFormat('en');
export const counted = (count, one, many = `${one}s`) => `${number.format(count)} ${count === 1 ? one : many}`;

export function bytes(count) {
    const units = ['bytes', 'kB', 'MB', 'GB'];
    let [size, unit] = [count, 0];
    for (; size >= 1_000 && unit < 3; unit += 1) size /= 1_000;
    const digits = unit > 0 && size < 10 ? 1 : 0;
    return `${size.toFixed(digits).replace('.0', '')} ${count === 1 ? 'byte' : units[unit]}`;
}

export const dateReference = 978_307_200_000;

/** With the zone, because it may not be that of the server's log, or of another device. */
const dates = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit',
    second: '2-digit', timeZoneName: 'short' });
export const time = (date) => (Number.isNaN(date.getTime()) ? 'an unknown time' : dates.format(date));

const steps = [[60, 'second'], [60, 'minute'], [24, 'hour'], [7, 'day'], [4.35, 'week'], [12, 'month'],
    [Infinity, 'year']];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
/** Such as "3 minutes ago". */
export function ago(date) {
    let amount = (date.getTime() - Date.now()) / 1_000;
    if (Number.isNaN(amount)) return 'at an unknown time';
    if (Math.abs(amount) < 45) return 'just now';
    for (const [size, unit] of steps) {
        if (Math.abs(amount) < size) return relative.format(Math.round(amount), unit);
        amount /= size;
    }
    return '';
}

/** A length of time, such as "2.5 seconds". */
export function duration(milliseconds) {
    const seconds = milliseconds / 1_000;
    if (seconds < 120) return counted(Number(seconds.toFixed(1)), 'second');
    if (seconds < 7_200) return counted(Math.round(seconds / 60), 'minute');
    return counted(Math.round(seconds / 3_600), 'hour');
}

/** The bytes of base64 from its beginning. */
export function bytesOf(base64, max = Infinity) {
    const text = atob(max === Infinity ? base64 : base64.slice(0, Math.ceil(max / 3) * 4));
    return Uint8Array.from(text.slice(0, Math.min(max, text.length)), (one) => one.charCodeAt(0));
}

export const hex = (data) => [...data].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');

export const dataLength = (base64) =>
    base64.length / 4 * 3 - (base64.match(/=+$/)?.[0].length ?? 0);

/** A value on one line. The time that this takes does not depend on the value's size. */
export function preview(wire, max = 160) {
    const content = contentOf(wire);
    switch (kindOf(wire)) {
        case 'string': return visible(cut(content, max));
        case 'boolean': return content ? 'Yes' : 'No';
        case 'date': {
            const date = new Date(Number(content) * 1_000 + dateReference);
            return Number.isNaN(date.getTime()) ? `${content} s after 2001` : time(date);
        }
        case 'data': {
            const size = dataLength(content);
            return `${bytes(size)}${size ? `: ${hex(bytesOf(content, 12))}${size > 12 ? ' …' : ''}` : ''}`;
        }
        case 'sealed': return `sealed, ${bytes(dataLength(content.box ?? ''))}`;
        case 'array': return list(content.values ?? [], max, '[', ']', (one) => inner(one, max));
        case 'dictionary': return list(content.entries ?? [], max, '{', '}',
            ({ key, value }) => `${visible(cut(key, 40))}: ${inner(value, max)}`);
        default: return String(content);
    }
}

/** Whether a value contains a text in lower case, at any depth. */
export function contains(wire, sought) {
    const content = contentOf(wire);
    const isIn = (text) => text.toLowerCase().includes(sought);
    switch (kindOf(wire)) {
        case 'string': return isIn(content);
        case 'array': return (content.values ?? []).some((one) => contains(one, sought));
        case 'dictionary': return (content.entries ?? []).some(({ key, value }) => isIn(key) || contains(value, sought));
        default: return isIn(preview(wire));
    }
}

function inner(wire, max) {
    switch (kindOf(wire)) {
        case 'string': return `“${preview(wire, Math.min(max, 40))}”`;
        case 'array': return contentOf(wire).values?.length ? '[…]' : '[]';
        case 'dictionary': return contentOf(wire).entries?.length ? '{…}' : '{}';
        default: return preview(wire, 40);
    }
}

function list(elements, max, begin, end, describe) {
    let text = '';
    for (const [index, element] of elements.entries()) {
        const more = (index ? ', ' : '') + describe(element);
        if (text.length + more.length > max) return `${begin}${text}${index ? ', ' : ''}…${end}`;
        text += more;
    }
    return begin + text + end;
}
