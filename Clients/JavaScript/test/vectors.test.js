// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { DeviceClock } from '../src/clock.js';
import { Engine } from '../src/engine.js';
import { Entries } from '../src/entries.js';
import { failureOf } from '../src/http.js';
import { checkedChanges, checkedCursor } from '../src/messages.js';
import {
  checkedRow, counter, idOf, milliseconds, pushBytes, timestamp, wins, wireRow,
} from '../src/records.js';
import { Usage, fitsKey } from '../src/rules.js';
import {
  checkedValue, compareValues, fromWire, isSame, quotaBytes, textBytes, toWire,
} from '../src/values.js';

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

test('records survive the wire', () => {
  const taken = vectors('pushes').cases.filter(({ status }) => status === 200);
  const writes = taken.flatMap(({ body }) => JSON.parse(body).transactions ?? [])
    .flatMap((transaction) => transaction.writes ?? []);
  assert.ok(writes.length > 10);
  for (const write of writes) {
    const row = checkedRow({ device: '0000000000000001', ...write });
    assert.deepEqual(checkedRow(wireRow(row, 'none')), row);
  }
});

test('writes and stores count the bytes that the vectors say', () => {
  const { pushes, stores } = vectors('sizes');
  for (const { name, transactions, bytes } of pushes) {
    const rows = transactions.flatMap(({ writes }) => writes)
      .map((write) => checkedRow({ device: '0000000000000001', ...write }));
    assert.equal(rows.reduce((sum, row) => sum + pushBytes(row), 0), bytes, name);
  }
  for (const { name, records, ...expected } of stores) {
    const usage = new Usage();
    for (const row of records.map(checkedRow)) usage.replace(null, row.value, row.part);
    assert.deepEqual({ ...usage }, { ...expected }, name);
  }
});

test('a failed request means what the vectors say', () => {
  const meanings = {
    unreachable: 'retry', timedOut: 'smaller', unauthorized: 'sign-in', refused: 'refused',
    tooLarge: 'too-large', cursorGone: 'cursor-forgotten', otherHistory: 'cursor-other-history',
    clockAhead: 'clock-ahead', busy: 'wait', tooManyStreams: 'without-stream',
  };
  for (const { name, status, headers, body, ...expected } of vectors('problems').cases) {
    const why = failureOf(status, new Headers(headers), body ?? null, 'the server');
    assert.equal(meanings[why.kind], expected.means, name);
    assert.equal(why.server, expected.serverMilliseconds, name);
    if (expected.waitMilliseconds !== undefined) {
      assert.equal(why.wait, expected.waitMilliseconds, name);
    }
  }
});

test('a text is a cursor if the vectors say so', () => {
  for (const { text, isCursor } of vectors('cursors').texts) {
    if (isCursor) assert.equal(checkedCursor(text), text);
    else assert.throws(() => checkedCursor(text), text);
  }
});

test('a device takes changes, and asks for the whole store, as the vectors say', () => {
  for (const { name, firstSync, before, gone, changes, after } of vectors('cursors').cases) {
    const now = { wall: 1_800_000_000_000, uptime: 1_000, boot: 'a' };
    const rows = new Map([['meta', JSON.stringify({ account: 'ann', cursor: before.cursor,
      hasCompletedFirstSync: before.cursor !== null })]]);
    const entry = (row) => JSON.parse(rows.get(`e${idOf(row)}`) ?? '{}');
    for (const row of before.agreed.map(checkedRow)) {
      rows.set(`e${idOf(row)}`, JSON.stringify({ confirmed: row, pending: null }));
    }
    for (const record of before.waiting.map(checkedRow)) {
      const pending = { record, transaction: idOf(record), provisional: null, had: null };
      rows.set(`e${idOf(record)}`, JSON.stringify({ confirmed: null, ...entry(record), pending }));
    }
    const engine = new Engine(rows, { seed: '1', settings: { firstSync }, now });
    engine.handle({ type: 'signedIn', account: 'ann', device: '0000000000000001' }, now);
    const asked = () => {
      for (let effect; (effect = engine.nextEffect(now));) {
        if (effect.type === 'listen') return effect;
        if (effect.type === 'save') engine.handle({ type: 'saved' }, now);
      }
      return assert.fail(`${name}: it opens no stream`);
    };
    let { stream, since } = asked();
    assert.equal(since, before.cursor, name);
    if (gone) {
      const failure = failureOf(
        410, new Headers(), { type: `urn:ubiquity:problem:${gone}`, code: gone }, 'the server');
      engine.handle({ type: 'streamEnded', stream, failure }, now);
      ({ stream, since } = asked());
      assert.equal(since, null, name);
    }
    const message = { kind: 'changes', changes: checkedChanges(changes) };
    engine.handle({ type: 'streamReceived', stream, message }, now);
    const all = [...engine.entries.all.values()];
    const known = (list) => list.filter(Boolean).sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
    const expected = (list) => known(list.map(checkedRow));
    assert.deepEqual(known(all.map(({ confirmed }) => confirmed)), expected(after.agreed), name);
    assert.deepEqual(
      known(all.map(({ pending }) => pending?.record)), expected(after.waiting), name);
    assert.equal(engine.meta.cursor, after.cursor, name);
  }
});
