// SPDX-License-Identifier: Apache-2.0

/**
 * Values, as an app reads and writes them, and the same with all types apart: there, a real that is a whole number
 * is a `Real`.
 */

/** The most levels of a value: 511 containers in each other, and what the innermost contains. */
export const depthMax = 512;
/** The milliseconds from 1970 to the beginning of dates. */
const reference = 978_307_200_000;
const [integerMin, integerMax] = [-(2n ** 63n), 2n ** 64n - 1n];
/** Of each array and object that an app has read, its value with all types apart. */
const exacts = new WeakMap();

/** An error for an app: `code` for programs, `message` for people. index.d.ts lists the codes. */
export class UbiquityError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'UbiquityError';
    this.code = code;
    /** The keys whose writes were refused. @type {string[]} */
    this.keys = [];
  }
}

/** Why something failed, as a sentence without its full stop; never empty, though the errors of browsers can be. */
export function reasonOf(error) {
  const { name = '', message = '' } = error ?? {};
  if (message) return String(message);
  return name === 'QuotaExceededError' ? 'there is no room left for the data of this site'
    : String(name || error || 'no reason was given');
}

/** Something foreign violates the protocol. */
export class WireError extends UbiquityError {
  constructor(message) { super('unreachable', message); }
}

/** A number that is written as a real, even if it is a whole one. */
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

/** A value that only a device with the account's key can read. Nobody can write one. */
export class Sealed {
  /** @param {number} generation The number of the key. @param {Uint8Array} bytes */
  constructor(generation, bytes) {
    this.generation = generation;
    this.bytes = bytes;
    Object.freeze(this);
  }
  toString() { return `sealed, ${this.bytes.length} bytes`; }
  toJSON() { return this.toString(); }
}

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

/** The date of so many seconds: exact, where a `Date` is not. @param {number} seconds */
export function dateOf(seconds) {
  const exact = new ExactDate(seconds);
  const isPlain = Object.is((exact.getTime() - reference) / 1_000, seconds);
  return isPlain && Number.isFinite(seconds) ? new Date(exact.getTime()) : exact;
}

/** @param {Date} date */
export function secondsOf(date) {
  if (date instanceof ExactDate && Object.is(date.getTime(), date.unset)) return date.seconds;
  return (date.getTime() - reference) / 1_000;
}

/** Whether a string is Unicode, without unpaired surrogates. */
export const isText = (text) => typeof text === 'string' && !/\p{Surrogate}/u.test(text);

/** Whether a number is an integer to an app. -0 is a real. */
export const isInteger = (number) => Number.isSafeInteger(number) && !Object.is(number, -0);

const isReal = (exact) => exact instanceof Real || (typeof exact === 'number' && !isInteger(exact));
export const isNumber = (exact) => ['number', 'bigint'].includes(typeof exact) || exact instanceof Real;
export const isDictionary = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
  && !(value instanceof Real) && !(value instanceof Sealed) && !(value instanceof Date) && !(value instanceof Uint8Array);

/** What an app reads: numbers are numbers, and nobody can change it. */
export function readable(exact) {
  if (exact instanceof Real) return exact.value;
  const value = Array.isArray(exact) ? exact.map(readable) : isDictionary(exact)
    ? Object.fromEntries(Object.entries(exact).map(([key, one]) => [key, readable(one)])) : null;
  // An app can set a date, and bytes: its own.
  if (exact instanceof Date) return dateOf(secondsOf(exact));
  if (exact instanceof Uint8Array) return exact.slice();
  if (value === null) return exact;
  exacts.set(value, exact);
  return Object.freeze(value);
}

/** Remembers the exact values of a collection that an app gets. */
export function remember(collection, exact) {
  exacts.set(collection, exact);
  return collection;
}

export const exactOf = (collection) => exacts.get(collection);

/**
 * What an app wrote, with all types apart. A whole number becomes a real where `old`, the value from before, has one.
 * @throws {UbiquityError} that names the place.
 */
export function writable(value, old, place, depth = 1) {
  const refuse = (reason) => { throw new UbiquityError('unsupported-value', `${place}: ${reason}`); };
  if (depth > depthMax) refuse(`a value may have at most ${depthMax} levels`);
  switch (typeof value) {
    case 'string':
      if (!isText(value)) refuse('a string with an unpaired surrogate is not Unicode');
      return value;
    case 'boolean': return value;
    case 'bigint':
      if (value < integerMin || value > integerMax) refuse('an integer has at most 64 bits');
      return value;
    case 'number': return isReal(old) ? new Real(value) : value;
    case 'object': if (value !== null) break;
    // falls through
    default: refuse(`${value === null ? 'null' : typeof value} is not a value of a store`);
  }
  if (value instanceof Real || value instanceof Uint8Array) return value;
  // Also objects of another window, of which `instanceof` knows nothing.
  const tag = Object.prototype.toString.call(value);
  if (tag === '[object Date]' && 'getTime' in value) {
    if (value instanceof ExactDate) return dateOf(secondsOf(value));
    if (Number.isNaN(value.getTime())) refuse('an invalid Date is not a value of a store');
    return new Date(value.getTime());
  }
  if (tag === '[object Uint8Array]') return Uint8Array.from(value);
  // What was read is what it was, wherever it is written.
  const before = exacts.get(value) ?? old;
  if (Array.isArray(value)) {
    const list = Array.isArray(before) ? before : [];
    const numbers = list.filter(isNumber);
    const areReal = numbers.length > 0 && numbers.every(isReal);
    return Array.from(value, (one, index) => writable(
      one, areReal && typeof one === 'number' ? numbers[0] : list[index], `${place}[${index}]`, depth + 1));
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    refuse(`a ${value.constructor?.name ?? 'class'} is not a value of a store`);
  }
  const fields = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(fields.map(([key, one]) => {
    if (!isText(key)) refuse('a key with an unpaired surrogate is not Unicode');
    const was = isDictionary(before) && Object.hasOwn(before, key) ? before[key] : undefined;
    return [key, writable(one, was, `${place}.${key}`, depth + 1)];
  }));
}
