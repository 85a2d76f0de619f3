// SPDX-License-Identifier: Apache-2.0

/**
 * Records: who wrote what, when, and which of two writes wins.
 *
 * A stamp is text of 48 hexadecimal digits, so that comparing texts compares stamps: a timestamp (12 digits
 * of milliseconds, 4 of the counter), the device (16) and the digest (16).
 */

import {
  WireError, checkedInteger, checkedText, checkedValue, compareText, compareValues, isObject, isSame,
  quotaBytes, textBytes,
} from './values.js';
import { ceiling } from './limits.js';
import { comparable, comparableRemoved, countOf, isLess } from './merging.js';

export const zero = '0'.repeat(16);
/** The device of writes that were made before the first sign-in. */
export const noDevice = zero;
const millisecondsMax = 2 ** 48 - 1;
const hex = (number, digits) => number.toString(16).padStart(digits, '0');

export const timestamp = (milliseconds, counter = 0) =>
  hex(Math.min(Math.max(Math.trunc(milliseconds), 0), millisecondsMax), 12) + hex(counter, 4);
export const milliseconds = (stamp) => parseInt(stamp.slice(0, 12), 16);
export const counter = (stamp) => parseInt(stamp.slice(12, 16), 16);
/** The smallest timestamp after this one. */
export function next(time) {
  const [ms, count] = [milliseconds(time), counter(time)];
  if (count < 0xffff) return timestamp(ms, count + 1);
  return ms < millisecondsMax ? timestamp(ms + 1) : time;
}

export const stampOf = (time, device, digest = zero) => time + device + digest;
export const timeOf = (stamp) => stamp.slice(0, 16);
export const deviceOf = (stamp) => stamp.slice(16, 32);
export const digestOf = (stamp) => stamp.slice(32);
export const withoutDigest = (stamp) => stamp.slice(0, 32) + zero;
/** The greater of two texts. */
export const later = (a, b) => (a < b ? b : a);
/** Separates a key and a part: it does not occur in Unicode text. */
const separator = '\uDBFF';
export const entryID = (key, part = '') => (part === '' ? key : key + separator + part);
export const idOf = ({ key, part }) => entryID(key, part);
/** @returns {[key: string, part: string]} */
export function keyAndPart(id) {
  const end = id.indexOf(separator);
  return end < 0 ? [id, ''] : [id.slice(0, end), id.slice(end + 1)];
}

/** Whether it is a run's count or the removal of one. */
export const isCount = (row) => row.part.startsWith('c');
/** Only a server makes these: a counter's fold, and the deletions of the runs in it. */
export const isOfServer = (row) => row.part === 'c+' || (isCount(row) && row.value === null);

/** The cost of a write in a push. */
export const pushBytes = ({ key, part, value }) =>
  256 + textBytes(key) + (part ? 1 + textBytes(part) : 0) + (value ? quotaBytes(value) : 0);

/**
 * Of parts that their run changes in place, the one that has come further wins, whatever the stamps.
 * @returns {boolean | null} Null where the stamps decide.
 */
export function isBehind(a, b) {
  if (!a.value || !b.value) return null;
  const kind = a.part[0];
  if (kind === 'c') {
    const [mine, theirs] = [countOf(a.value), countOf(b.value)];
    return !mine || !theirs || mine.times === theirs.times ? null : mine.times < theirs.times;
  }
  if (kind !== 'x' && kind !== 'n') return null;
  const [mine, theirs] = [a.value, b.value].map((value) => comparable(value) ?? comparableRemoved(value));
  if (!mine || !theirs) return null;
  if (isLess(mine, theirs) || isLess(theirs, mine)) return isLess(mine, theirs) === (kind === 'x');
  const [isRemoved, areTheirs] = [!comparable(a.value), !comparable(b.value)];
  return isRemoved === areTheirs ? null : areTheirs;
}

/** Whether a write loses to another one of the same entry. Of two equal stamps, neither does. */
export const isOlder = (a, b) => isBehind(a, b) ?? a.stamp < b.stamp;
/** Whether a write replaces another one of the same entry. */
export const wins = (a, b) => isOlder(b, a) || (!isOlder(a, b) && compareValues(b.value, a.value) < 0);

export const isSameRow = (a, b) =>
  a.stamp === b.stamp && a.key === b.key && a.part === b.part && isSame(a.value, b.value);

/**
 * A digest of what is written together: the same for equal writes in any order, and never 0. It need not
 * withstand an attacker, who would only harm the own device's writes.
 * @param {{key: string, part: string, value: Wire | null}[]} writes
 */
export function digest(writes) {
  const text = JSON.stringify([...writes]
    .sort((a, b) => compareText(a.key, b.key) || compareText(a.part, b.part))
    .map(({ key, part, value }) => [key, part, value]));
  let [one, other] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    one = Math.imul(one ^ unit, 2_654_435_761);
    other = Math.imul(other ^ unit, 1_597_334_677);
  }
  const mix = (a, b) => Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909);
  one = mix(one, other);
  other = mix(other, one);
  const result = hex(one >>> 0, 8) + hex(other >>> 0, 8);
  return result === zero ? hex(1, 16) : result;
}

// The protocol's form.

export function checkedDevice(json) {
  if (typeof json === 'string' && /^[0-9a-fA-F]{16}$/.test(json)) return json.toLowerCase();
  throw new WireError('a device is not 16 hexadecimal digits');
}

/** A whole number that may be missing: then 0. */
export const checkedNumber = (json, max = 2n ** 53n - 1n) => Number(checkedInteger(json ?? 0, 0n, max));

/** Reads a record that a server sent. @returns {Row} @throws {WireError} */
export function checkedRow(json) {
  if (!isObject(json)) throw new WireError('a record is not an object');
  const [key, part] = [checkedText(json.key, 'a key'), checkedText(json.part ?? '', 'a part')];
  if (key === '' || textBytes(key) > ceiling.keyBytesMax || textBytes(part) > ceiling.keyBytesMax) {
    throw new WireError('a key or a part is empty or too long');
  }
  if ((json.deleted === true) === (json.value != null)) {
    throw new WireError('a record has either a value or is deleted');
  }
  const ms = Number(checkedInteger(json.milliseconds ?? 0, 1n, BigInt(millisecondsMax)));
  const time = timestamp(ms, checkedNumber(json.counter, 0xffffn));
  const digest = hex(BigInt(checkedInteger(json.digest ?? 0, 0n, 2n ** 64n - 1n)), 16);
  return { key, part, value: json.deleted === true ? null : checkedValue(json.value),
    stamp: stampOf(time, checkedDevice(json.device), digest) };
}

/** A time and an author as JSON; the pushing device need not be named. */
const wireStamp = (stamp, device) => ({
  milliseconds: String(milliseconds(stamp)),
  ...(counter(stamp) ? { counter: counter(stamp) } : {}),
  ...(deviceOf(stamp) === device ? {} : { device: deviceOf(stamp) }),
});

/** A write in a push. @param {string | null} had What it replaced. */
export const wireRow = ({ key, part, value, stamp }, device, had = null, isUnkept = false) => ({
  key, ...(part ? { part } : {}), ...(value ? { value } : { deleted: true }), ...wireStamp(stamp, device),
  ...(digestOf(stamp) === zero ? {} : { digest: String(BigInt(`0x${digestOf(stamp)}`)) }),
  ...(had ? { had: wireStamp(had, device) } : {}), ...(isUnkept ? { unkept: true } : {}),
});
