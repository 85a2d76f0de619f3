// SPDX-License-Identifier: Apache-2.0

/** The rows of one store in a browser's database, which other tabs change too. */

import { UbiquityError } from './values.js';
import { refusedMax } from './disk.js';

/** What a list of a row's key can begin with. An array is greater than any text, number and data. */
export const within = (...key) => IDBKeyRange.bound(key, [...key, []]);

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
    return this.home.transact('readwrite', ({ entries }) => {
      for (const key of keys) {
        const row = entries.get([folder, store, key]);
        row.onsuccess = () => {
          if (row.result && !row.result.entry && row.result.version <= version) entries.delete([folder, store, key]);
        };
      }
      return () => undefined;
    });
  }

  /** What was saved after a version; undefined if nothing was. */
  async changedAfter(version) {
    const content = await this.read(version);
    return content.version === version ? undefined : content;
  }

  /** @param {number | null} after */
  read(after) {
    return this.home.transact('readonly', ({ stores, entries }) => {
      const row = stores.get([this.folder, this.store]);
      const changed = this.changed(entries, after);
      return () => {
        if (after > (row.result?.version ?? 0)) throw this.removed;
        return contentOf(row.result, changed.result);
      };
    });
  }

  /** The request for what was saved after a version. */
  changed(entries, after) {
    const { folder, store } = this;
    return after === null ? entries.getAll(within(folder, store)) : entries.index('versions').getAll(
      IDBKeyRange.bound([folder, store, after], [folder, store, []], true));
  }

  get removed() { return new UbiquityError('storage', 'the account of these values was removed'); }

  /**
   * Saves, if the disk has the version that the step expects.
   * @param {{expects: number, entries: {key: Uint8Array, entry?: Uint8Array}[], meta?: Uint8Array,
   *     refused?: Uint8Array[]}} step
   * @returns {Promise<{version?: number, content?: any}>}
   */
  save(step) {
    return this.home.transact('readwrite', ({ stores, entries, refused }, commit, refuse) => {
      const request = stores.get([this.folder, this.store]);
      let outcome;
      request.onsuccess = () => {
        const row = { folder: this.folder, store: this.store, version: 0, refused: 0, ...request.result };
        if (row.version < step.expects) return refuse(this.removed);
        if (row.version !== step.expects) {
          const changed = this.changed(entries, step.expects);
          outcome = () => ({ content: contentOf(row, changed.result) });
          return commit();
        }
        row.version += 1;
        if (step.meta) row.meta = step.meta;
        this.put(step, row, entries, refused);
        stores.put(row);
        outcome = () => ({ version: row.version });
        return commit();
      };
      return () => outcome();
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
    return this.home.transact('readonly', ({ refused }) => {
      const rows = refused.getAll(within(this.folder, this.store));
      return () => rows.result.map(({ write }) => write).reverse();
    });
  }

  /** Removes refused writes. @param {Uint8Array[]} gone */
  forget(gone) {
    const texts = new Set(gone.map(String));
    return this.home.transact('readwrite', ({ refused }) => {
      const rows = refused.getAll(within(this.folder, this.store));
      rows.onsuccess = () => {
        for (const { number, write } of rows.result) {
          if (texts.has(String(write))) refused.delete([this.folder, this.store, number]);
        }
      };
      return () => undefined;
    });
  }

  async close() {}
}

const contentOf = (row, entries) => ({ version: row?.version ?? 0, meta: row?.meta,
  entries: entries.map(({ key, entry }) => ({ key, entry })) });
