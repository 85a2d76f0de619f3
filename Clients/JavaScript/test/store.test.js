// SPDX-License-Identifier: Apache-2.0

/** The store as an app sees it, without a server. */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { ExactDate, openDevice, real } from '../src/node.js';

const identifier = 'T.example';

function storeTest(name, body) {
  test(name, { timeout: 300_000 }, async () => {
    const home = mkdtempSync(join(tmpdir(), 'ubiquity-js-'));
    try {
      const device = await openDevice({ home });
      await body(await device.openStore(identifier), home);
      await device.close();
    } finally { rmSync(home, { recursive: true, force: true }); }
  });
}

storeTest('a number is a number, and stays the real that it was', async (store) => {
  store.set('volume', real(5));
  assert.equal(store.get('volume'), 5);
  assert.deepEqual(store.exact('volume'), { real: 5 });
  store.set('volume', 7);
  assert.deepEqual(store.exact('volume'), { real: 7 });
  store.set('volume', 0.5);
  store.set('volume', 1);
  assert.deepEqual(store.exact('volume'), { real: 1 });
  store.set('volume', 1n);
  assert.deepEqual(store.exact('volume'), { integer: '1' });
  store.set('volume', 2);
  assert.deepEqual(store.exact('volume'), { integer: '2' });
  store.remove('volume');
  store.set('volume', 3);
  assert.deepEqual(store.exact('volume'), { integer: '3' });
  store.batch(({ get, set }) => {
    set('volume', real(4));
    assert.equal(get('volume'), 4);
    set('volume', 5);
  });
  assert.deepEqual(store.exact('volume'), { real: 5 });
  store.set('large', real(2 ** 60));
  assert.equal(store.get('large'), 2 ** 60);
});

const exactOf = (store, key) => JSON.stringify(store.exact(key))
  .replaceAll(/[{}"]|entries|values|array:|dictionary:/g, '');

storeTest('reals within a value stay reals where it is changed and written again', async (store) => {
  store.set('line', [{ x: real(1), n: 1 }, { x: real(2), n: 2 }]);
  assert.deepEqual(store.get('line'), [{ x: 1, n: 1 }, { x: 2, n: 2 }]);
  const before = exactOf(store, 'line');
  store.set('copy', store.get('line'));
  assert.equal(exactOf(store, 'copy'), before);
  // What was read keeps its types at another place, also within something new.
  store.set('line', [{ x: 0, n: 0 }, ...store.get('line')]);
  assert.match(exactOf(store, 'line'), /real:0.*real:1.*real:2/);
  assert.match(exactOf(store, 'line'), /integer:0.*integer:1.*integer:2/);
  // A copy that was edited keeps them by its places.
  store.set('line', store.get('line').map((point) => ({ ...point, x: point.x + 1 })));
  assert.match(exactOf(store, 'line'), /real:1.*real:2.*real:3/);
  // An array of reals has reals only.
  store.set('list', [real(1), 2.5]);
  store.set('list', [7, ...store.get('list'), 8]);
  assert.match(exactOf(store, 'list'), /\[real:7,real:1,real:2.5,real:8]/);
  store.set('list', [7n, 0.5]);
  store.set('list', [1, 2, 3]);
  assert.match(exactOf(store, 'list'), /\[integer:1,real:2,integer:3]/);
});

storeTest('a value is the same object until it changes, and nobody can change it', async (store) => {
  store.batch(({ set }) => { set('a', { list: [1] }); set('b', 1); });
  const value = store.get('a');
  assert.equal(store.get('a'), value);
  store.set('b', 2);
  await store.synchronize();
  store.set('a', { list: [1] });
  assert.equal(store.get('a'), value);
  assert.equal(store.values().get('a'), value);
  assert.throws(() => { value.list.push(2); }, TypeError);
  assert.throws(() => { value.more = 2; }, TypeError);
  store.set('a', { ...value, list: [...value.list, 2] });
  assert.deepEqual(store.get('a'), { list: [1, 2] });
  assert.deepEqual(value, { list: [1] });
});

storeTest('who watches a key hears of its changes only, at once, until he does not want to', async (store) => {
  const heard = [];
  const stop = store.subscribe('a', (value) => heard.push(value));
  const over = new AbortController();
  store.subscribe('a', (value) => heard.push([value]), { signal: over.signal });
  store.subscribe('a', () => assert.fail('it ended before it began'), { signal: AbortSignal.abort() });
  store.set('a', 1);
  assert.deepEqual(heard, [1, [1]]);
  store.set('a', 1);
  store.set('b', 1);
  store.batch(({ set, remove }) => { set('a', 2); remove('a'); });
  assert.deepEqual(heard, [1, [1], undefined, [undefined]]);
  over.abort();
  store.set('a', 3);
  stop();
  stop();
  store.set('a', 4);
  assert.deepEqual(heard.slice(4), [3]);
});

storeTest('a callback that throws keeps no other from being called, nor the write', async (store) => {
  const thrown = new Promise((resolve) => { process.setUncaughtExceptionCaptureCallback(resolve); });
  const heard = [];
  store.subscribe('a', () => { throw new Error('mine'); });
  store.subscribe('a', (value) => heard.push(value));
  store.set('a', 1);
  assert.deepEqual(heard, [1]);
  assert.equal((await thrown).message, 'mine');
  process.setUncaughtExceptionCaptureCallback(null);
});

storeTest('iterators end when they are left, aborted, or the store is closed', async (store) => {
  await store.synchronize();
  const over = new AbortController();
  const all = [store.changes(), store.valuesOf('a'), store.statuses()];
  const others = [store.changes(over), store.valuesOf('a', over), store.statuses(over)];
  for (const one of [...all, ...others].filter((_, index) => index % 3)) assert.equal((await one.next()).done, false);
  const waiting = [...all, ...others].map((one) => one.next());
  for (const one of all) assert.equal((await one.return()).done, true);
  over.abort();
  for (const result of await Promise.all(waiting)) assert.equal(result.done, true);
  for await (const _ of store.changes({ signal: AbortSignal.abort() })) assert.fail('there is nothing');
  store.set('a', 1);
  for (const one of all) assert.equal((await one.next()).done, true);
  const last = store.changes();
  const end = last.next();
  store.set('b', 1);
  assert.deepEqual((await end).value, { reason: 'localChange', keys: ['b'] });
  store.set('c', 1);
  store.set('d', 1);
  await store.close();
  // What was there can be read.
  assert.deepEqual(await last.next(), { done: false, value: { reason: 'localChange', keys: ['c', 'd'] } });
  assert.equal((await last.next()).done, true);
  const afterwards = store.statuses();
  assert.deepEqual([(await afterwards.next()).done, (await afterwards.next()).done], [false, true]);
});

storeTest('many readers each get everything, and a slow one the newest', async (store) => {
  const values = [store.valuesOf('a'), store.valuesOf('a')];
  for (const one of values) assert.equal((await one.next()).value, undefined);
  const both = [values[0].next(), values[0].next()];
  store.set('a', 1);
  store.set('a', 2);
  assert.deepEqual((await Promise.all(both)).map(({ value }) => value), [1, 2]);
  assert.equal((await values[1].next()).value, 2);
  for (const one of values) await one.return();
});

storeTest('keys are in order, and each has its size and its last write', async (store) => {
  store.batch(({ set }) => { set('text', 'é'); set('list', [1, true]); set('\u{1f600}', 0.5); set('\uffff', 1); });
  store.setConflictPolicy('count', 'counter');
  store.increment('count', 2);
  store.setConflictPolicy('tags', 'unionOfArrays');
  store.set('tags', ['a', 'b']);
  assert.deepEqual(store.keys(), ['count', 'list', 'tags', 'text', '\uffff', '\u{1f600}']);
  const sum = store.keys().reduce((all, key) => all + store.bytes(key), 0);
  assert.equal(sum, store.status.usage.bytes);
  assert.equal(store.bytes('none'), 0);
  assert.deepEqual(store.exact('count'), { integer: '2' });
  assert.equal(store.exact('none'), null);
  assert.equal(store.lastWrite('none'), null);
  assert.equal(store.lastWrite('text').deviceID, null);
  assert.ok(Math.abs(store.lastWrite('tags').date - Date.now()) < 600_000);
  store.removeAll();
  assert.deepEqual([store.keys(), store.values().size], [[], 0]);
});

storeTest('policies merge what is written, and a counter keeps its kind of number', async (store) => {
  store.setConflictPolicy('most', 'maximum');
  store.set('most', 2);
  store.set('most', 1);
  assert.equal(store.get('most'), 2);
  store.set('sum', real(1));
  store.increment('sum');
  assert.deepEqual(store.exact('sum'), { real: 2 });
  assert.throws(() => store.increment('sum', 'a'), { code: 'unsupported-value' });
  assert.throws(() => store.increment('sum', [1]), { code: 'unsupported-value' });
  assert.throws(() => store.setConflictPolicy('a', 'toString'), { code: 'policy' });
  store.revert([['sum', 1], ['most', undefined]]);
  assert.deepEqual([store.exact('sum'), store.get('most')], [{ real: 1 }, undefined]);
});

storeTest('what no store can hold is refused whole, and said', async (store) => {
  const reasons = [];
  store.addEventListener('change', ({ reason, keys }) => reasons.push([reason, keys]));
  store.set('kept', 1);
  for (const [key, value, code] of [['', 1, 'key'], ['a', [null], 'unsupported-value'],
    ['k'.repeat(65), 1, 'key-too-long'], ['a', 'x'.repeat(1_048_577), 'value-too-large']]) {
    assert.throws(() => store.batch(({ set }) => { set('kept', 2); set(key, value); }), { code });
  }
  assert.throws(() => store.set('a', { b: [new Map()] }), { message: /a\.b\[0\]: a Map/ });
  assert.throws(() => store.batch(async () => {}), { code: 'batch' });
  assert.deepEqual([...store.values()], [['kept', 1]]);
  store.set('a', { b: 1, c: undefined });
  assert.deepEqual(store.get('a'), { b: 1 });
  await store.synchronize();
  assert.deepEqual(reasons, [['quotaViolation', ['a', 'kept']]]);
});

storeTest('a status is a sentence too, and nobody waits for ever', async (store) => {
  assert.equal(store.status.connection, 'signedOut');
  assert.match(store.status.explanation, /^Nobody is signed in/);
  assert.deepEqual([store.status.account, store.status.lastSync, store.status.diskError], [null, null, null]);
  assert.equal(store.status.limits.keysMax, 1_024);
  store.set('a', 1);
  assert.deepEqual(store.status.pendingKeys, ['a']);
  assert.equal(await store.synchronize(), true);
  await assert.rejects(store.history('a'), { code: 'unauthorized', message: /not signed in/ });
  await assert.rejects(store.valuesAt(new Date()), { code: 'unauthorized' });
  const first = store.initialSync();
  await store.close();
  await assert.rejects(first, { code: 'closed' });
  await assert.rejects(store.history('a'), { code: 'closed' });
  assert.throws(() => store.set('a', 1), { code: 'closed' });
});

storeTest('nothing that is printed has the credential, and large integers break nothing', async (store) => {
  store.set('a', 2n ** 60n);
  store.device.state.signedIn = { credential: 'ubd_secret' };
  for (const one of [store, store.device]) {
    for (const text of [JSON.stringify(one), inspect(one, { depth: 20, showHidden: true }), `${one}`]) {
      assert.doesNotMatch(text, /ubd_secret/);
    }
  }
  store.device.state.signedIn = null;
  assert.match(JSON.stringify(store), /"identifier":"T.example"/);
  assert.equal(store.get('a'), 2n ** 60n);
});

storeTest('dates and bytes are what they were', async (store) => {
  store.set('a', [new Date(5), new ExactDate(0.123456789), new Uint8Array([1])]);
  const [date, exact, data] = store.get('a');
  assert.deepEqual([date.getTime(), exact.seconds, [...data]], [5, 0.123456789, [1]]);
  store.set('b', store.get('a'));
  assert.deepEqual(store.exact('b'), store.exact('a'));
});
