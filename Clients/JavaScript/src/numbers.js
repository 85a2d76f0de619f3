// SPDX-License-Identifier: Apache-2.0

/**
 * Numbers and other values that policies add up or compare.
 * @typedef {import('./values.js').Wire} Wire
 * @typedef {bigint | number} Sum An integer as a BigInt, a real as a number.
 */

import { compareValues, wireReal } from './values.js';

const [min, max] = [-(2n ** 63n), 2n ** 63n - 1n];

/** The number of a value; null if it is not one. A Boolean is not one. @returns {Sum | null} */
export function sumOf(wire) {
  if (wire?.integer !== undefined) return BigInt(wire.integer);
  const number = wire?.unsigned ?? wire?.real;
  return number === undefined ? null : Number(number);
}

/** Adds. Integers stay integers, and become the nearest one of 64 bits. @returns {Sum} */
export function add(a, b) {
  if (typeof a === 'number' || typeof b === 'number') return Number(a) + Number(b);
  return a + b < min ? min : a + b > max ? max : a + b;
}
/** @returns {Sum} */
export const subtract = (a, b) => add(a, -b);

/** @returns {Wire} */
export const wireSum = (sum) =>
  (typeof sum === 'bigint' ? { integer: String(sum) } : { real: wireReal(sum) });

/** A run's count: how many times it has counted, and its total. @returns {{times: bigint, total: Sum} | null} */
export function countOf(wire) {
  const values = wire?.array?.values;
  if (values?.length !== 2 || values[0].integer === undefined) return null;
  const total = sumOf(values[1]);
  return total === null ? null : { times: BigInt(values[0].integer), total };
}

/** @returns {Wire} */
export const wireCount = (times, total) => ({ array: { values: [{ integer: String(times) }, wireSum(total)] } });

/** What can be compared with others of its class: a number, a date or a string; otherwise null. */
export function comparable(value) {
  if (!value) return null;
  const [kind, content] = Object.entries(value)[0];
  const place = { integer: 0, unsigned: 0, real: 0, date: 1, string: 2 }[kind];
  if (place === undefined) return null;
  const size = kind === 'string' ? 0 : Number(content);
  return { class: place, size: Number.isNaN(size) ? -Infinity : size, value };
}

/** What a part says that it is removed up to. */
export const comparableRemoved = (value) =>
  (value.array?.values?.length === 1 ? comparable(value.array.values[0]) : null);

/** A total order, in which the same number of different types has different places. */
export function isLess(a, b) {
  if (a.class !== b.class) return a.class < b.class;
  return a.size !== b.size ? a.size < b.size : compareValues(a.value, b.value) < 0;
}
