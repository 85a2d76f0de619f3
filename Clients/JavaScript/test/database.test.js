// SPDX-License-Identifier: Apache-2.0

/** The disk in a browser: values of any size, and a database that refuses. What a store says of a save is true. */

import assert from 'node:assert/strict';
import { begin, browserTest, openTab } from './support/tabs.js';

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
