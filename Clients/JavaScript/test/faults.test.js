// SPDX-License-Identifier: Apache-2.0

/** What the shell says when the disk fails, the engine traps, or the app calls it at a bad moment. */

import assert from 'node:assert/strict';
import { Home, account, homeTest, soon, trap, trapAt, unreachable, until } from './support/memory.js';
import { served } from './support/server.js';

const leads = ({ store }) => until(() => store.status.isLeader);
const rows = (home) => home.documents.get('1/T.example')?.entries.size ?? 0;
const outcome = (promise) => promise.then((value) => value ?? 'done', ({ code }) => code);
const turns = async (count) => { for (let left = count; left > 0; left -= 1) await new Promise(setImmediate); };

/** Something that another tab has saved, and of which this one has not heard. */
async function unheard(openTab, home) {
  const [other, tab] = [await openTab(), await openTab()];
  await leads(other);
  await tab.store.synchronize();
  const all = [...home.tabs];
  home.tabs.clear();
  other.store.set('other', 1);
  await other.store.synchronize();
  for (const one of all) home.tabs.add(one);
  return tab;
}

// What is said to be on the disk

homeTest('what an observer writes and waits for is on the disk when this is said', async (openTab, home) => {
  const { store } = await unheard(openTab, home);
  const said = new Promise((resolve) => {
    store.addEventListener('change', () => {
      store.set('own', 1);
      store.synchronize().then((isSaved) => resolve([isSaved, rows(home)]));
    }, { once: true });
  });
  await store.synchronize();
  assert.deepEqual(await said, [true, 2]);
});

homeTest('what an observer writes before a save is not in it, and outlives a trap', async (openTab, home) => {
  const { store, tab } = await unheard(openTab, home);
  let go;
  tab.waits.save = new Promise((resolve) => { go = resolve; });
  store.addEventListener('change', () => store.set('late', 1), { once: true });
  store.set('early', 1);
  const waiting = store.synchronize();
  await until(() => store.get('late') === 1);
  await turns(50);
  trapAt(store, 'saved');
  tab.waits = {};
  go();
  await waiting;
  assert.equal(await store.synchronize(), true);
  assert.deepEqual([store.get('early'), store.get('late'), rows(home)], [1, 1, 3]);
});

homeTest('who closes a store is told that its disk has not saved, and it is closed', async (openTab, home) => {
  const { tab, device, store } = await openTab();
  const other = await device.openStore('T.other');
  await leads({ store });
  other.set('a', 1);
  tab.fails.save = 'no space';
  store.set('a', 1);
  await assert.rejects(store.close(), { code: 'storage', message: /T.example/ });
  await assert.rejects(device.close(), { code: 'storage', message: /T.other/ });
  assert.ok(!home.tabs.has(tab));
  assert.throws(() => store.set('b', 1), { code: 'closed' });
  await until(() => !home.leases.get('1/T.example')?.length);
});

homeTest('a disk that works again has what is closed', async (openTab, home) => {
  const { tab, store } = await openTab();
  tab.fails.save = 'no space';
  store.set('a', 1);
  assert.equal(await store.synchronize(), false);
  tab.fails = {};
  await store.close();
  assert.equal(rows(home), 1);
});

// An engine that traps

homeTest('a disk that fails after a trap is no other trap', async (openTab) => {
  const { tab, store } = await openTab();
  await leads({ store });
  tab.fails.save = 'no space';
  store.set('a', 1);
  assert.equal(await store.synchronize(), false);
  let loads = 0;
  Object.defineProperty(tab.waits, 'load', { get() { loads += 1; return undefined; } });
  tab.fails.load = 'the disk is away';
  trap(store, 'handle');
  for (const wake of tab.wakes) wake();
  await until(() => loads === 2 || store.shell.recovery.isOver);
  tab.fails = {};
  await until(() => store.shell.engine || store.shell.recovery.isOver);
  assert.equal(store.get('a'), 1);
  assert.equal(await store.synchronize(), true);
});

homeTest('a trap at a question of the shell itself stops nothing', async (openTab, home) => {
  home.account = account(unreachable);
  const { tab, store, problems } = await openTab();
  await leads({ store });
  const first = outcome(store.initialSync());
  const statuses = store.statuses();
  await statuses.next();
  for (const act of [() => { store.set('a', 1); return store.synchronize(); }, () => tab.receive('files')]) {
    trapAt(store, 'status');
    await act();
    await until(() => problems.length);
    await until(() => store.shell.engine);
    store.shell.recovery.traps = [];
    problems.length = 0;
  }
  assert.equal(await store.synchronize(), true);
  assert.equal(store.get('a'), 1);
  await store.close();
  assert.equal(await first, 'closed');
});

homeTest('who waits for what a trap has lost is told, and what is gone is shown', async (openTab, home) => {
  home.account = account(unreachable);
  const { tab, store } = await openTab();
  await leads({ store });
  const shown = [];
  store.addEventListener('change', ({ keys }) => shown.push(...keys));
  trap(store, 'handle');
  for (const wake of tab.wakes) wake();
  await until(() => store.shell.engine);
  store.set('lost', 1);
  const [saved, trip] = [outcome(store.synchronize()), outcome(store.synchronizeNow())];
  trap(store, 'handle');
  for (const wake of tab.wakes) wake();
  assert.equal(await saved, false);
  assert.equal(await trip, 'engine');
  await until(() => shown.includes('lost'));
  assert.equal(store.get('lost'), undefined);
});

homeTest('what the engine does not understand of the disk is an error, and no trap', async (openTab) => {
  const { store } = await openTab();
  const { engine, storage } = store.shell;
  storage.disk.refused = async () => [new Uint8Array([1])];
  await assert.rejects(store.refusedWrites(), { code: 'storage' });
  assert.throws(() => store.shell.write([{ key: 'a', value: Symbol('a') }]), { code: 'storage' });
  assert.equal(store.shell.engine, engine);
});

homeTest('two callbacks that write one after the other without end are stopped, and nothing else', async (openTab) => {
  const { store, problems } = await openTab();
  const { engine } = store.shell;
  const thrown = [];
  process.setUncaughtExceptionCaptureCallback((error) => thrown.push(error));
  try {
    store.subscribe('a', (value) => store.set('b', value + 1));
    store.subscribe('b', (value) => store.set('a', value + 1));
    store.set('a', 1);
    assert.equal(await store.synchronize(), true);
    await until(() => thrown.length);
  } finally { process.setUncaughtExceptionCaptureCallback(null); }
  assert.equal(store.shell.engine, engine);
  assert.deepEqual([thrown.length, thrown[0].code, problems], [1, 'refused', []]);
});

homeTest('an answer that traps is not met again at once, and costs no write', async (openTab, home) => {
  let asked = 0;
  await served((_request, response) => {
    asked += 1;
    response.writeHead(500).end();
  }, async (server) => {
    home.account = account(server);
    const { tab, store, problems } = await openTab();
    tab.fails.save = 'no space';
    store.set('a', 1);
    for (let round = 1; round <= 2; round += 1) {
      trapAt(store, 'answer');
      await until(() => problems.length === round);
      await until(() => store.shell.engine);
      assert.equal(store.get('a'), 1);
      const before = asked;
      await turns(500);
      assert.equal(asked, before);
      assert.equal(store.status.isLeader, false);
      if (round === 1) {
        store.shell.recovery.leadsAt = 0;
        store.shell.leading.lead();
      }
    }
    tab.fails = {};
    assert.equal(await store.synchronize(), true);
  });
});

homeTest('a closed store stays closed', async (openTab, home) => {
  const { device, store } = await openTab();
  store.set('a', 1);
  await store.close();
  trap(store, 'value');
  assert.throws(() => store.get('a'), { code: 'engine' });
  await turns(50);
  assert.deepEqual([store.shell.engine, home.leases.get('1/T.example')], [null, []]);
  // One that is being opened, too.
  const opening = outcome(device.openStore('T.other'));
  const closing = [device.close(), device.close()];
  let isClosed = false;
  closing[1].then(() => { isClosed = !home.tabs.size; });
  assert.equal(await opening, 'closed');
  await Promise.all(closing);
  await turns(50);
  assert.deepEqual([isClosed, home.leases.get('1/T.other') ?? []], [true, []]);
});

// Who leads

homeTest('a lease that is given up while it is taken away is asked for again', async (openTab, home) => {
  const { tab, store } = await openTab();
  await leads({ store });
  const { lease } = store.shell.leading;
  const [{ tell }] = home.leases.get('1/T.example');
  lease.yields = async () => {
    tell(false);
    lease.release();
    return true;
  };
  tab.fails.save = 'no space';
  store.set('a', 1);
  assert.equal(await store.synchronize(), false);
  tab.fails = {};
  await leads({ store });
});

// The device

homeTest('a store that was opened alone can erase its device', async (openTab, home) => {
  const { openStoreOf } = await import('../src/device.js');
  const { tab, device, store } = await openTab();
  await store.close();
  const alone = await openStoreOf(device, { identifier: 'T.example' });
  alone.set('a', 1);
  const { close } = tab;
  tab.close = async () => {
    tab.fails.account = 'the database is closed';
    await close.call(tab);
  };
  home.account = account(unreachable);
  await alone.device.erase();
  assert.equal(home.documents.size, 0);
  assert.equal(home.account.signedIn, null);
});
