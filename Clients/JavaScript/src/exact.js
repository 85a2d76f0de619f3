// SPDX-License-Identifier: Apache-2.0

/**
 * Values in the protocol's JSON form, which tells all types apart, in one canonical form of each: `{string: "a"}`,
 * `{integer: "13"}`, `{array: {values: []}}`. Two values are equal if their JSON texts are.
 */

import { Real, Sealed, WireError, dateOf, depthMax, isDictionary, isInteger, isText, secondsOf, writable } from './values.js';

/** Enough for the digits of any real. */
const realTextMax = 2_048;
const [integerMin, integerMax, unsignedMax] = [-(2n ** 63n), 2n ** 63n - 1n, 2n ** 64n - 1n];

/**
 * Turns what an app wrote into a value.
 * @returns {Wire} @throws {import('./values.js').UbiquityError} that names the place.
 */
export const toWire = (value, place = 'the value') => wireOf(writable(value, undefined, place));

/** @returns {Wire} */
function wireOf(exact) {
  switch (typeof exact) {
    case 'string': return { string: exact };
    case 'boolean': return { boolean: exact };
    case 'bigint': return wireInteger(exact);
    case 'number': return isInteger(exact) ? { integer: String(exact) } : { real: wireReal(exact) };
    default:
  }
  if (exact instanceof Real) return { real: wireReal(exact.value) };
  if (exact instanceof Date) return { date: wireReal(secondsOf(exact)) };
  if (Array.isArray(exact)) return wireArray(exact.map(wireOf));
  if (!isDictionary(exact)) return { data: base64(exact) };
  return wireDictionary(Object.entries(exact).map(([key, value]) => ({ key, value: wireOf(value) })));
}

const wireInteger = (value) => ({ [value > integerMax ? 'unsigned' : 'integer']: String(value) });
export const wireReal = (value) =>
  (!Number.isFinite(value) ? String(value) : Object.is(value, -0) ? '-0' : value);
/** @returns {Wire} */
export const wireArray = (values) => ({ array: values.length ? { values } : {} });
/** @param {{key: string, value: Wire}[]} entries With different keys, in any order. @returns {Wire} */
export const wireDictionary = (entries) => ({ dictionary: entries.length
  ? { entries: entries.sort((a, b) => compareText(a.key, b.key)) } : {} });

/** All types: how foreign JSON becomes one, and what an app writes of it. */
const types = {
  string: { check: (json) => checkedText(json) },
  boolean: {
    check(json) {
      if (typeof json !== 'boolean') throw new WireError('a boolean is not true or false');
      return json;
    },
  },
  integer: { check: (json) => checkedInteger(json, integerMin, integerMax), read: BigInt },
  unsigned: { check: (json) => checkedInteger(json, 0n, unsignedMax), read: BigInt },
  real: { check: checkedReal, read: (content) => new Real(content) },
  date: { check: checkedReal, read: (content) => dateOf(Number(content)) },
  data: {
    check(json) {
      try {
        return btoa(atob(checkedText(json).replaceAll('-', '+').replaceAll('_', '/').replace(/={1,2}$/, '')));
      } catch { throw new WireError('data is not in base64'); }
    },
    read: (content) => bytesOf(content),
  },
  array: {
    check: (json, depth) =>
      wireArray(checkedList(json, 'values').map((one) => checkedValue(one, depth + 1))).array,
    read: ({ values = [] }) => values.map(fromWire),
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
  },
  sealed: {
    check() { throw new WireError('a sealed value can only be read by a device with its key'); },
    read: ({ generation = 0, box = '' }) => new Sealed(generation, bytesOf(box)),
  },
};
const kinds = Object.keys(types);

/** Turns a value into what an app writes, with all types apart. */
export function fromWire(wire) {
  const [[kind, content]] = Object.entries(wire);
  return types[kind].read ? types[kind].read(content) : content;
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

function checkedText(json) {
  if (!isText(json)) throw new WireError('a string is not Unicode text');
  return json;
}

function checkedInteger(json, min, max) {
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

export function base64(data) {
  let text = '';
  for (let i = 0; i < data.length; i += 0x8000) text += String.fromCharCode(...data.subarray(i, i + 0x8000));
  return btoa(text);
}

/** The bytes of base64. */
export const bytesOf = (text) => Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));
