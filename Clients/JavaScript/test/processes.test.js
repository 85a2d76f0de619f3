// SPDX-License-Identifier: Apache-2.0

/** The shell around the engine, whose disk and tabs are a test's: what fails, stands still, or traps. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Engine } from '../src/engine.js';
import { Home, account, compile, file, homeTest, skip, soon, trap, unreachable, until } from './support/memory.js';
import { identifier, passOn, served, serverTest } from './support/server.js';

const leads = ({ store }) => until(() => store.status.isLeader);

// Two processes of a device, in virtual time

class Process {
  constructor(module, disk, seed) {
    this.engine = new Engine(module);
    this.disk = disk;
    this.seed = seed;
    this.said = [];
  }

  start(now, device) {
    this.handle({ do: 'start', boot: '1', seed: this.seed, store: 's', firstSync: 'timestamps', device,
      content: { version: this.disk.version, entries: [] } }, now);
  }

  handle(event, now) {
    const events = [event];
    for (let next; (next = events.shift());) {
      const { steps, wake } = this.engine.handle(next, now);
      this.wake = wake;
      for (const step of steps) {
        this.said.push(step.do);
        if (step.do === 'read') events.push({ do: 'read' });
        if (step.do === 'readAccount') events.push({ do: 'account', device: account(unreachable) });
        if (step.do === 'save') {
          this.disk.version += 1;
          events.push({ do: 'saved', version: this.disk.version });
        }
      }
    }
  }

  /** What it says until some time. */
  until(uptime) {
    this.said = [];
    for (let count = 0; this.wake !== undefined && this.wake <= uptime; count += 1) {
      assert.ok(count < 1_000);
      this.handle({ do: 'wake' }, { wall: 1.8e12 + this.wake, uptime: this.wake });
    }
    return this.said;
  }
}

test('a leader that does nothing is noticed when something waits for it, and once', { skip }, () => {
  const module = new WebAssembly.Module(readFileSync(file));
  const follower = new Process(module, { version: 0 }, '1');
  follower.start({ wall: 1.8e12, uptime: 0 }, account(unreachable));
  // It waits for the first sync: it asks after 5 s, twice, and is not answered.
  assert.ok(!follower.until(14_000).includes('seize'));
  assert.deepEqual(follower.until(16_000).filter((word) => word === 'seize'), ['seize']);
  assert.deepEqual(follower.until(3_600_000), []);
  // Somebody looks.
  follower.handle({ do: 'hurry' }, { wall: 1.8e12, uptime: 3_600_000 });
  assert.ok(follower.said.includes('seize'));
  follower.until(3_700_000);
  // Who leads waits for nobody.
  follower.handle({ do: 'leading', file: 0, isLeading: true }, { wall: 1.8e12, uptime: 3_700_000 });
  follower.handle({ do: 'hurry' }, { wall: 1.8e12, uptime: 3_700_000 });
  assert.ok(!follower.until(3_800_000).includes('seize'));
});

// Tabs

homeTest('a device is there before the engine, which a store asks for again', async (_, home) => {
  let attempts = 0;
  const device = await home.openDevice(undefined, async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('it is away');
    return compile();
  });
  assert.equal(device.account, null);
  assert.equal(attempts, 0);
  await assert.rejects(device.openStore('T.example'), { message: 'it is away' });
  const opening = [device.openStore('T.example'), device.openStore('T.example')];
  const [first, second] = await Promise.allSettled(opening);
  assert.equal(first.status, 'fulfilled');
  assert.equal(/** @type {any} */ (second).reason.code, 'open');
  await Promise.all([assert.rejects(device.openStore('T.other'), { code: 'closed' }), device.close()]);
});

homeTest('each tab saves its own writes, and reads those of others', async (openTab) => {
  const [a, b] = [await openTab(), await openTab()];
  await leads(a);
  for (const [tab, key] of [[a, 'a'], [b, 'b']]) {
    tab.store.set(key, 1);
    assert.equal(await tab.store.synchronize(), true);
    assert.ok(tab.tab.saves > 0);
  }
  await until(() => a.store.get('b') === 1 && b.store.get('a') === 1);
  // Both at once: one is told what the other has saved.
  for (let round = 0; round < 20; round += 1) {
    a.store.set('a', round);
    b.store.set('b', round);
    a.store.set(`both`, round);
    b.store.set(`both`, -round);
    await Promise.all([a.store.synchronize(), b.store.synchronize()]);
  }
  await until(() => a.store.get('b') === 19 && b.store.get('a') === 19);
  assert.equal(a.store.get('both'), b.store.get('both'));
  const c = await openTab();
  assert.equal(c.store.get('both'), a.store.get('both'));
});

homeTest('messages between tabs are hints: without one, the next save or look finds the same', async (openTab, home) => {
  const [a, b] = [await openTab(), await openTab()];
  await a.store.synchronize();
  home.tabs.clear();
  a.store.set('a', 1);
  await a.store.synchronize();
  assert.equal(b.store.get('a'), undefined);
  for (const wake of b.tab.wakes) wake();
  await until(() => b.store.get('a') === 1);
  a.store.set('a', 2);
  await a.store.synchronize();
  b.store.set('b', 1);
  await b.store.synchronize();
  assert.equal(b.store.get('a'), 2);
});

homeTest('a read that fails while a tab takes over is tried again', async (openTab, home) => {
  home.account = account(unreachable);
  const [a, b] = [await openTab(), await openTab()];
  await leads(a);
  b.tab.fails.read = 'the disk is away';
  await a.device.close();
  await until(() => b.store.status.diskError);
  assert.equal(b.store.status.isLeader, false);
  b.tab.fails = {};
  await leads(b);
  assert.equal(b.store.status.diskError, null);
});

homeTest('a sign-in that cannot be read is tried again', async (openTab, home) => {
  const { tab, store } = await openTab();
  await leads({ store });
  home.account = account(unreachable);
  tab.fails.account = 'the disk is away';
  tab.receive('account');
  await soon();
  assert.equal(store.status.connection, 'signedOut');
  tab.fails = {};
  await until(() => store.status.connection !== 'signedOut');
});

homeTest('who led while it stood still saves nothing as the leader', async (openTab, home) => {
  const [a, b] = [await openTab(), await openTab()];
  await leads(a);
  a.store.set('first', 1);
  await a.store.synchronize();
  // Another one takes over, and this one does not hear of it.
  home.leases.get('1/T.example')[0].tell = () => {};
  b.store.shell.leading.seize();
  await leads(b);
  b.store.set('b', 1);
  await b.store.synchronize();
  a.store.set('a', 1);
  assert.equal(await a.store.synchronize(), true);
  assert.equal(a.store.status.isLeader, false);
  await until(() => b.store.get('a') === 1);
});

homeTest('a tab whose disk fails lets another one lead, which is told of no leader alone', async (openTab) => {
  const a = await openTab();
  await leads(a);
  a.tab.fails.save = 'no space';
  a.store.set('a', 1);
  assert.equal(await a.store.synchronize(), false);
  assert.equal(a.store.status.diskError, 'no space');
  assert.equal(a.store.status.isLeader, true);
  const b = await openTab();
  await leads(b);
  a.tab.fails = {};
  await until(() => b.store.get('a') === 1);
  assert.equal(a.store.status.isLeader, false);
});

homeTest('a store closes beside a disk that fails, and what waits ends', async (openTab, home) => {
  home.account = account(unreachable);
  const { tab, store } = await openTab();
  tab.fails.save = 'no space';
  store.set('a', 1);
  const waiting = [store.synchronizeNow(), store.initialSync(), store.synchronize()];
  const outcomes = Promise.all(waiting.map((one) => one.then(String, ({ code }) => code)));
  await assert.rejects(store.close(), { code: 'storage' });
  const [trip, first, saved] = await outcomes;
  assert.ok(['closed', 'unreachable', 'heldUp'].includes(trip), trip);
  assert.deepEqual([first, saved], ['closed', 'false']);
});

homeTest('who waits for the first sync is told of a sign-out', async (openTab, home) => {
  home.account = account(unreachable);
  const { device, store } = await openTab();
  const waiting = store.initialSync().then(() => 'has', ({ code }) => code);
  const trip = store.synchronizeNow().then(() => 'done', ({ code }) => code);
  await device.signOut();
  assert.equal(await waiting, 'unauthorized');
  assert.ok(['unreachable', 'unauthorized'].includes(await trip), await trip);
});

homeTest('what waits for a file that cannot be opened is saved to it, and to no other', async (openTab, home) => {
  home.account = account(unreachable, { folders: { a: '1', b: '2' } });
  const { tab, store } = await openTab();
  store.set('of a', 1);
  await store.synchronize();
  tab.fails.load = 'the disk is away';
  home.account = { ...home.account, folder: '2', signedIn: { ...home.account.signedIn, account: 'b' } };
  tab.receive('account');
  await until(() => store.get('of a') === undefined);
  store.set('of b', 1);
  assert.equal(await store.synchronize(), false);
  assert.equal([...home.documents.get('1/T.example').entries.values()].length, 1);
  tab.fails = {};
  await until(() => home.documents.get('2/T.example')?.entries.size === 1);
  assert.equal(store.get('of b'), 1);
});

// An engine that traps

homeTest('an engine that traps is replaced, with what was written since', async (openTab) => {
  const { store, tab, problems } = await openTab();
  store.set('saved', 1);
  await store.synchronize();
  let go;
  tab.waits.save = new Promise((resolve) => { go = resolve; });
  store.set('being saved', 2);
  await soon();
  store.set('not saved', 3);
  const waiting = store.synchronize();
  trap(store, 'handle');
  for (const wake of tab.wakes) wake();
  assert.throws(() => store.set('meanwhile', 4), { code: 'engine' });
  assert.equal(store.get('saved'), 1);
  tab.waits = {};
  go();
  assert.equal(await waiting, true);
  assert.match(problems[0], /the engine of the store has stopped: .*; it is started again$/);
  for (const [key, value] of [['saved', 1], ['being saved', 2], ['not saved', 3]]) assert.equal(store.get(key), value);
  const other = await openTab();
  assert.equal(other.store.get('not saved'), 3);
  await leads({ store });
});

homeTest('what makes the engine trap is not written, and nothing else is lost', async (openTab) => {
  const { store } = await openTab();
  store.set('a', 1);
  trap(store, 'write');
  assert.throws(() => store.set('bad', 2), { code: 'engine' });
  assert.equal(await store.synchronize(), true);
  assert.deepEqual([store.get('a'), store.get('bad')], [1, undefined]);
});

homeTest('a store whose engines trap again and again is read, and says so', async (openTab) => {
  const { store, tab, problems } = await openTab();
  store.set('a', 1);
  await store.synchronize();
  const waiting = [store.initialSync(), new Promise((resolve) => { resolve(1); })];
  waiting[0].catch(() => {});
  for (let round = 0; round < 4; round += 1) {
    await until(() => store.shell.engine);
    if (round > 0) store.set('lost', round);
    trap(store, 'handle', 9);
    for (const wake of tab.wakes) wake();
  }
  await until(() => store.shell.recovery.isOver);
  await assert.rejects(waiting[0], { code: 'engine' });
  assert.match(problems.at(-1), /again and again; the store can only be read/);
  assert.ok(problems.some((one) => /what was written last is lost \(1 writes\)/.test(one)));
  assert.equal(store.get('a'), 1);
  assert.throws(() => store.set('b', 1), { code: 'engine' });
  assert.equal(await store.synchronize(), false);
  await assert.rejects(store.synchronizeNow(), { code: 'engine' });
  await assert.rejects(store.close(), { code: 'storage' });
});

homeTest('an engine that traps while it is closed ends', async (openTab) => {
  const { store } = await openTab();
  store.set('a', 1);
  trap(store, 'handle');
  await store.close();
  assert.equal((await openTab()).store.get('a'), 1);
});

// A server that is none

const isOther = /something other than the Ubiquity server answered.*401/;

for (const [what, status, headers, body, sentence] of [
  ['a page to sign in to a network', 401, { 'Content-Type': 'text/html' }, '<h1>Sign in</h1>', isOther],
  ['a gateway', 401, { 'WWW-Authenticate': 'Basic' }, '', isOther],
  ['a redirect', 302, { Location: 'http://127.0.0.1:9/' }, '', /redirects requests to another address/],
]) {
  homeTest(`the answer of ${what} is neither a revocation nor a connection`, (openTab, home) => served(
    (_request, response) => response.writeHead(status, headers).end(body), async (server) => {
      home.account = account(server);
      const { store, device } = await openTab();
      await until(() => store.status.lastError);
      const { connection, lastError } = store.status;
      assert.equal(connection, 'waiting');
      assert.match(lastError, sentence);
      await assert.rejects(device.devices(), { code: 'unreachable', message: sentence });
      assert.notEqual(device.account, null);
    }));
}

serverTest('a leader that is deposed while it pushes keeps nothing back, and sends nothing twice', async (stage) => {
  let [held, release] = [0, () => {}];
  const released = new Promise((resolve) => { release = () => resolve(undefined); });
  const pass = (incoming, answer) => {
    // The first push is at the server, and its answer takes its time.
    const isFirst = incoming.method === 'POST' && incoming.url.endsWith('/changes') && held === 0;
    if (isFirst) held = 1;
    passOn(stage, incoming, answer, isFirst ? released : undefined);
  };
  await served(pass, async (server) => {
    const home = new Home();
    const [a, b] = [await home.openTab(identifier), await home.openTab(identifier)];
    await leads(a);
    await a.device.signIn({ server, code: await stage.server.code('ann'), deviceName: 'a', allowsPlainHTTP: true });
    await b.store.initialSync();
    const other = await stage.signedIn('other');
    a.store.set('k', 1);
    await until(() => held === 1);
    b.store.shell.leading.seize();
    await leads(b);
    await b.store.synchronizeNow();
    assert.equal(a.store.status.isLeader, false);
    release();
    await until(() => [a, b].every(({ store }) => !store.status.pendingKeys.length));
    for (const [tab, value] of [[a, 2], [b, 3], [a, 4]]) {
      tab.store.set('k', value);
      await tab.store.synchronizeNow();
      await other.synchronizeNow();
      assert.equal(other.get('k'), value);
    }
    await b.device.close();
    await leads(a);
    a.store.set('k', 5);
    await a.store.synchronizeNow();
    await other.synchronizeNow();
    assert.equal(other.get('k'), 5);
    await a.device.close();
  });
}, skip);

homeTest('a clock that jumps is told to the engine, and nothing is lost by it', async (openTab) => {
  const { store } = await openTab();
  const { now } = Date;
  try {
    for (const hours of [1, -3, 30]) {
      Date.now = () => now() + hours * 3_600_000;
      store.set('a', hours);
      assert.equal(await store.synchronize(), true);
    }
  } finally { Date.now = now; }
  assert.equal(store.get('a'), 30);
});
