// SPDX-License-Identifier: Apache-2.0

/** The order of values in the protocol's form, which the app's own rule of `ubiquity-conformance` goes by. */

import { compareText } from '../../src/exact.js';

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** All types in their order. */
const orders = {
  string: compareText, boolean: compare, integer: (a, b) => compare(BigInt(a), BigInt(b)),
  unsigned: (a, b) => compare(BigInt(a), BigInt(b)), real: compareBits, date: compareBits,
  data: (a, b) => compare(atob(a), atob(b)),
  array: (a, b) => compareLists(a.values, b.values, compareValues),
  dictionary: (a, b) => compareLists(a.entries, b.entries, (one, other) =>
    compareText(one.key, other.key) || compareValues(one.value, other.value)),
};
const kinds = Object.keys(orders);

/** Null, a deletion, is the least. */
export function compareValues(a, b) {
  if (!a || !b) return (a ? 1 : 0) - (b ? 1 : 0);
  const [[[kind, one]], [[otherKind, other]]] = [Object.entries(a), Object.entries(b)];
  return kind === otherKind ? orders[kind](one, other) : kinds.indexOf(kind) - kinds.indexOf(otherKind);
}

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
