// SPDX-License-Identifier: Apache-2.0

/** The rows of one store in a browser's database, which other tabs change too. */

import { UbiquityError } from './values.js';
import { refusedMax } from './disk.js';

/** What a list of a row's key can begin with. An array is greater than any text, number and data. */
export const within = (...key) => IDBKeyRange.bound(key, [...key, []]);

/** The result of a request, which may come after the end of its transaction. @returns {Promise<any>} */
export const resultOf = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

export class DatabaseDisk {
  /** @param {import('./database.js').DatabaseFolder} home @param {string} folder @param {string} store */
  constructor(home, folder, store) {
    this.home = home;
    this.folder = folder;
    this.store = store;
    this.document = `${folder}/${store}`;
  }

  /** All that is there. What is empty is needed by nobody, if no other tab is there. */
  async load() {
    const isAlone = await this.home.isAlone();
    const content = await this.read(null);
    const empty = content.entries.filter(({ entry }) => !entry);
    if (isAlone && empty.length) this.prune(empty.map(({ key }) => key), content.version).catch(() => {});
    return { ...content, entries: content.entries.filter(({ entry }) => entry) };
  }

  /** Removes empty rows of a version, or an earlier one. */
  prune(keys, version) {
    const { folder, store } = this;
    return this.home.transact('readwrite', async ({ entries }) => {
      for (const row of await Promise.all(keys.map((key) => resultOf(entries.get([folder, store, key]))))) {
        if (row && !row.entry && row.version <= version) entries.delete([folder, store, row.key]);
      }
    });
  }

  /** What was saved after a version; undefined if nothing was. */
  async changedAfter(version) {
    const content = await this.read(version);
    return content.version === version ? undefined : content;
  }

  /** @param {number | null} after */
  read(after) {
    return this.home.transact('readonly', async ({ stores, entries }) => {
      const [row, changed] = await Promise.all([
        resultOf(stores.get([this.folder, this.store])), this.changed(entries, after)]);
      if (after > (row?.version ?? 0)) throw this.removed;
      return contentOf(row, changed);
    });
  }

  /** The rows that were saved after a version. */
  changed(entries, after) {
    const { folder, store } = this;
    return resultOf(after === null ? entries.getAll(within(folder, store)) : entries.index('versions').getAll(
      IDBKeyRange.bound([folder, store, after], [folder, store, []], true)));
  }

  get removed() { return new UbiquityError('storage', 'the account of these values was removed'); }

  /**
   * Saves, if the disk has the version that the step expects.
   * @param {{expects: number, entries: {key: Uint8Array, entry?: Uint8Array}[], meta?: Uint8Array,
   *     refused?: Uint8Array[]}} step
   * @returns {Promise<{version?: number, content?: any}>}
   */
  save(step) {
    return this.home.transact('readwrite', async ({ stores, entries, refused }, commit) => {
      const row = { folder: this.folder, store: this.store, version: 0, refused: 0,
        ...await resultOf(stores.get([this.folder, this.store])) };
      if (row.version < step.expects) throw this.removed;
      if (row.version !== step.expects) {
        const changed = this.changed(entries, step.expects);
        commit();
        return { content: contentOf(row, await changed) };
      }
      row.version += 1;
      if (step.meta) row.meta = step.meta;
      this.put(step, row, entries, refused);
      stores.put(row);
      return { version: row.version };
    });
  }

  /** An entry without anything stays as a row, for tabs that have known the key. */
  put(step, row, entries, refused) {
    const { folder, store } = this;
    for (const { key, entry } of step.entries) entries.put({ folder, store, key, version: row.version, entry });
    for (const write of step.refused ?? []) {
      row.refused += 1;
      refused.put({ folder, store, number: row.refused, write });
    }
    if (step.refused) {
      refused.delete(IDBKeyRange.bound([folder, store], [folder, store, row.refused - refusedMax]));
    }
  }

  /** The newest refused writes, the newest first. @returns {Promise<Uint8Array[]>} */
  refused() {
    return this.home.transact('readonly', async ({ refused }) =>
      (await resultOf(refused.getAll(within(this.folder, this.store)))).map(({ write }) => write).reverse());
  }

  /** Removes refused writes. @param {Uint8Array[]} gone */
  forget(gone) {
    const texts = new Set(gone.map(String));
    return this.home.transact('readwrite', async ({ refused }) => {
      for (const { number, write } of await resultOf(refused.getAll(within(this.folder, this.store)))) {
        if (texts.has(String(write))) refused.delete([this.folder, this.store, number]);
      }
    });
  }

  async close() {}
}

const contentOf = (row, entries) => ({ version: row?.version ?? 0, meta: row?.meta,
  entries: entries.map(({ key, entry }) => ({ key, entry })) });
