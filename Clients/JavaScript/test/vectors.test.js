// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { checkedValue, fromWire, toWire } from '../src/exact.js';
import { decode, encode } from '../src/plist.js';
import { compareValues } from './conformance/order.js';

const vectors = (name) => JSON.parse(readFileSync(
  new URL(`../../../Protocol/vectors/${name}.json`, import.meta.url), 'utf8'));

test('values keep their type through the app and the engine, as the vectors say', () => {
  const { cases, refused, sealed } = vectors('values');
  for (const { json } of cases) {
    const value = checkedValue(json);
    assert.deepEqual(toWire(decode(encode(fromWire(value)))), value);
    assert.deepEqual(checkedValue(JSON.parse(JSON.stringify(value))), value);
  }
  for (const { json } of [...refused, ...sealed]) {
    assert.throws(() => checkedValue(json), JSON.stringify(json));
  }
  for (const { json, bytes } of sealed) {
    assert.equal(String(fromWire(json)), `sealed, ${bytes} bytes`);
    assert.throws(() => toWire(fromWire(json)), /a Sealed is not a value of a store/);
  }
});

test('contents have the order that the vectors say', () => {
  const all = vectors('order').ascending.map((one) => (one.deleted ? null : checkedValue(one)));
  all.forEach((a, i) => all.forEach((b, j) => {
    assert.equal(Math.sign(compareValues(a, b)), Math.sign(i - j), `${i} ${j}`);
  }));
});
