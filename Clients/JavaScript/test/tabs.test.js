// SPDX-License-Identifier: Apache-2.0

/**
 * The client in a browser: IndexedDB, Web Locks, tabs that stand still, and a database that the browser closes.
 * In Chromium, and in Firefox what needs no debugger of Chromium's.
 */

import assert from 'node:assert/strict';
import { browserTest, chromiumTest, has, leads, openTab, other, signIn } from './support/tabs.js';
import { identifier } from './support/server.js';

browserTest('tabs share a store, and another one leads when the leader ends', async (browser, stage) => {
  const node = await other(stage);
  const a = await openTab(browser);
  await leads(a);
  const b = await openTab(browser);
  assert.equal(await b.run('return store.status.isLeader;'), false);
  await signIn(a, stage);
  await b.run('await store.initialSync();');
  assert.equal(await b.run('return device.account.name;'), 'ann');
  await a.run('store.set("a", [1n << 60n, client.real(1)]);');
  await b.run('await until(() => store.get("a"));');
  assert.equal(await b.run('return String(store.get("a")[0]) + store.get("a")[1];'), `${1n << 60n}1`);
  await b.run('store.set("b", -0); await store.synchronizeNow();');
  await has(node, 'b', -0);
  node.set('from node', 'hello');
  await b.run('await until(() => store.get("from node") === "hello");');
  await a.close();
  await leads(b);
  await b.run('store.set("c", "after the leader"); await store.synchronizeNow();');
  await has(node, 'c', 'after the leader');
  const again = await openTab(browser);
  assert.deepEqual(await again.run('return store.keys();'), ['a', 'b', 'c', 'from node']);
});

browserTest('what is written beside a leader that stands still is saved, said and sent', async (browser, stage) => {
  const node = await other(stage);
  const a = await openTab(browser);
  await leads(a);
  await signIn(a, stage);
  const b = await openTab(browser);
  await a.stop();
  const early = await b.run(`
    store.set('b', 1);
    return [await store.synchronize(), store.status.pendingKeys, store.status.isLeader];`);
  assert.deepEqual(early, [true, ['b'], false]);
  // It is on the disk, whatever becomes of both.
  const c = await openTab(browser);
  assert.equal(await c.run('return store.get("b");'), 1);
  // Nobody asks for a round trip: the engine notices.
  await has(node, 'b', 1);
  await a.goOn();
  await a.run('await until(() => !store.status.isLeader && store.get("b") === 1);');
  await a.run('store.set("a", 2); await store.synchronizeNow();');
  await has(node, 'a', 2);
  const states = await Promise.all([a, b, c].map((tab) => tab.run('return store.status.isLeader;')));
  assert.equal(states.filter((isLeading) => isLeading).length, 1);
});

browserTest('what waits for a leader that stands still ends', async (browser, stage) => {
  const a = await openTab(browser);
  await leads(a);
  await signIn(a, stage);
  const [b, c] = [await openTab(browser), await openTab(browser)];
  await a.stop();
  const outcome = await b.run('return store.synchronizeNow().then(() => "done", ({ code }) => code);');
  assert.ok(['done', 'unreachable', 'heldUp'].includes(outcome), outcome);
  await b.run('store.set("last", 1); await device.close();');
  assert.equal(await c.run('await until(() => store.get("last") === 1); return await store.synchronize();'), true);
});

chromiumTest('a tab that is frozen lets another one lead', async (browser, stage) => {
  const node = await other(stage);
  const a = await openTab(browser);
  await leads(a);
  await signIn(a, stage);
  const b = await openTab(browser);
  await a.freeze();
  await leads(b);
  await b.run('store.set("b", 1); await store.synchronizeNow();');
  await has(node, 'b', 1);
  await a.thaw();
  await a.run('await until(() => store.get("b") === 1);');
  await b.close();
  await leads(a);
});

browserTest('a tab that never ends a transaction keeps nobody waiting for ever', async (browser, stage) => {
  const [a, b] = [await openTab(browser), await openTab(browser)];
  await leads(a);
  await a.run(`
    const transaction = (await device.folder.database).transaction(['stores', 'entries'], 'readwrite');
    const again = () => { transaction.objectStore('stores').count().onsuccess = again; };
    again();`);
  const outcome = await b.run(`
    store.set('b', 1);
    return [await store.synchronize(), store.status.diskError];`);
  assert.deepEqual(outcome, [false, 'the database does not answer']);
  await a.close();
  await b.run('await until(() => store.status.diskError === null);');
  assert.equal(await b.run('return await store.synchronize();'), true);
  assert.equal(await (await openTab(browser)).run('return store.get("b");'), 1);
});

browserTest('what was never sent is counted, and what is empty goes', async (browser) => {
  const a = await openTab(browser);
  const rows = (tab) => tab.run('return count("entries");');
  await a.run('store.set("a", 1); store.set("b", 2); await store.synchronize();');
  assert.deepEqual(await a.run('return client.unsentStores(device);'),
    [{ identifier, keys: 2, isOwn: true }]);
  // An engine keeps the row of such an entry until the server knows; this one is made by hand.
  const b = await openTab(browser);
  await a.run(`const { disk } = store.shell.storage;
    const { version } = await disk.read(null);
    await disk.save({ expects: version, entries: [{ key: new TextEncoder().encode('gone') }] });
    await device.close();`);
  assert.equal(await rows(b), 3);
  const c = await openTab(browser);
  assert.equal(await rows(b), 3);
  await b.close();
  await c.close();
  const d = await openTab(browser);
  await d.run('await until(async () => await count("entries") === 2);');
});

browserTest('a database that the browser has closed is opened again', async (browser, stage) => {
  const node = await other(stage);
  const a = await openTab(browser);
  await signIn(a, stage);
  const b = await openTab(browser);
  for (const [index, tab] of [a, b].entries()) {
    await tab.run('(await device.folder.database).close();');
    assert.equal(await tab.run(`store.set('k${index}', 1); return await store.synchronize();`), true);
    await has(node, `k${index}`, 1);
  }
});

chromiumTest('after the browser has cleared everything, tabs go on without a reload', async (browser, stage) => {
  const node = await other(stage);
  const [a, b] = [await openTab(browser), await openTab(browser)];
  await signIn(a, stage);
  await a.run('store.set("gone", 1); await store.synchronizeNow();');
  // What a tab takes for unsent, it keeps.
  await b.run('await until(() => store.get("gone") === 1 && !store.status.pendingKeys.length);');
  await a.call('Storage.clearDataForOrigin', { origin: browser.address, storageTypes: 'indexeddb' });
  for (const tab of [a, b]) {
    await tab.run('await until(() => device.account === null && store.get("gone") === undefined);');
  }
  assert.equal(await b.run('store.set("new", 1); return await store.synchronize();'), true);
  await a.run('await until(() => store.get("new") === 1);');
  await signIn(b, stage);
  await a.run('await until(() => store.get("gone") === 1);');
  await has(node, 'new', 1);
});

browserTest('all tabs follow a sign-in, a sign-out, and another account', async (browser, stage) => {
  const [a, b] = [await openTab(browser), await openTab(browser)];
  await signIn(a, stage);
  await a.run('store.set("of ann", 1); await store.synchronizeNow();');
  await b.run('await until(() => store.get("of ann") === 1); changes.length = 0;');
  await signIn(a, stage, 'bob');
  await b.run('await until(() => store.get("of ann") === undefined);');
  assert.deepEqual(await b.run('return changes.filter(([reason]) => reason === "accountChange");'),
    [['accountChange', 'of ann']]);
  await b.run('store.set("of bob", 2); await store.synchronizeNow();');
  await signIn(b, stage, 'ann');
  await a.run('await until(() => store.get("of ann") === 1 && store.get("of bob") === undefined);');
  const waiting = a.run('return store.initialSync().then(() => "has", ({ code }) => code);');
  assert.equal(await waiting, 'has');
  await a.run('await device.signOut({ wipes: true });');
  await b.run('await until(() => device.account === null && store.get("of ann") === undefined);');
  const folders = await a.run('return (await device.folder.documents()).map(({ folder }) => folder);');
  const known = await a.run('return [device.state.folder, ...Object.values(device.state.folders)];');
  for (const folder of folders) assert.ok(known.includes(folder), `${folder} is of nobody`);
});

browserTest('a home that another tab erases says so, and nothing waits', async (browser, stage) => {
  const [a, b] = [await openTab(browser), await openTab(browser)];
  await signIn(a, stage);
  // What the other tab says of it may come late.
  await a.run('device.folder.channel.onmessage = null;');
  await b.run('await device.erase();');
  await a.run('await until(() => device.account === null && store.status.connection === "signedOut");');
  const outcome = await a.run(`
    store.set('late', 1);
    return [await store.synchronize(), store.status.diskError];`);
  assert.deepEqual(outcome, [false, 'another tab has erased everything; reload the page']);
  // It may say that what was written late is nowhere.
  await a.run('await device.close().catch((error) => { if (error.code !== "storage") throw error; });');
  assert.equal(await (await openTab(browser)).run('return store.keys().length + String(device.account);'), '0null');
});

browserTest('a tab whose disk fails lets another one lead, and leads no worse alone', async (browser, stage) => {
  const node = await other(stage);
  const a = await openTab(browser);
  await signIn(a, stage);
  const fail = 'device.folder.transact = async () => { throw new Error("the disk is broken"); };';
  await a.run(`window.transact = device.folder.transact; ${fail} store.set('a', 1); await store.synchronize();`);
  assert.deepEqual(await a.run('return [store.status.isLeader, store.status.diskError];'),
    [true, 'the disk is broken']);
  const b = await openTab(browser);
  await leads(b);
  await a.run('await until(() => !store.status.isLeader);');
  await b.run('store.set("b", 1);');
  await has(node, 'b', 1);
  await a.run('device.folder.transact = window.transact;');
  await has(node, 'a', 1);
});

/** What a tab says of opening a store. */
const opening = async (browser, first, path = '/') => (await browser.tab(path, first)).run(`
  return import('/src/browser.js').then((client) => client.openStore({ identifier: '${identifier}' }))
    .then(() => 'open', ({ name, code, message }) => [name, code, message].join('; '));`);

browserTest('a browser without a disk, or without WebAssembly, says so', async (browser) => {
  assert.match(await opening(browser, 'Object.defineProperty(window, "indexedDB", { value: undefined });'),
    /^UbiquityError; storage; this browser has no IndexedDB/);
  assert.match(await opening(browser, 'IDBFactory.prototype.open = () => { throw new DOMException("no", "SecurityError"); };'),
    /^UbiquityError; storage; the browser keeps no values: no/);
  assert.match(await opening(browser, 'IDBFactory.prototype.open = () => ({});'),
    /^UbiquityError; storage; the browser does not open its database/);
  assert.match(await opening(browser, 'delete window.WebAssembly;'), /^UbiquityError; engine; WebAssembly/);
  assert.match(await opening(browser, '', '/strict'), /^UbiquityError; engine; the engine of the store cannot be loaded/);
  assert.equal(await opening(browser, '', '/allowed'), 'open');
}, (path) => ({ '/strict': { 'Content-Security-Policy': "script-src 'self' 'unsafe-inline'" },
  '/allowed': { 'Content-Security-Policy': "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'" } })[path] ?? {});

browserTest('a module that is served as another type is compiled all the same', async (browser) => {
  assert.equal(await opening(browser, ''), 'open');
}, (path) => (path.endsWith('.wasm') ? { 'Content-Type': 'application/octet-stream' } : {}));

browserTest('a later format of the disk is not touched', async (browser) => {
  const later = await browser.tab('/');
  await later.run(`await new Promise((resolve) => {
    const request = indexedDB.open('ubiquity ubiquity', 4);
    request.onsuccess = () => { request.result.close(); resolve(); };
  });`);
  assert.match(await opening(browser, ''), /^UbiquityError; storage; a newer version/);
});

browserTest('what waits is tried when the network is back, or somebody looks', async (browser, stage) => {
  const a = await openTab(browser, `
    window.asked = 0;
    navigator.storage.persist = async () => { asked += 1; };`);
  await signIn(a, stage);
  assert.equal(await a.run('return asked;'), 1);
  await stage.server.kill();
  for (const event of ["window.dispatchEvent(new Event('online'))", "window.dispatchEvent(new Event('pageshow'))",
    "document.dispatchEvent(new Event('visibilitychange'))"]) {
    // It waits for its next attempt for a while.
    await a.run(`await until(() => store.status.connection !== 'connected');
      const { fetch } = window;
      window.fetch = async () => { throw new TypeError('offline'); };
      for (let attempt = 0; attempt < 8; attempt += 1) await store.synchronizeNow().catch(() => {});
      window.fetch = fetch;`);
    await stage.server.start();
    await a.run(`${event}; await until(() => store.status.connection === 'connected');`);
    await stage.server.kill();
  }
});
