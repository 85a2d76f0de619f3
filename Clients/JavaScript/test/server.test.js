// SPDX-License-Identifier: Apache-2.0

/** Clients with a real server. `UBIQUITY_PROGRAM` names the program; deadlines only prevent hanging. */

import assert from 'node:assert/strict';
import { ExactDate, UbiquityError, real } from '../src/node.js';
import { isSame, toWire } from '../src/exact.js';
import { identifier, passOn, served, serverTest, until } from './support/server.js';

serverTest('one write is seen by the other device through its stream', async (stage) => {
  const [a, b] = [await stage.signedIn('a'), await stage.signedIn('b')];
  await until(b, () => b.status.connection === 'connected');
  const changes = b.changes();
  a.set('theme', 'dark');
  assert.deepEqual((await changes.next()).value, { reason: 'serverChange', keys: ['theme'] });
  assert.equal(b.get('theme'), 'dark');
  assert.deepEqual(b.status.pendingKeys, []);
  assert.match(b.status.explanation, /^Connected/);
});

serverTest('what is written offline arrives later, and the server survives a kill', async (stage) => {
  const [a, b] = [await stage.signedIn('a'), await stage.signedIn('b')];
  a.set('before', 1);
  await a.synchronizeNow();
  await stage.server.kill();
  await until(a, () => a.status.connection === 'waiting');
  a.set('offline', 2);
  b.set('other', 3);
  assert.equal(await a.synchronize(), true);
  assert.deepEqual(a.status.pendingKeys, ['offline']);
  assert.match(a.status.explanation, /^Not connected: (no server answers at http|the server ended)/);
  await assert.rejects(a.synchronizeNow(), UbiquityError);
  await a.close();
  await stage.server.start();
  const again = await stage.openStore('a');
  assert.equal(again.get('offline'), 2);
  await again.synchronizeNow();
  await b.synchronizeNow();
  await again.synchronizeNow();
  assert.deepEqual([...again.values()], [['before', 1], ['offline', 2], ['other', 3]]);
  assert.deepEqual([...b.values()], [...again.values()]);
});

serverTest('a fresh install overwrites nothing, and uploads what is only there', async (stage) => {
  const a = await stage.signedIn('a');
  a.batch(({ set }) => { set('level', 13); set('c', 3); });
  await a.synchronizeNow();
  const b = await stage.openStore('b');
  b.batch(({ set }) => { set('level', 1); set('mine', 2); });
  const told = new Promise((resolve) => { b.addEventListener('change', resolve, { once: true }); });
  await b.device.signIn({ server: stage.server.url, code: (await a.device.pair()).code });
  const { reason, keys } = await told;
  assert.equal(reason, 'initialSyncChange');
  assert.deepEqual(keys.sort(), ['c', 'level']);
  await b.synchronizeNow();
  assert.deepEqual([...b.values()], [['c', 3], ['level', 13], ['mine', 2]]);
  await a.synchronizeNow();
  assert.equal(a.get('mine'), 2);
});

serverTest('a revoked credential is said in the status, and the values stay', async (stage) => {
  const [a, b] = [await stage.signedIn('a'), await stage.signedIn('b')];
  b.set('kept', true);
  await b.synchronizeNow();
  await a.device.signOutDevice(b.device.account.deviceID);
  await until(b, () => b.status.connection === 'unauthorized');
  assert.match(b.status.explanation, /refuses this device.*revoked.*Sign in again/);
  b.set('later', 1);
  assert.equal(b.get('kept'), true);
  await b.device.signIn({ server: stage.server.url, code: (await a.device.pair()).code });
  await b.synchronizeNow();
  await a.synchronizeNow();
  assert.equal(a.get('later'), 1);
});

serverTest('an expired credential is said in the status', async (stage) => {
  await stage.server.code('ann');
  const a = await stage.signedIn('a', { terms: { credentialSeconds: '1' } });
  await until(a, () => a.status.connection === 'unauthorized');
  assert.match(a.status.explanation, /expired/);
});

let deep = 'here';
for (let level = 1; level < 512; level += 1) deep = level % 2 ? [deep] : { deep };

const values = {
  deep, large: 'x'.repeat(400_000),
  string: 'é e\u0301 😀 \0', empty: '', true: true, false: false, zero: 0, negative: -5,
  safe: Number.MAX_SAFE_INTEGER, beyond: 2n ** 53n, int64: 2n ** 63n - 1n, least: -(2n ** 63n),
  unsigned: 2n ** 64n - 1n, half: 0.5, one: real(1), minusZero: -0, nan: NaN, infinity: Infinity,
  huge: 1.7976931348623157e308, tiny: 5e-324, big: real(2 ** 60), date: new Date(1_700_000_000_123),
  exact: new ExactDate(0.123456789), noDate: new ExactDate(NaN), data: new Uint8Array([0, 255, 7]),
  array: [], object: {}, nested: [{ a: [1n, real(2), { ['__proto__']: 'safe', constructor: 1 }] }],
};

serverTest('every type comes back as it was, from the server and from Swift', async (stage) => {
  const [a, b] = [await stage.signedIn('a'), await stage.signedIn('b')];
  a.batch(({ set }) => { for (const [key, value] of Object.entries(values)) set(key, value); });
  await a.synchronizeNow();
  await b.synchronizeNow();
  const expected = { ...values, one: 1, big: 2 ** 60 };
  expected.nested = [{ a: [1, 2, JSON.parse('{"__proto__": "safe", "constructor": 1}')] }];
  // Invalid dates are never equal, so these are compared as the protocol has them.
  for (const [key, value] of Object.entries(expected)) {
    if (key === 'noDate') assert.deepEqual(b.exact(key), { date: 'NaN' });
    else assert.deepEqual(b.get(key), value, key);
    assert.ok(isSame(b.exact(key), toWire(values[key])), key);
  }
  assert.equal({}.safe, undefined);
  await stage.command('swift', 'sign-in', '--server', stage.server.url, '--code', await stage.server.code('ann'));
  const wire = async (key) => ({ value: JSON.parse(await stage.command('swift', 'get', key, '--exact')) });
  assert.deepEqual((await wire('unsigned')).value, { unsigned: '18446744073709551615' });
  assert.deepEqual((await wire('beyond')).value, { integer: '9007199254740992' });
  assert.deepEqual((await wire('one')).value, { real: 1 });
  assert.ok(Object.is(Number((await wire('minusZero')).value.real), -0));
  assert.deepEqual((await wire('exact')).value, { date: 0.123456789 });
  await stage.command('swift', 'set', 'from swift', '--integer', '-9223372036854775808');
  await stage.command('swift', 'set', 'real from swift', '--real', '3');
  await b.synchronizeNow();
  assert.equal(b.get('from swift'), -(2n ** 63n));
  assert.deepEqual([b.get('real from swift'), b.exact('real from swift')], [3, { real: 3 }]);
});

serverTest('a batch arrives whole, and is refused whole', async (stage) => {
  const [a, b] = [await stage.signedIn('a'), await stage.signedIn('b')];
  const seen = b.changes();
  a.batch(({ set }) => { set('title', 'x'); set('text', 'y'); });
  assert.deepEqual((await seen.next()).value.keys.sort(), ['text', 'title']);
  assert.throws(() => a.batch(({ set }) => { set('title', 'z'); set('k'.repeat(65), 1); }),
    { code: 'key-too-long' });
  assert.throws(() => a.set('big', 'x'.repeat(1_048_577)), { code: 'value-too-large' });
  assert.throws(() => a.set('bad', [null]), { code: 'unsupported-value', message: /bad\[0\]/ });
  assert.equal(a.get('title'), 'x');
  // Two that fit alone, and not together: the server refuses the later one, whole.
  await stage.server.kill();
  a.batch(({ set }) => { set('big', 'a'.repeat(600_000)); set('with', 1); });
  b.batch(({ set }) => { set('other', 'b'.repeat(600_000)); set('too', 2); });
  await b.close();
  await stage.server.start();
  await a.synchronizeNow();
  const again = await stage.openStore('b');
  const told = new Promise((resolve) => {
    again.addEventListener('change', (event) => {
      if (event.reason === 'quotaViolation') resolve(event.keys.sort());
    });
  });
  assert.deepEqual(await told, ['other', 'too']);
  assert.deepEqual((await again.refusedWrites()).map(({ code }) => code), ['quota-bytes', 'quota-bytes']);
  await again.synchronizeNow();
  assert.equal(again.get('too'), undefined);
  assert.equal(again.get('with'), 1);
  await again.forgetRefusedWrites();
  assert.deepEqual(await again.refusedWrites(), []);
});

serverTest('a rule of the app that fails is reported, and the later value stands', async (stage) => {
  const [a, b] = [await stage.signedIn('a'), await stage.signedIn('b')];
  const problems = [];
  for (const store of [a, b]) {
    assert.throws(() => store.setConflictPolicy('none', 'custom'), { code: 'policy' });
    store.setConflictPolicy('throws', 'custom', () => { throw new Error('mine'); });
    store.setConflictPolicy('forgets', 'custom', () => {});
    store.addEventListener('problem', ({ detail }) => problems.push(detail));
  }
  await stage.server.kill();
  for (const [store, value] of [[a, 'a'], [b, 'b']]) for (const key of ['throws', 'forgets']) store.set(key, value);
  await stage.server.start();
  for (let round = 0; round < 2; round += 1) await Promise.all([a.synchronizeNow(), b.synchronizeNow()]);
  // Each measures its clock's error, so that either may be the later one.
  for (const key of ['throws', 'forgets']) {
    assert.match(a.get(key), /^[ab]$/);
    assert.equal(a.get(key), b.get(key));
  }
  assert.ok(problems.some((detail) => /^throws: the later value stands, .*mine/.test(detail)));
  assert.ok(problems.some((detail) => /^forgets: the later value stands/.test(detail)));
});

serverTest('policies merge what two devices write at the same time', async (stage) => {
  const [a, b] = [await stage.signedIn('a'), await stage.signedIn('b')];
  const merged = ({ value }, other) => [...new Set([...[value].flat(), ...[other.value].flat()])].sort();
  for (const store of [a, b]) {
    for (const policy of ['counter', 'maximum', 'minimum', 'unionOfArrays', 'unionOfDictionaries']) {
      store.setConflictPolicy(policy, policy);
    }
    store.setConflictPolicy('custom', 'custom', merged);
  }
  a.batch(({ set }) => {
    set('counter', 10);
    set('unionOfArrays', ['x', 'y']);
    set('unionOfDictionaries', { p: 1, q: 2 });
  });
  await a.synchronizeNow();
  await b.synchronizeNow();
  await stage.server.kill();
  const write = (store, name, number) => {
    store.increment('counter', number);
    store.set('maximum', number);
    store.set('minimum', number);
    store.set('unionOfArrays', [...store.get('unionOfArrays').slice(number - 1), name]);
    store.set('unionOfDictionaries', { ...store.get('unionOfDictionaries'), [name]: number });
    store.set('custom', name);
  };
  write(a, 'a', 1);
  write(b, 'b', 2);
  await stage.server.start();
  await Promise.all([a.synchronizeNow(), b.synchronizeNow()]);
  await Promise.all([a.synchronizeNow(), b.synchronizeNow()]);
  for (const store of [a, b]) {
    assert.equal(store.get('counter'), 13);
    assert.equal(store.get('maximum'), 2);
    assert.equal(store.get('minimum'), 1);
    assert.deepEqual(store.get('unionOfArrays').toSorted(), ['a', 'b', 'y']);
    assert.deepEqual(store.get('unionOfDictionaries'), { a: 1, b: 2, p: 1, q: 2 });
    assert.deepEqual(store.get('custom'), ['a', 'b']);
    // Of the past, too.
    assert.deepEqual((await store.history('custom'))[0].value, ['a', 'b']);
    assert.deepEqual((await store.valuesAt(new Date(Date.now() + 60_000))).values.get('custom'), ['a', 'b']);
  }
  a.remove('counter');
  await a.synchronizeNow();
  await b.synchronizeNow();
  assert.equal(b.get('counter'), undefined);
  b.increment('counter');
  await b.synchronizeNow();
  await a.synchronizeNow();
  assert.equal(a.get('counter'), 1);
});

serverTest('a device of JavaScript signs in one of Swift, and the other way round', async (stage) => {
  const a = await stage.signedIn('a');
  const { link } = await a.device.pair();
  await stage.command('swift', 'sign-in', link);
  await stage.command('swift', 'set', 'hello', 'from swift');
  const b = await stage.openStore('b');
  const { code } = JSON.parse(await stage.command('swift', 'pair', '--json'));
  await b.device.signIn({ server: stage.server.url, code });
  await b.synchronizeNow();
  assert.equal(b.get('hello'), 'from swift');
  // By request and approval.
  const c = await stage.openDevice('c');
  const waiting = await c.requestSignIn({ server: stage.server.url, deviceName: 'tablet', allowsUnsealed: true });
  const shown = await a.device.waitingDevice(waiting.userCode.toLowerCase());
  assert.equal(shown.name, 'tablet');
  await a.device.approve(shown);
  assert.equal((await waiting.account()).name, 'ann');
  const d = await stage.openDevice('d');
  const request = await d.requestSignIn({ server: stage.server.url, deviceName: 'watch', stores: [identifier] });
  await stage.command('swift', 'approve', request.code, '--yes');
  await request.account();
  const denied = await (await stage.openDevice('e')).requestSignIn({ server: stage.server.url });
  await a.device.deny(denied);
  await assert.rejects(denied.account(), { code: 'sign-in-denied' });
  const names = (await a.device.devices()).map(({ name }) => name);
  assert.ok(names.includes('tablet') && names.includes('watch'));
});

serverTest('history shows and takes back what was, and deliveries who has it', async (stage) => {
  const [a, b] = [await stage.signedIn('a'), await stage.signedIn('b')];
  a.set('level', 1);
  await a.synchronizeNow();
  const { date } = (await a.history('level'))[0];
  a.set('level', 2);
  a.set('more', 3);
  await a.synchronizeNow();
  await b.synchronizeNow();
  b.remove('level');
  await b.synchronizeNow();
  await a.synchronizeNow();
  const versions = await a.history('level');
  assert.deepEqual(versions.map(({ value }) => value), [undefined, 2, 1]);
  assert.deepEqual(versions.map(({ outcome }) => outcome), ['current', 'replaced', 'replaced']);
  assert.deepEqual(versions.map(({ isThisDevice }) => isThisDevice), [false, true, true]);
  const snapshot = await a.valuesAt(date);
  assert.deepEqual([...snapshot.values], [['level', 1]]);
  a.revert([['level', versions[1].value]]);
  await a.synchronizeNow();
  await until(b, () => b.get('level') === 2);
  // Each says what it has saved within about a second.
  for (;;) {
    const { devices, isComplete } = await a.delivery('level');
    assert.equal(devices.length, 2);
    if (isComplete) break;
    await b.synchronizeNow();
  }
});

serverTest('an account keeps its values from another one, and gets them back', async (stage) => {
  const a = await stage.signedIn('a');
  a.set('owner', 'ann');
  await a.synchronizeNow();
  await stage.server.kill();
  a.set('unsent', true);
  await a.synchronize();
  await stage.server.start();
  const bob = await stage.server.code('bob');
  const again = await stage.server.code('ann', {});
  await a.device.signOut();
  assert.equal(a.status.connection, 'signedOut');
  assert.equal(a.get('owner'), 'ann');
  await a.device.signIn({ server: stage.server.url, code: bob });
  await a.initialSync();
  assert.deepEqual(a.keys(), []);
  await a.device.signIn({ server: stage.server.url, code: again });
  await a.synchronizeNow();
  assert.equal(a.get('owner'), 'ann');
  assert.equal(a.get('unsent'), true);
  await a.device.signOut({ wipes: true });
  assert.deepEqual(a.keys(), []);
});

serverTest('polls replace a stream that the account may not have', async (stage) => {
  const stores = [];
  for (const name of ['a', 'b', 'c', 'd']) stores.push(await stage.signedIn(name));
  const [a, b] = stores;
  // All stores of a device count: open streams until there are no more.
  for (let number = 0; stores.every(({ status }) => status.connection !== 'polling'); number += 1) {
    assert.ok(number < 100);
    const one = await a.device.openStore(`T.example.${number}`);
    await one.initialSync();
    stores.push(one);
  }
  const polling = stores.find(({ status }) => status.connection === 'polling');
  polling.set('works', 'all the same');
  await polling.synchronizeNow();
  assert.deepEqual(polling.status.pendingKeys, []);
  assert.match(polling.status.explanation, /without a stream/);
  await b.synchronizeNow();
});

serverTest('behind a proxy that holds streams back, polls replace them, and the status says so', (stage) => {
  const isStream = ({ headers }) => headers.accept === 'text/event-stream';
  return served((incoming, answer) => passOn(stage, incoming, answer, isStream(incoming) && new Promise(() => {})),
    async (proxy) => {
      const b = await stage.signedIn('b');
      const device = await stage.openDevice('a');
      await device.signIn({ server: proxy, code: await stage.server.code('ann'), deviceName: 'a' });
      const a = await device.openStore(identifier);
      a.set('from a', 1);
      b.set('from b', 2);
      await until(a, () => a.status.connection === 'polling' && a.get('from b') === 2 && !a.status.pendingKeys.length);
      assert.match(a.status.explanation, /a proxy between this device and the server holds the stream back/);
      await b.synchronizeNow();
      assert.equal(b.get('from a'), 1);
    });
});

serverTest('nothing is lost or counted twice while the server is killed again and again', async (stage) => {
  const stores = [await stage.signedIn('a'), await stage.signedIn('b')];
  let written = 0;
  for (let round = 0; round < 4; round += 1) {
    const kill = new Promise((resolve) => { setTimeout(resolve, 20 + 30 * round); })
      .then(() => stage.server.kill());
    for (let number = 0; number < 25; number += 1) {
      for (const [i, store] of stores.entries()) {
        written += 1;
        store.increment('count');
        store.batch(({ set }) => {
          set(`${i} ${round} ${number}`, written);
          set('left', written);
          set('right', written);
        });
        assert.equal(store.get('left'), store.get('right'));
      }
      await new Promise((resolve) => { setImmediate(resolve); });
    }
    await kill;
    await stage.server.start();
  }
  // A kill may also end the attempt of a round trip.
  for (const store of [...stores, ...stores]) {
    while (await store.synchronizeNow().then(() => false, () => true));
  }
  for (const store of stores) {
    assert.equal(store.get('count'), written);
    assert.equal(store.keys().length, written + 3);
    assert.equal(store.get('left'), store.get('right'));
    assert.deepEqual(await store.refusedWrites(), []);
  }
  assert.deepEqual([...stores[0].values()], [...stores[1].values()]);
});
