// SPDX-License-Identifier: Apache-2.0

/** The disk in a browser: values of any size, and a database that refuses. What a store says of a save is true. */

import assert from 'node:assert/strict';
import { Browser } from './support/chromium.js';
import { begin, browserTest, chromiumTest, has, openTab, other, signIn } from './support/tabs.js';

/** Text that no database makes smaller. */
const random = `(size) => Array.from({ length: size }, () => String.fromCharCode(33 + Math.random() * 90)).join('')`;

browserTest('a store with a value of any size opens again, and tells other tabs of it', async (browser) => {
  const sizes = [1, 1_000, 60_000, 70_000, 120_000, 500_000, 2 ** 20 - 8];
  for (const size of sizes) {
    const [a, b] = [await openTab(browser), await openTab(browser)];
    const text = await a.run(`
      window.text = (${random})(${size});
      store.set('text', text);
      return [await store.synchronize(), text.slice(0, 100)];`);
    assert.equal(text[0], true);
    const seen = 'return [store.get("text").length, store.get("text").slice(0, 100)];';
    // One that saves before it has heard of it meets the value as a conflict.
    await b.run(`await until(() => store.get("text")?.length === ${size}); store.set("b", ${size}); await store.synchronize();`);
    assert.deepEqual(await b.run(seen), [size, text[1]]);
    await a.close();
    await b.close();
    for (let time = 0; time < 3; time += 1) {
      const again = await openTab(browser);
      assert.deepEqual(await again.run(seen), [size, text[1]]);
      await again.close();
    }
  }
});

browserTest('a save that meets a large value of another tab goes on from it', async (browser) => {
  const [a, b] = [await openTab(browser), await openTab(browser)];
  await b.run('device.folder.channel.onmessage = null;');
  await a.run(`store.set('text', (${random})(200_000)); await store.synchronize();`);
  // It has not heard of what the other has saved, and so its save is a conflict.
  assert.deepEqual(await b.run(`
    const { storage } = store.shell;
    const { changedAfter } = storage.disk;
    storage.disk.changedAfter = async () => undefined;
    store.set('b', 1);
    const isSaved = await store.synchronize();
    storage.disk.changedAfter = changedAfter;
    return [isSaved, store.get('text')?.length, store.status.diskError];`), [true, 200_000, null]);
  await a.run('await until(() => store.get("b") === 1);');
});

const full = 'there is no room left for the data of this site';
/** Each makes every save of a tab fail. */
const failures = {
  [full]: `IDBObjectStore.prototype.put = () => { throw new DOMException('', 'QuotaExceededError'); };`,
  'an error without a message': 'IDBObjectStore.prototype.put = () => { throw new Error(); };',
  'nothing': 'IDBObjectStore.prototype.put = () => { throw undefined; };',
  'a transaction that is aborted': `
    const { put } = IDBObjectStore.prototype;
    IDBObjectStore.prototype.put = function (...words) {
      const request = put.apply(this, words);
      this.transaction.abort();
      return request;
    };`,
};

browserTest('a save that fails is said, with a reason, and tried again', async (browser) => {
  for (const [name, fail] of Object.entries(failures)) {
    const a = await openTab(browser);
    await a.run('window.put = IDBObjectStore.prototype.put; store.set("a", "before"); await store.synchronize();');
    const [isSaved, why, explanation] = await a.run(`${fail}
      store.set('a', 'after');
      return [await store.synchronize(), store.status.diskError, store.status.explanation];`);
    assert.equal(isSaved, false, name);
    if (name === full) assert.equal(why, full);
    else assert.match(why, /\S/, name);
    assert.equal(explanation, `The disk refuses to save: ${why}.`);
    // It did not lie: nothing is there.
    const b = await openTab(browser);
    assert.equal(await b.run('return store.get("a");'), 'before', name);
    await b.close();
    await a.run('IDBObjectStore.prototype.put = put; await until(() => store.status.diskError === null);');
    assert.equal(await a.run('return store.synchronize();'), true);
    await a.reload();
    await begin(a);
    assert.equal(await a.run('return store.get("a");'), 'after', name);
    await a.close();
  }
});

/** A tab that goes without a save, and has kept what it writes. */
const cannotSave = 'store.shell.storage.disk.save = () => new Promise(() => {});';

/** How a page goes, having written last; `i` is the number of the time. */
const lasts = {
  'in `pagehide`': `addEventListener('pagehide', () => { store.set('last', i); store.increment('count'); });
    location.href = '/next';`,
  'in the task that leaves': "store.set('last', i); store.increment('count'); location.href = '/next';",
  'while a save is under way': `${cannotSave} store.set('last', 'first');
    setTimeout(() => { store.set('last', i); store.increment('count'); location.href = '/next'; }, 100);`,
};

browserTest('what is written last before a page goes is there, once', async (browser) => {
  const tab = await openTab(browser);
  let i = 0;
  for (const [name, last] of Object.entries(lasts)) {
    for (let time = 0; time < 5; time += 1) {
      i += 1;
      await tab.run(`window.isOld = true; const i = ${i}; setTimeout(() => { ${last} });`);
      while (!await tab.run('return !window.isOld && document.readyState === "complete";').catch(() => false));
      await begin(tab);
      await tab.run(`await until(() => store.get('last') === ${i} && store.get('count') === ${i});`);
      assert.equal(await tab.run('return store.synchronize();'), true, name);
    }
  }
  // With the last save that has them, their rows go.
  await tab.run('await until(async () => await count("redo") === 0);');
});

browserTest('what a tab wrote that is gone is there in those that stay, as of when it was written', async (browser) => {
  const [a, b, c] = [await openTab(browser), await openTab(browser), await openTab(browser)];
  await a.run('store.setConflictPolicy("count", "counter"); store.increment("count", 10); await store.synchronize();');
  await c.run('await until(() => store.get("count") === 10);');
  // It has written before, and nothing of that is left in its log.
  await c.run('store.set("saved", 1); await store.synchronize(); await until(async () => await count("redo") === 0);');
  await c.run(`${cannotSave}
    store.set('early', 'c'); store.batch(({ set }) => { set('x', 1); set('y', 2); });
    store.increment('count'); store.increment('count');
    await new Promise((go) => { setTimeout(go, 50); });`);
  await a.run('store.set("early", "a"); store.set("late", "a"); await store.synchronize();');
  await c.run("await new Promise((go) => { setTimeout(go, 50); }); store.set('late', 'c');");
  // Nobody takes over from a tab that is there, and it counts.
  assert.deepEqual((await b.run('return client.unsentStores(device);')).map(({ keys }) => keys), [6]);
  assert.deepEqual(await b.run('await until(() => store.get("late")); return [store.get("x") ?? null, store.get("count")];'),
    [null, 10]);
  await c.close();
  const seen = '["early", "late", "x", "y", "count"].map((key) => store.get(key)).join()';
  for (const tab of [a, b]) await tab.run(`await until(() => ${seen} === 'a,c,1,2,12');`);
  assert.equal(await a.run('return store.synchronize();'), true);
  await a.run('await until(async () => await count("redo") === 0);');
  await a.close();
  await b.close();
  assert.equal(await (await openTab(browser)).run(`return ${seen};`), 'a,c,1,2,12');
});

browserTest('a log at which the engine stops is given up, and the store goes on', async (browser) => {
  const a = await openTab(browser);
  await a.run(`${cannotSave} store.set('last', 1); await until(async () => await count('redo') === 1);`);
  await a.close();
  const b = await browser.tab('/');
  await b.run(`const { Engine } = await import('/src/engine.js');
    const { handle } = Engine.prototype;
    Engine.prototype.handle = function (event, now) {
      if (event.do === 'redo') throw new WebAssembly.RuntimeError('unreachable');
      return handle.call(this, event, now);
    };`);
  await begin(b);
  await b.run('await until(async () => await count("redo") === 0 && await store.synchronize());');
  assert.deepEqual(await b.run(`
    store.set('next', 1);
    return [await store.synchronize(), store.get('last') ?? null, store.get('next')];`), [true, null, 1]);
  await b.close();
  assert.deepEqual(await (await openTab(browser)).run('return store.keys();'), ['next']);
});

chromiumTest('of a browser that is killed, the last write is there', async (browser, stage) => {
  const first = new Browser(stage.home('killed'), browser.address);
  const a = await openTab(first);
  await a.run(`${cannotSave} store.set('last', 1); await until(async () => await count('redo') === 1);`);
  await first.crash();
  const second = new Browser(stage.home('killed'), browser.address);
  try { assert.equal(await (await openTab(second)).run('return store.get("last");'), 1); } finally { await second.end(); }
});

chromiumTest('after the browser has cleared everything, what no server has is saved again', async (browser, stage) => {
  const node = await other(stage);
  const [a, b] = [await openTab(browser), await openTab(browser)];
  await signIn(a, stage);
  await a.run(`store.setConflictPolicy('count', 'counter'); store.set('gone', 1); store.increment('count', 10);
    await store.synchronizeNow();`);
  await b.run('await until(() => store.get("count") === 10);');
  await stage.server.kill();
  await a.run('store.set("kept", 1); store.increment("count", 2); await store.synchronize();');
  await b.run('store.set("of b", 2); await store.synchronize();');
  await a.call('Storage.clearDataForOrigin', { origin: browser.address, storageTypes: 'indexeddb' });
  const seen = '["gone", "kept", "of b"].map((key) => store.get(key)).join()';
  for (const tab of [a, b]) {
    await tab.run(`await until(() => device.account === null && ${seen} === ',1,2');`);
    assert.equal(await tab.run('return store.synchronize();'), true);
    await tab.close();
  }
  const c = await openTab(browser);
  assert.equal(await c.run(`return ${seen};`), ',1,2');
  await stage.server.start();
  await signIn(c, stage);
  await c.run(`await until(() => ${seen} === '1,1,2' && store.get('count') === 12); await store.synchronizeNow();`);
  await has(node, 'kept', 1);
  await has(node, 'count', 12);
});

browserTest('a store says whether the browser keeps its values', async (browser, stage) => {
  const refuses = await openTab(browser, `navigator.storage.persisted = async () => false;
    navigator.storage.persist = async () => false;`);
  assert.equal(await refuses.run('return store.status.isPersisted;'), false);
  await signIn(refuses, stage);
  assert.equal(await refuses.run('return store.status.isPersisted;'), false);
  await refuses.close();
  const grants = await openTab(browser, `navigator.storage.persisted = async () => false;
    navigator.storage.persist = async () => true;`);
  await signIn(grants, stage);
  assert.equal(await grants.run('return store.status.isPersisted;'), true);
});
