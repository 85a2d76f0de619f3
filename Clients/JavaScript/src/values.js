// SPDX-License-Identifier: Apache-2.0

/**
 * Values: from JavaScript to the protocol's JSON form and back, their sizes and their order.
 *
 * The engine keeps every value in one canonical form, the protocol's own: `{string: "a"}`,
 * `{integer: "13"}`, `{array: {values: []}}`. Two values are equal if their JSON texts are.
 *
 * @typedef {Record<string, any>} Wire
 */

/** The levels of a value: 511 containers, and what they contain. */
export const depthMax = 512;
const reference = 978_307_200_000;
const integerMin = -(2n ** 63n);
const integerMax = 2n ** 63n - 1n;
const unsignedMax = 2n ** 64n - 1n;

/** What this library reports to an app: `code` for programs, `message` for people. */
export class UbiquityError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = 'UbiquityError';
    this.code = code;
    /** The keys whose writes were refused. @type {string[]} */
    this.keys = [];
  }
}

/** A real number that is a whole one, such as 1.0. Calculates and prints like a number. */
export class Real {
  /** @param {number} value */
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
    /** @private A date that was set since is an ordinary one. */
    this.unset = this.getTime();
  }
}

const loneSurrogate = /\p{Surrogate}/u;
/** Whether a string is Unicode, without unpaired surrogates. */
export const isText = (text) => typeof text === 'string' && !loneSurrogate.test(text);

/** Turns what an app wrote into a value. @throws {UbiquityError} that names the place. */
export function toWire(value, place = 'the value', depth = 1) {
  const refuse = (reason) => {
    throw new UbiquityError('unsupported-value', `${place}: ${reason}`);
  };
  if (depth > depthMax) refuse(`a value may have at most ${depthMax} levels`);
  switch (typeof value) {
    case 'string':
      if (!isText(value)) refuse('a string with an unpaired surrogate is not Unicode');
      return { string: value };
    case 'boolean': return { boolean: value };
    case 'bigint':
      if (value < integerMin || value > unsignedMax) refuse('an integer has at most 64 bits');
      return wireInteger(value);
    case 'number':
      return Number.isSafeInteger(value) && !Object.is(value, -0)
        ? { integer: String(value) } : { real: wireReal(value) };
    case 'object': break;
    default: refuse(`${typeof value} is not a value of a store`);
  }
  if (value === null) refuse('null is not a value of a store');
  if (value instanceof Real) return { real: wireReal(value.value) };
  // Also those of another window, whose classes are others.
  const tag = Object.prototype.toString.call(value);
  if (tag === '[object Date]' && 'getTime' in value) {
    return { date: wireReal(seconds(value, refuse)) };
  }
  if (tag === '[object Uint8Array]' && ArrayBuffer.isView(value)) return { data: base64(value) };
  if (Array.isArray(value)) {
    return wireArray(Array.from(value, (element, index) =>
      toWire(element, `${place}[${index}]`, depth + 1)));
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

/** @param {Wire[]} values @returns {Wire} */
export const wireArray = (values) => ({ array: values.length ? { values } : {} });

/** @param {{key: string, value: Wire}[]} entries With different keys, in any order. */
export function wireDictionary(entries) {
  if (entries.length === 0) return { dictionary: {} };
  return { dictionary: { entries: entries.sort((a, b) => compareText(a.key, b.key)) } };
}

/** @param {Date} date @param {(reason: string) => void} refuse */
function seconds(date, refuse) {
  if (date instanceof ExactDate && Object.is(date.getTime(), date['unset'])) return date.seconds;
  if (Number.isNaN(date.getTime())) refuse('an invalid Date is not a value of a store');
  return (date.getTime() - reference) / 1_000;
}

const wireInteger = (value) =>
  value > integerMax ? { unsigned: String(value) } : { integer: String(value) };

export const wireReal = (value) =>
  !Number.isFinite(value) ? String(value) : Object.is(value, -0) ? '-0' : value;

/** Turns a value into what an app gets: fresh objects each time. */
export function fromWire(wire) {
  const [kind, content] = Object.entries(wire)[0];
  switch (kind) {
    case 'integer': case 'unsigned': {
      const number = Number(content);
      return Number.isSafeInteger(number) ? number : BigInt(content);
    }
    case 'real': {
      const number = Number(content);
      const isInteger = Number.isSafeInteger(number) && !Object.is(number, -0);
      return isInteger ? new Real(number) : number;
    }
    case 'date': {
      const date = new ExactDate(Number(content));
      const plain = new Date(date.getTime());
      const isExact = Object.is((plain.getTime() - reference) / 1_000, date.seconds);
      return isExact && Number.isFinite(date.seconds) ? plain : date;
    }
    case 'data': return bytes(content);
    case 'array': return (content.values ?? []).map(fromWire);
    case 'dictionary': {
      // Like JSON.parse, which makes `__proto__` an ordinary property too.
      const object = {};
      for (const { key, value } of content.entries ?? []) {
        Object.defineProperty(object, key, {
          value: fromWire(value), writable: true, enumerable: true, configurable: true,
        });
      }
      return object;
    }
    default: return content;
  }
}

/** Why foreign JSON is not what the protocol says. */
export class WireError extends Error {}

/** Makes foreign JSON canonical. @returns {Wire} @throws {WireError} */
export function checkedValue(json, depth = 1) {
  if (depth > depthMax) throw new WireError(`a value has more than ${depthMax} levels`);
  if (!isObject(json)) throw new WireError('a value is not an object');
  const kinds = Object.keys(checks).filter((kind) => json[kind] != null);
  if (kinds.length !== 1) throw new WireError('a value has not exactly one type');
  const content = Object.hasOwn(json, kinds[0]) ? json[kinds[0]] : undefined;
  return checks[kinds[0]](content, depth);
}

/** @type {Record<string, (content: any, depth: number) => Wire>} */
const checks = {
  string: (content) => ({ string: checkedText(content) }),
  boolean(content) {
    if (typeof content !== 'boolean') throw new WireError('a boolean is not true or false');
    return { boolean: content };
  },
  integer: (content) => ({ integer: checkedInteger(content, integerMin, integerMax) }),
  // A smaller one is an integer, whatever it is called.
  unsigned: (content) => wireInteger(BigInt(checkedInteger(content, 0n, unsignedMax))),
  real: (content) => ({ real: checkedReal(content) }),
  date: (content) => ({ date: checkedReal(content) }),
  data(content) {
    try {
      if (typeof content !== 'string') throw new Error();
      const plain = content.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '');
      return { data: btoa(atob(plain)) };
    } catch { throw new WireError('data is not in base64'); }
  }, array(content, depth) {
    return wireArray(checkedList(content, 'values').map((one) => checkedValue(one, depth + 1)));
  }, dictionary(content, depth) {
    const keys = new Set();
    return wireDictionary(checkedList(content, 'entries').map((entry) => {
      const key = checkedText(entry?.key ?? '');
      if (keys.has(key)) throw new WireError('a key occurs twice in one dictionary');
      keys.add(key);
      return { key, value: checkedValue(entry?.value, depth + 1) };
    }));
  },
};

/** @param {unknown} json @returns {json is Record<string, any>} */
export const isObject = (json) => typeof json === 'object' && json !== null && !Array.isArray(json);

/** @returns {any[]} */
export function checkedList(json, name) {
  if (!isObject(json)) throw new WireError(`there is no "${name}"`);
  const list = json[name] ?? [];
  if (!Array.isArray(list)) throw new WireError(`"${name}" is not a list`);
  return list;
}

export function checkedText(json, what = 'a string') {
  if (!isText(json)) throw new WireError(`${what} is not Unicode text`);
  return (json);
}

/** @returns {string} The digits. */
export function checkedInteger(json, min, max) {
  const isNumber = typeof json === 'number' ? Number.isSafeInteger(json)
    : typeof json === 'string' && /^-?\d{1,20}$/.test(json);
  if (!isNumber) throw new WireError('an integer is not an integer');
  const integer = BigInt(json);
  if (integer < min || integer > max) throw new WireError(`${integer} is out of range`);
  return String(integer);
}

const realText = /^(-?(\d+\.?\d*([eE][+-]?\d+)?|Infinity)|NaN)$/;
function checkedReal(json) {
  if (typeof json !== 'number' && !(typeof json === 'string' && realText.test(json))) {
    throw new WireError('a number is not a number');
  }
  const number = Number(json);
  if (!Number.isFinite(number) && !/Inf|NaN/.test(String(json))) {
    throw new WireError('a number is out of range');
  }
  return wireReal(number);
}

/** The bytes of a string in UTF-8. */
export function textBytes(text) {
  let count = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    // Each half of a pair counts two.
    if (unit > 0x7f) count += unit > 0x7ff && (unit & 0xf800) !== 0xd800 ? 2 : 1;
  }
  return count;
}

/** The bytes that a value counts towards the limits of a store. @returns {number} */
export function quotaBytes(wire) {
  const [kind, content] = Object.entries(wire)[0];
  switch (kind) {
    case 'string': return textBytes(content);
    case 'boolean': return 1;
    case 'data': return content.length / 4 * 3 - (content.match(/=+$/)?.[0].length ?? 0);
    case 'array': return (content.values ?? []).reduce(
      (sum, one) => sum + 8 + quotaBytes(one), 0);
    case 'dictionary': return (content.entries ?? []).reduce(
      (sum, entry) =>
        sum + 8 + textBytes(entry.key) + quotaBytes(entry.value), 0);
    default: return 8;
  }
}

/** Whether two values, or deletions (null), are equal. */
export const isSame = (a, b) =>
  a === b || (a !== null && b !== null && JSON.stringify(a) === JSON.stringify(b));

/** Compares by the bytes in UTF-8, which is the order of code points. */
export function compareText(a, b) {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i += 1) {
    let [one, other] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (one === other) continue;
    // A surrogate belongs to a code point beyond all others.
    if ((one & 0xf800) === 0xd800) one += 0x10000;
    if ((other & 0xf800) === 0xd800) other += 0x10000;
    return one - other;
  }
  return a.length - b.length;
}

const kinds = ['string', 'boolean', 'integer', 'unsigned', 'real', 'date', 'data', 'array',
  'dictionary'];

/** The order of values, which decides if all else is equal. Null, a deletion, is the least. */
export function compareValues(a, b) {
  if (a === null || b === null) return (a === null ? 0 : 1) - (b === null ? 0 : 1);
  const [[kind, one], [otherKind, other]] = [Object.entries(a)[0], Object.entries(b)[0]];
  if (kind !== otherKind) return kinds.indexOf(kind) - kinds.indexOf(otherKind);
  switch (kind) {
    case 'string': return compareText(one, other);
    case 'integer': case 'unsigned': return compare(BigInt(one), BigInt(other));
    case 'real': case 'date': return compare(bits(Number(one)), bits(Number(other)));
    case 'data': return compare(atob(one), atob(other));
    case 'array': return compareLists(one.values, other.values, compareValues);
    case 'dictionary': return compareLists(one.entries, other.entries, (x, y) =>
      compareText(x.key, y.key) || compareValues(x.value, y.value));
    default: return compare(one, other);
  }
}

/** @template T @param {T} a @param {T} b */
export const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** @param {any[]} a @param {any[]} b @param {(x: any, y: any) => number} order */
function compareLists(a = [], b = [], order) {
  for (let i = 0; i < Math.min(a.length, b.length); i += 1) {
    const result = order(a[i], b[i]);
    if (result !== 0) return result;
  }
  return a.length - b.length;
}

const view = new DataView(new ArrayBuffer(8));
function bits(number) {
  view.setFloat64(0, number);
  return Number.isNaN(number) ? 0x7ff8000000000000n : view.getBigUint64(0);
}

export function base64(data) {
  let text = '';
  for (let i = 0; i < data.length; i += 0x8000) {
    text += String.fromCharCode(...data.subarray(i, i + 0x8000));
  }
  return btoa(text);
}

const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
