// SPDX-License-Identifier: Apache-2.0

/**
 * Files that can be imported: property lists in both formats, JSON, and the export of an account.
 * Whatever is in a file, reading it ends, and takes no more than so many bytes, values and levels.
 */

import { base64, checkedValue, isObject, toWire, wireArray, wireDictionary, wireReal } from './client/exact.js';
import { depthMax } from './client/values.js';
import { dateReference, shortKey } from './text.js';

export const fileBytesMax = 64 << 20;
/** Of one file: a value of two bytes takes fifty in memory. */
export const valuesMax = 1 << 20;
const integerMax = 2n ** 64n;

/** Why a file cannot be imported, as a sentence without its full stop. */
export class FileError extends Error {}
const fail = (reason) => { throw new FileError(reason); };

/** Counts what a file contains, so that nothing in it can be without end. */
class Count {
    constructor() { this.values = 0; }

    get isFull() { return this.values > valuesMax; }

    value(depth) {
        this.values += 1;
        if (this.isFull) fail(`It has more than ${valuesMax.toLocaleString('en')} values`);
        if (depth > depthMax + 1) fail(`It has more than ${depthMax} levels`);
    }
}

/** An entry of a file; none if its value is not one, if there is a place for such keys. */
function entryOf(key, read, faults) {
    try {
        return [[key, read()]];
    } catch (error) {
        if (!faults || !(error instanceof FileError)) throw error;
        faults.set(key, error.message);
        return [];
    }
}

/**
 * The stores of a file. The name is null for one that does not say which store it is of.
 * @param {Uint8Array} data @param {Map<string, string> | null} faults Takes the keys whose values are none, with the reason.
 * Without it, one is the end of all.
 * @returns {{name: string | null, values: Map<string, any>}[]} With values in the protocol's form.
 * @throws {FileError}
 */
export function storesOf(data, faults = null) {
    if (data.length > fileBytesMax) fail(`It has more than ${fileBytesMax >> 20} MB`);
    const isJSON = /^\s*[{[]/.test(ascii(data, 0, 64).replace(/^\xef\xbb\xbf/, ''));
    return isJSON ? storesOfJSON(utf8(data), faults) : [{ name: null, values: rootOf(propertyList(data, faults)) }];
}

const ascii = (data, from, to) => String.fromCharCode(...data.subarray(from, to));

function utf8(data) {
    try {
        return new TextDecoder('utf-8', { fatal: true }).decode(data);
    } catch { return fail('It is not text in UTF-8'); }
}

const propertyList = (data, faults) => (ascii(data, 0, 6) === 'bplist' ? binary(data, faults) : xml(utf8(data), faults));

function rootOf(wire) {
    if (!wire.dictionary) fail('It is not a dictionary, of which each entry could be a key of a store');
    return new Map((wire.dictionary.entries ?? []).map(({ key, value }) => [key, value]));
}

// JSON

/** The file of `ubiquity account export`; the output of `ubiquity export --json`, with a type for each value; or any other object. */
function storesOfJSON(text, faults) {
    let json;
    try {
        json = JSON.parse(text);
    } catch (error) { fail(`It is not JSON: ${shortKey(error.message)}`); }
    checkKeys(text);
    if (!isObject(json)) fail('It is not an object, of which each property could be a key of a store');
    if (typeof json.format === 'string' && json.format.startsWith('ubiquity-account-')) return storesOfAccount(json, faults);
    return [{ name: null, values: valuesOf(Object.entries(json), new Count(), faults) }];
}

/** Of a key that an object has twice, a parser of JSON keeps the last value without a word. @param {string} text JSON. */
function checkKeys(text) {
    /** The keys of each open object; null for a list. @type {(Set<string> | null)[]} */
    const open = [];
    const [marks, colon] = [/["{}[\]]/g, /\s*:/y];
    for (let found = marks.exec(text); found; found = marks.exec(text)) {
        const { 0: mark, index } = found;
        if (mark === '{') open.push(new Set());
        else if (mark === '[') open.push(null);
        else if (mark !== '"') open.pop();
        else {
            marks.lastIndex = endOfString(text, index);
            colon.lastIndex = marks.lastIndex;
            if (!colon.test(text)) continue;
            const [keys, key] = [open.at(-1), JSON.parse(text.slice(index, marks.lastIndex))];
            if (keys.has(key)) fail(`It has the key ${shortKey(key)} twice in one object`);
            keys.add(key);
        }
    }
}

/** What comes after a string of JSON: after a quotation mark with an even number of backslashes before it. */
function endOfString(text, start) {
    for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
        let before = end;
        while (text[before - 1] === '\\') before -= 1;
        if ((end - before) % 2 === 0) return end + 1;
    }
}

function storesOfAccount({ format, stores }, faults) {
    if (format !== 'ubiquity-account-1') fail('Its format is a newer one');
    const count = new Count();
    const names = new Set();
    return listed(stores).map((store) => {
        const name = isObject(store) && typeof store.identifier === 'string' ? store.identifier : fail('It has a store without a name');
        if (names.has(name)) fail(`It has the store ${shortKey(name)} twice`);
        names.add(name);
        // Of the records of a key, the last one counts. One without a value says that the key is gone.
        const entries = new Map();
        for (const record of listed(store.records)) {
            const value = isObject(record) ? record.value ?? null : null;
            if (!isObject(record) || typeof record.key !== 'string' || !(value === null || isTyped(value))) fail(`It has an invalid record of ${shortKey(name)}`);
            if (value === null) entries.delete(record.key);
            else entries.set(record.key, value);
        }
        return { name, values: valuesOf([...entries], count, faults) };
    });
}

const listed = (list) => (Array.isArray(list) ? list : fail('It has something else where a list should be'));

function valuesOf(entries, count, faults) {
    const measure = (value, depth) => {
        // Each level of a value has up to four of the form with types.
        count.value(Math.ceil(depth / 4));
        if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) measure(one, depth + 1);
    };
    for (const [, value] of entries) measure(value, 1);
    // What is no value in either form says nothing of the others.
    const known = entries.filter(([, value]) => value !== null);
    const convert = known.length && known.every(([, value]) => isTyped(value)) ? checkedValue : plain;
    return new Map(entries.flatMap(([key, value]) => entryOf(key, () => {
        try {
            return convert(value);
        } catch (error) { return fail(`The value of ${shortKey(key)} is not one: ${shortKey(error.message)}`); }
    }, faults)));
}

const isTyped = (value) => isObject(value) && Object.keys(value).length === 1
    && (['string', 'boolean', 'integer', 'unsigned', 'real', 'date', 'data', 'array', 'dictionary'].includes(Object.keys(value)[0])
        || isObject(value.sealed));

/** A value of JSON without types. */
const plain = (value) => (isExact(value) ? toWire(value) : fail('JSON cannot hold so large a number exactly'));
const isExact = (value) => (typeof value === 'object' && value !== null ? Object.values(value).every(isExact)
    : typeof value !== 'number' || (Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value)));

// Property lists in XML

/** The pieces of XML that a property list has: comments and instructions, tags, and text. */
const pieces = /<!--(?:(?!--)[\s\S])*-->|<\?[\s\S]*?\?>|<!DOCTYPE[^[>]*>|<!\[CDATA\[([\s\S]*?)\]\]>|<(\/?)([a-z]+)\s*(?:version\s*=\s*(?:"[^"]*"|'[^']*')\s*)?(\/?)>|([^<]+)/gy;
const entities = { lt: '<', gt: '>', amp: '&', quot: '"', apos: '\'' };

/** @returns {any} A value in the protocol's form. @throws {FileError} */
function xml(source, faults) {
    const text = source.replace(/^\ufeff/, '').replace(/\r\n?/g, '\n');
    if (/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/.test(text)) fail('It has a character that XML does not have');
    const count = new Count();
    /** Open containers; the first takes the root. */
    const stack = [{ name: 'plist', values: [], keys: [] }];
    let [leaf, content, isOpen, isClosed] = [null, '', false, false];
    /** Why the value of the root's last key is none. */
    let fault = null;
    /** What is made of a value; of a faulty one something else, which goes with its key. */
    const made = (make) => {
        try {
            return make();
        } catch (error) {
            if (!faults || stack[1]?.name !== 'dict' || count.isFull || !(error instanceof FileError)) throw error;
            fault ??= error.message;
            return { boolean: false };
        }
    };
    const add = (make) => {
        made(() => count.value(stack.length));
        const wire = made(make);
        const top = stack.at(-1);
        if (top.name === 'dict' && top.keys.length !== top.values.length + 1) fail('It has a value without a key');
        if (fault !== null && stack.length === 2) {
            faults.set(top.keys.pop(), fault);
            fault = null;
        } else top.values.push(wire);
    };
    const isUnknown = ({ name }) => !['plist', 'dict', 'array'].includes(name);
    const begin = (name) => {
        if (!isOpen !== (name === 'plist') || isClosed) fail(isClosed ? 'It has something after its end' : 'It has a value outside of <plist>');
        if (name === 'plist') {
            isOpen = true;
        } else if (Object.hasOwn(leaves, name)) {
            [leaf, content] = [name, ''];
        } else {
            made(() => (isUnknown({ name }) ? fail(`It has an element that property lists do not know: ${name}`) : count.value(stack.length)));
            stack.push({ name, values: [], keys: [] });
        }
    };
    const end = (name) => {
        if (leaf !== null) {
            if (name !== leaf) fail(`It has </${name}> where </${leaf}> should be`);
            leaf = null;
            if (name !== 'key') add(() => leaves[name](content));
            else if (stack.at(-1).name !== 'dict') fail('It has a key outside of a dictionary');
            else if (stack.at(-1).keys.push(content) !== stack.at(-1).values.length + 1) fail('It has a key without a value');
        } else if (name !== 'plist') {
            const top = stack.length > 1 ? stack.pop() : fail(`It has </${name}> without a beginning`);
            if (top.name !== name) fail(`It has </${name}> where </${top.name}> should be`);
            add(() => (name === 'dict' ? dictionary(top.keys, top.values) : wireArray(top.values)));
        } else if (stack.length > 1) fail(`It has </${name}> where something else should end`);
        else isClosed = true;
    };
    pieces.lastIndex = 0;
    while (pieces.lastIndex < text.length) {
        const at = pieces.lastIndex;
        const piece = pieces.exec(text) ?? fail(`It is not a property list: it cannot be read at character ${at}`);
        const [, verbatim, isEnd, name, isEmpty, plainText] = piece;
        if (name !== undefined) {
            if (isEnd) end(name);
            else {
                if (leaf !== null) fail(`It has an element in <${leaf}>`);
                begin(name);
                if (isEmpty) end(name);
            }
        } else if (verbatim !== undefined || plainText !== undefined) {
            const more = verbatim ?? plainText.replace(/&([^;&]*);?/g, entity);
            if (plainText?.includes(']]>')) fail('It has ]]> in a text');
            if (leaf !== null) content += more;
            else if (more.trim() && !isUnknown(stack.at(-1))) fail('It has text outside of a value');
        }
    }
    const [root] = stack;
    if (leaf !== null || stack.length > 1 || (isOpen && !isClosed)) fail('It is not complete');
    if (!isOpen || root.values.length !== 1) fail('It is not a property list');
    return root.values[0];
}

function entity(whole, name) {
    const code = /^#x[0-9a-f]{1,6}$/i.test(name) ? parseInt(name.slice(2), 16) : /^#\d{1,7}$/.test(name) ? Number(name.slice(1)) : NaN;
    if (whole.endsWith(';') && Object.hasOwn(entities, name)) return entities[name];
    if (!whole.endsWith(';') || !(code >= 0x20 || [9, 10, 13].includes(code)) || code > 0x10ffff || (code & 0xfff800) === 0xd800 || (code & 0xfffffe) === 0xfffe) fail(`It has an entity that is not known: &${name.slice(0, 20)}`);
    return String.fromCodePoint(code);
}

/** The value of an element. */
const leaves = {
    key: null,
    string: (text) => ({ string: text }),
    true: (text) => (text.trim() ? fail('It has text in a Boolean') : { boolean: true }),
    false: (text) => (text.trim() ? fail('It has text in a Boolean') : { boolean: false }),
    integer(text) {
        const digits = text.trim();
        const number = /^[+-]?(\d{1,20}|0x[0-9a-f]{1,16})$/i.test(digits) ? BigInt(digits.replace(/^[+-]/, '')) : fail('It has an invalid integer');
        return exactInteger(digits.startsWith('-') ? -number : number);
    },
    real(text) {
        const word = text.trim().toLowerCase();
        const known = { nan: NaN, inf: Infinity, '+infinity': Infinity, infinity: Infinity, '-infinity': -Infinity, '-inf': -Infinity };
        if (!Object.hasOwn(known, word) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(word)) fail('It has an invalid number');
        if (!Object.hasOwn(known, word) && !Number.isFinite(Number(word))) fail('It has a number that is too large');
        return { real: wireReal(known[word] ?? Number(word)) };
    },
    date(text) {
        const milliseconds = /^\s*-?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\dZ\s*$/.test(text) ? Date.parse(text.trim()) : NaN;
        // A day or an hour that there is not would become another one.
        if (Number.isNaN(milliseconds) || !new Date(milliseconds).toISOString().startsWith(text.trim().slice(0, -1))) fail('It has an invalid date');
        return { date: wireReal((milliseconds - dateReference) / 1_000) };
    },
    data(text) {
        const digits = text.replace(/\s/g, '');
        let again = null;
        try { again = btoa(atob(digits)); } catch { /* Not in base64. */ }
        // Another text lacks its padding, or has bits behind the last byte: something was lost.
        return again === digits ? { data: digits } : fail('It has data that is not in base64');
    },
};

const exactInteger = (number) => (number >= -(integerMax / 2n) && number < integerMax ? toWire(number)
    : fail('It has an integer of more than 64 bits'));

function dictionary(keys, values) {
    if (keys.length > values.length) fail('It has a key without a value');
    if (new Set(keys).size < keys.length) fail('It has a key twice in one dictionary');
    return wireDictionary(keys.map((key, i) => ({ key, value: values[i] })));
}

// Property lists in the binary format

/** @returns {any} A value in the protocol's form. @throws {FileError} */
function binary(data, faults) {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const damaged = () => fail('It is a damaged property list');
    /** A number of so many bytes, which is a size or a place. */
    const number = (at, size) => {
        let sum = 0;
        if (at < 0 || at + size > data.length) damaged();
        for (let i = 0; i < size; i += 1) sum = sum * 256 + data[at + i];
        return Number.isSafeInteger(sum) ? sum : damaged();
    };
    const trailer = data.length - 32;
    if (trailer < 9) damaged();
    const [offsetSize, referenceSize] = [data[trailer + 6], data[trailer + 7]];
    const [objects, top, table] = [8, 16, 24].map((at) => number(trailer + at, 8));
    if (![offsetSize, referenceSize].every((size) => size >= 1 && size <= 8) || top >= objects || table + objects * offsetSize > trailer) damaged();
    const count = new Count();
    /** Objects that contain the one that is read. */
    const above = new Set();
    const integer = (at, size) => {
        if (at + size > trailer) damaged();
        return size === 8 ? view.getBigInt64(at) : size === 16 ? (BigInt.asIntN(64, view.getBigUint64(at)) << 64n) + view.getBigUint64(at + 8) : BigInt(number(at, size));
    };
    const read = (index, depth) => {
        count.value(depth);
        if (index >= objects || above.has(index)) damaged();
        let at = number(table + index * offsetSize, offsetSize);
        if (at < 8 || at >= table) damaged();
        const [kind, low] = [data[at] >> 4, data[at] & 15];
        at += 1;
        if (kind === 0) return low === 8 ? { boolean: false } : low === 9 ? { boolean: true } : damaged();
        if (kind === 1) return low <= 4 ? exactInteger(integer(at, 1 << low)) : damaged();
        if (kind === 2 || kind === 3) {
            const isDate = kind === 3;
            if (at + (1 << low) > trailer || (low !== 3 && (isDate || low !== 2))) damaged();
            return { [isDate ? 'date' : 'real']: wireReal(low === 3 ? view.getFloat64(at) : view.getFloat32(at)) };
        }
        let length = low;
        if (low === 15) {
            const size = 1 << (data[at] & 15);
            if (data[at] >> 4 !== 1 || size > 8) damaged();
            length = number(at + 1, size);
            at += 1 + size;
        }
        const part = (size) => (length <= trailer && at + length * size <= trailer ? data.subarray(at, at + length * size) : damaged());
        if (kind === 4) return { data: base64(part(1)) };
        if (kind === 5) return { string: ascii7(part(1)) };
        if (kind === 6) return { string: new TextDecoder('utf-16be', { fatal: true }).decode(part(2)) };
        if (kind !== 10 && kind !== 13) return fail('It has something that is not a value of a store');
        part(referenceSize * (kind === 13 ? 2 : 1));
        above.add(index);
        const references = Array.from({ length: length * (kind === 13 ? 2 : 1) }, (_, i) => number(at + i * referenceSize, referenceSize));
        if (kind === 10) {
            const values = references.map((one) => read(one, depth + 1));
            above.delete(index);
            return wireArray(values);
        }
        const entries = references.slice(0, length).flatMap((one, i) => {
            const key = read(one, depth).string ?? fail('It has a key that is not text');
            return entryOf(key, () => {
                // What a faulty value has left.
                if (depth === 0) [...above].slice(1).forEach((inner) => above.delete(inner));
                return read(references[length + i], depth + 1);
            }, depth === 0 ? faults : null);
        });
        above.delete(index);
        return dictionary(entries.map(([key]) => key), entries.map(([, value]) => value));
    };
    try {
        return read(top, 0);
    } catch (error) { return error instanceof FileError ? fail(error.message) : damaged(); }
}

function ascii7(data) {
    if (data.some((byte) => byte > 127)) fail('It is a damaged property list');
    return utf8(data);
}
