// SPDX-License-Identifier: Apache-2.0

/**
 * Values: from JavaScript to the protocol's JSON form and back, their sizes and their order. The engine has
 * each in one canonical form, the protocol's: `{string: "a"}`, `{integer: "13"}`, `{array: {values: []}}`.
 * Two values are equal if their JSON texts are.
 */

import { depthMax } from './limits.js';

/** Enough for the digits of any real. */
const realTextMax = 2_048;
const reference = 978_307_200_000;
const [integerMin, integerMax, unsignedMax] = [-(2n ** 63n), 2n ** 63n - 1n, 2n ** 64n - 1n];

/** An error for an app: `code` for programs, `message` for people. */
export class UbiquityError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'UbiquityError';
    this.code = code;
    /** The keys whose writes were refused. @type {string[]} */
    this.keys = [];
  }
}

/** Foreign JSON violates the protocol. */
export class WireError extends Error {}

/** A real number that is a whole one, such as 1.0. Calculates and prints like a number. */
export class Real {
  constructor(value) {
    this.value = Number(value);
    Object.freeze(this);
  }
  valueOf() { return this.value; }
  toString() { return String(this.value); }
  toJSON() { return this.value; }
}

/** Makes a number a real even if it is a whole one: `store.set('volume', real(1))`. */
export const real = (value) => new Real(value);

/** A date that a `Date`, which has milliseconds, cannot represent exactly. */
export class ExactDate extends Date {
  /** @param {number} seconds Since 2001-01-01 00:00:00 UTC. */
  constructor(seconds) {
    super(Math.round(seconds * 1_000) + reference);
    this.seconds = seconds;
    /** A date that was set since is an ordinary one. */
    this.unset = this.getTime();
  }
}

/** Whether a string is Unicode, without unpaired surrogates. */
export const isText = (text) => typeof text === 'string' && !/\p{Surrogate}/u.test(text);

/** Turns what an app wrote into a value. @throws {UbiquityError} that names the place. @returns {Wire} */
export function toWire(value, place = 'the value', depth = 1) {
  const refuse = (reason) => { throw new UbiquityError('unsupported-value', `${place}: ${reason}`); };
  if (depth > depthMax) refuse(`a value may have at most ${depthMax} levels`);
  switch (typeof value) {
    case 'string':
      if (!isText(value)) refuse('a string with an unpaired surrogate is not Unicode');
      return { string: value };
    case 'boolean': return { boolean: value };
    case 'bigint':
      if (value < integerMin || value > unsignedMax) refuse('an integer has at most 64 bits');
      return wireInteger(value);
    case 'number': return isInteger(value) ? { integer: String(value) } : { real: wireReal(value) };
    case 'object': if (value !== null) break;
    // falls through
    default: refuse(`${value === null ? 'null' : typeof value} is not a value of a store`);
  }
  if (value instanceof Real) return { real: wireReal(value.value) };
  // Also objects of another window, of which `instanceof` knows nothing.
  const tag = Object.prototype.toString.call(value);
  if (tag === '[object Date]' && 'getTime' in value) {
    const time = value.getTime();
    if (value instanceof ExactDate && Object.is(time, value.unset)) return { date: wireReal(value.seconds) };
    if (Number.isNaN(time)) refuse('an invalid Date is not a value of a store');
    return { date: wireReal((time - reference) / 1_000) };
  }
  if (tag === '[object Uint8Array]' && ArrayBuffer.isView(value)) return { data: base64(value) };
  if (Array.isArray(value)) {
    return wireArray(Array.from(value, (one, index) => toWire(one, `${place}[${index}]`, depth + 1)));
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    refuse(`a ${value.constructor?.name ?? 'class'} is not a value of a store`);
  }
  return wireDictionary(Object.entries(value).map(([key, entry]) => {
    if (!isText(key)) refuse('a key with an unpaired surrogate is not Unicode');
    return { key, value: toWire(entry, `${place}.${key}`, depth + 1) };
  }));
}

/** Whether a number is an integer to an app. -0 is a real. */
const isInteger = (number) => Number.isSafeInteger(number) && !Object.is(number, -0);
const wireInteger = (value) => ({ [value > integerMax ? 'unsigned' : 'integer']: String(value) });
export const wireReal = (value) =>
  (!Number.isFinite(value) ? String(value) : Object.is(value, -0) ? '-0' : value);
/** @returns {Wire} */
export const wireArray = (values) => ({ array: values.length ? { values } : {} });
/** @param {{key: string, value: Wire}[]} entries With different keys, in any order. @returns {Wire} */
export const wireDictionary = (entries) => ({ dictionary: entries.length
  ? { entries: entries.sort((a, b) => compareText(a.key, b.key)) } : {} });

/** All types in their order: how foreign JSON becomes one, what an app reads, its size, and its order. */
const types = {
  string: { check: (json) => checkedText(json), bytes: textBytes, order: compareText },
  boolean: {
    check(json) {
      if (typeof json !== 'boolean') throw new WireError('a boolean is not true or false');
      return json;
    },
    bytes: () => 1, order: compare,
  },
  integer: {
    check: (json) => checkedInteger(json, integerMin, integerMax),
    read: readInteger, order: (a, b) => compare(BigInt(a), BigInt(b)),
  },
  unsigned: {
    check: (json) => checkedInteger(json, 0n, unsignedMax),
    read: readInteger, order: (a, b) => compare(BigInt(a), BigInt(b)),
  },
  real: {
    check: checkedReal, order: compareBits,
    read: (content) => (isInteger(Number(content)) ? new Real(content) : Number(content)),
  },
  date: {
    check: checkedReal, order: compareBits,
    read(content) {
      const exact = new ExactDate(Number(content));
      const isPlain = Object.is((exact.getTime() - reference) / 1_000, exact.seconds);
      return isPlain && Number.isFinite(exact.seconds) ? new Date(exact.getTime()) : exact;
    },
  },
  data: {
    check(json) {
      try {
        return btoa(atob(checkedText(json).replaceAll('-', '+').replaceAll('_', '/').replace(/={1,2}$/, '')));
      } catch { throw new WireError('data is not in base64'); }
    },
    read: (content) => Uint8Array.from(atob(content), (character) => character.charCodeAt(0)),
    bytes: (content) => content.length / 4 * 3 - (content.match(/=+$/)?.[0].length ?? 0),
    order: (a, b) => compare(atob(a), atob(b)),
  },
  array: {
    check: (json, depth) =>
      wireArray(checkedList(json, 'values').map((one) => checkedValue(one, depth + 1))).array,
    read: ({ values = [] }) => values.map(fromWire),
    bytes: ({ values = [] }) => values.reduce((sum, one) => sum + 8 + quotaBytes(one), 0),
    order: (a, b) => compareLists(a.values, b.values, compareValues),
  },
  dictionary: {
    check(json, depth) {
      const entries = checkedList(json, 'entries').map((entry) =>
        ({ key: checkedText(entry?.key ?? ''), value: checkedValue(entry?.value, depth + 1) }));
      if (new Set(entries.map(({ key }) => key)).size === entries.length) {
        return wireDictionary(entries).dictionary;
      }
      throw new WireError('a key occurs twice in one dictionary');
    },
    // Like JSON.parse, this makes `__proto__` an ordinary property too.
    read: ({ entries = [] }) => Object.fromEntries(entries.map(({ key, value }) => [key, fromWire(value)])),
    bytes: ({ entries = [] }) =>
      entries.reduce((sum, { key, value }) => sum + 8 + textBytes(key) + quotaBytes(value), 0),
    order: (a, b) => compareLists(a.entries, b.entries, (one, other) =>
      compareText(one.key, other.key) || compareValues(one.value, other.value)),
  },
};
const kinds = Object.keys(types);
const partsOf = (wire) => Object.entries(wire)[0];

/** Turns a value into what an app gets: fresh objects each time. */
export function fromWire(wire) {
  const [kind, content] = partsOf(wire);
  return types[kind].read ? types[kind].read(content) : content;
}

/** The bytes that a value counts towards the limits of a store. @returns {number} */
export function quotaBytes(wire) {
  const [kind, content] = partsOf(wire);
  return types[kind].bytes ? types[kind].bytes(content) : 8;
}

/** Makes foreign JSON canonical. @returns {Wire} @throws {WireError} */
export function checkedValue(json, depth = 1) {
  if (depth > depthMax) throw new WireError(`a value has more than ${depthMax} levels`);
  if (!isObject(json)) throw new WireError('a value is not an object');
  const [kind, ...more] = kinds.filter((one) => json[one] != null);
  if (!kind || more.length) throw new WireError('a value must have exactly one type');
  const content = types[kind].check(json[kind], depth);
  // A small unsigned integer is an integer, whatever it is called.
  return kind === 'unsigned' ? wireInteger(BigInt(content)) : { [kind]: content };
}

/** The order of values, which decides if all else is equal. Null, a deletion, is the least. */
export function compareValues(a, b) {
  if (!a || !b) return (a ? 1 : 0) - (b ? 1 : 0);
  const [[kind, one], [otherKind, other]] = [partsOf(a), partsOf(b)];
  return kind === otherKind ? types[kind].order(one, other) : kinds.indexOf(kind) - kinds.indexOf(otherKind);
}

/** Whether two values, or deletions (null), are equal. */
export const isSame = (a, b) => a === b || (a && b ? JSON.stringify(a) === JSON.stringify(b) : false);
/** @returns {json is Record<string, any>} */
export const isObject = (json) => typeof json === 'object' && json !== null && !Array.isArray(json);

export function checkedList(json, name) {
  if (!isObject(json)) throw new WireError(`the object with "${name}" is missing`);
  const list = json[name] ?? [];
  if (!Array.isArray(list)) throw new WireError(`"${name}" is not a list`);
  return list;
}

export function checkedText(json, what = 'a string') {
  if (!isText(json)) throw new WireError(`${what} is not Unicode text`);
  return json;
}

export function checkedInteger(json, min, max) {
  if (!(Number.isSafeInteger(json) || (typeof json === 'string' && /^-?\d{1,20}$/.test(json)))) {
    throw new WireError('an integer is malformed');
  }
  const integer = BigInt(json);
  if (integer < min || integer > max) throw new WireError(`${integer} is out of range`);
  return String(integer);
}

function checkedReal(json) {
  const isReal = typeof json === 'number' || (typeof json === 'string' && json.length <= realTextMax
    && /^(-?(\d+(\.\d*)?([eE][+-]?\d+)?|Infinity)|NaN)$/.test(json));
  if (!isReal) throw new WireError('a real number is malformed');
  const number = Number(json);
  if (!Number.isFinite(number) && !/Inf|NaN/.test(String(json))) {
    throw new WireError('a number is out of range');
  }
  return wireReal(number);
}

function readInteger(digits) {
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : BigInt(digits);
}

export function textBytes(text) { return encoder.encode(text).length; }
const encoder = new TextEncoder();

/** Compares by the bytes in UTF-8, which is the order of code points. */
export function compareText(a, b) {
  const end = Math.min(a.length, b.length);
  let at = 0;
  while (at < end && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  if (at === end) return a.length - b.length;
  // A surrogate belongs to a code point beyond all others.
  const place = (unit) => ((unit & 0xf800) === 0xd800 ? unit + 0x10000 : unit);
  return place(a.charCodeAt(at)) - place(b.charCodeAt(at));
}

/** The order of what `<` compares. */
export function compare(a, b) { return a < b ? -1 : a > b ? 1 : 0; }

function compareLists(a = [], b = [], order) {
  const at = a.findIndex((one, i) => i >= b.length || order(one, b[i]) !== 0);
  return at < 0 || at >= b.length ? a.length - b.length : order(a[at], b[at]);
}

/** Compares numbers by their 64 bits. */
function compareBits(...numbers) {
  const [a, b] = numbers.map((number) => {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, Number(number));
    return Number.isNaN(Number(number)) ? 0x7ff8000000000000n : view.getBigUint64(0);
  });
  return compare(a, b);
}

export function base64(data) {
  let text = '';
  for (let i = 0; i < data.length; i += 0x8000) text += String.fromCharCode(...data.subarray(i, i + 0x8000));
  return btoa(text);
}
