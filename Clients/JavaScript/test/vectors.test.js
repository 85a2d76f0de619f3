// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { DeviceClock } from '../src/clock.js';
import { Entries } from '../src/entries.js';
import { checkedRow, counter, idOf, milliseconds, timestamp, wins, wireRow } from '../src/records.js';
import { fitsKey } from '../src/rules.js';
import {
  checkedValue, compareValues, fromWire, isSame, quotaBytes, textBytes, toWire,
} from '../src/values.js';
import { ModelServer } from './model-server.js';

const vectors = (name) => JSON.parse(readFileSync(
  new URL(`../../../Protocol/vectors/${name}.json`, import.meta.url), 'utf8'));

test('values keep their type through the app, and count the bytes that the vectors say', () => {
  const { cases, refused } = vectors('values');
  for (const { json, quotaBytes: bytes } of cases) {
    const value = checkedValue(json);
    assert.equal(quotaBytes(value), bytes, JSON.stringify(json));
    assert.deepEqual(toWire(fromWire(value)), value);
    assert.deepEqual(checkedValue(JSON.parse(JSON.stringify(value))), value);
  }
  for (const { json } of refused) assert.throws(() => checkedValue(json), JSON.stringify(json));
});

test('contents have the order that the vectors say', () => {
  const all = vectors('order').ascending.map((one) => (one.deleted ? null : checkedValue(one)));
  all.forEach((a, i) => all.forEach((b, j) => {
    assert.equal(Math.sign(compareValues(a, b)), Math.sign(i - j), `${i} ${j}`);
  }));
});

test('keys fit the limits as the vectors say', () => {
  for (const one of vectors('keys').cases) {
    assert.equal(textBytes(one.key), one.utf8Bytes);
    assert.equal(one.key.length, one.utf16Units);
    assert.equal(fitsKey(one.key, { keyBytesMax: 64, keyUtf16Max: 0 }), one.fits64Bytes);
    assert.equal(fitsKey(one.key, { keyBytesMax: 0, keyUtf16Max: 128 }), one.fits128Units);
  }
});

test('a write gets the timestamp that the vectors say', () => {
  for (const { now, greatest, timestamp: expected } of vectors('timestamps').cases) {
    const reading = { wall: Number(now), uptime: 0, boot: 'a' };
    const clock = new DeviceClock({ reading, server: Number(now), doubt: 0 });
    clock.observe(timestamp(Number(greatest.milliseconds), greatest.counter));
    const { time, provisional } = clock.issue(reading);
    assert.equal(provisional, null);
    assert.equal(milliseconds(time), Number(expected.milliseconds));
    assert.equal(counter(time), expected.counter);
  }
});

test('of two writes the one wins that the vectors say', () => {
  for (const { name, winner, loser } of vectors('winners').cases) {
    const [a, b] = [checkedRow(winner), checkedRow(loser)];
    assert.ok(wins(a, b) && !wins(b, a), name);
  }
});

test('the parts of a key make the value that the vectors say', () => {
  for (const { name, records, value } of vectors('parts').cases) {
    for (const order of [records, [...records].reverse()]) {
      const entries = new Entries();
      for (const record of order.map(checkedRow)) {
        entries.update(idOf(record), (entry) => { entry.confirmed = record; });
      }
      const expected = value ? checkedValue(value) : null;
      assert.ok(isSame(entries.value('k'), expected), name);
    }
  }
});

test('the model server decides pushes as the vectors say, and records survive the wire', () => {
  for (const { name, body, status, results } of vectors('pushes').cases) {
    const server = new ModelServer({ now: () => 1_800_000_000_000 });
    const answer = server.push(body, '0000000000000001');
    assert.equal(answer.status, status, `${name}: ${JSON.stringify(answer.json)}`);
    if (status !== 200) continue;
    assert.deepEqual(answer.json.results.map(
      ({ refused }) => refused?.code ?? 'committed'), results, name);
    for (const row of server.records.values()) {
      assert.deepEqual(checkedRow(wireRow(row, 'none')), row);
    }
  }
});
