// SPDX-License-Identifier: Apache-2.0

/** The rows of one store in a browser's database, which other tabs change too. */

import { UbiquityError } from './values.js';
import { refusedMax } from './disk.js';
import { Lease } from './lease.js';
import { claimLock } from './pool.js';
import { closed } from './waiting.js';

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
    this.hasLog = false;
    /** For each other tab, what waits for its end. @type {Map<string, Lease>} */
    this.watched = new Map();
    /** The tabs whose redo log was taken, with what ends that. @type {Map<string, () => void>} */
    this.taken = new Map();
    /** The tabs that are gone, and their redo logs too. @type {Set<string>} */
    this.gone = new Set();
    this.isClosed = false;
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
   * Saves, if the disk has the version that the step expects. It says how far it has the redo logs of tabs, and
   * with that, their rows go.
   * @param {{expects: number, entries: {key: Uint8Array, entry?: Uint8Array}[], meta?: Uint8Array,
   *     refused?: Uint8Array[]}} step @param {Redo[]} redone
   * @returns {Promise<{version?: number, content?: any}>}
   */
  async save(step, redone = []) {
    const ends = this.endsOf(redone);
    const outcome = await this.home.transact('readwrite', async ({ stores, entries, refused }, commit) => {
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
      row.redone = new Map([...row.redone ?? [], ...ends].filter(([tab]) => !this.gone.has(tab)));
      stores.put(row);
      return { version: row.version };
    });
    if (outcome.version) this.remove(ends);
    return outcome;
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

  // The redo log

  /** The rows of a tab's redo log, up to a number. */
  rowsOf(tab, last = Infinity) {
    return IDBKeyRange.bound([this.folder, this.store, tab, 0], [this.folder, this.store, tab, last]);
  }

  /** Keeps writes that no save has yet, and gives each its number. @param {Redo[]} writes */
  keep(writes) {
    const { folder, store, home } = this;
    home.log((log) => {
      for (const write of writes) {
        home.logged += 1;
        write.number = home.logged;
        log.put({ folder, store, tab: home.tab, number: write.number, entries: write.entries });
      }
    });
    // From now on, the others look after it when this tab is gone.
    if (!this.hasLog) home.post(`${this.document} log`);
    this.hasLog = true;
  }

  /** How far tabs have logged what was written. @param {Redo[]} writes @returns {Map<string, number>} */
  endsOf(writes) {
    const ends = new Map();
    for (const { tab = this.home.tab, number } of writes) if (number) ends.set(tab, number);
    return ends;
  }

  /** Removes rows that a save has; if that fails, whoever reads them sees that. @param {Map<string, number>} ends */
  remove(ends) {
    this.home.log((log) => { for (const [tab, end] of ends) log.delete(this.rowsOf(tab, end)); });
    for (const tab of ends.keys()) this.giveBack(tab);
  }

  /** Gives up what was written, and is in no save. @param {Redo[]} lost */
  async drop(lost) { this.remove(this.endsOf(lost)); }

  /**
   * Takes the redo logs of the tabs that are gone, and calls later for each of the others that goes, which may have
   * written by then. Nobody else takes one meanwhile.
   * @param {(log: Redo) => void} redo @returns {Promise<Redo[]>}
   */
  async inherit(redo) {
    const [keys, row] = await this.readLog(within(this.folder, this.store), 'getAllKeys');
    const logged = new Set(keys.map(([, , tab]) => tab));
    const present = await this.home.tabs();
    for (const tab of row?.redone?.keys() ?? []) if (!logged.has(tab) && !present.has(tab)) this.gone.add(tab);
    /** @type {(Redo | null)[]} */
    const logs = [];
    for (const tab of new Set([...logged, ...present])) {
      if (this.isClosed || tab === this.home.tab || this.watched.has(tab) || this.taken.has(tab)) continue;
      const free = logged.has(tab) ? await claimLock([this.home.presenceOf(tab)]) : null;
      if (free) logs.push(await this.take(tab, free));
      else this.watch(tab, redo);
    }
    return logs.flatMap((log) => log ?? []);
  }

  /** The logs of tabs, of what no save has. @returns {Promise<Redo[]>} */
  async unsaved(range = within(this.folder, this.store)) {
    const [rows, row] = await this.readLog(range, 'getAll');
    /** @type {Map<string, Redo>} */
    const logs = new Map();
    for (const { tab, number, entries } of rows) {
      if (number <= (row?.redone?.get(tab) ?? 0)) continue;
      logs.set(tab, { do: 'redo', tab, number, entries: [...logs.get(tab)?.entries ?? [], ...entries] });
    }
    return [...logs.values()];
  }

  /**
   * What is in the redo log, and then the row of the store, which says how far logs are in a save. Not in one transaction:
   * it would wait for saves, and writes of the log for it.
   */
  async readLog(range, how) {
    const { folder, store, home } = this;
    const rows = await home.transact('readonly', ({ redo }) => resultOf(redo[how](range)), ['redo']);
    return [rows, await home.transact('readonly', ({ stores }) => resultOf(stores.get([folder, store])), ['stores'])];
  }

  watch(tab, redo) {
    const lease = new Lease(this.home.presenceOf(tab), async () => {
      try {
        const log = await this.take(tab, () => lease.release());
        if (log) redo(log);
      } catch { /* It is there for the next one who looks. */ }
    });
    this.watched.set(tab, lease);
  }

  /** A log, if there is anything in it: until it is given back, nobody else has it. @returns {Promise<Redo | null>} */
  async take(tab, free) {
    this.taken.set(tab, free);
    try {
      if (this.isClosed) throw closed();
      const [log] = await this.unsaved(this.rowsOf(tab));
      if (log) return log;
    } catch (error) {
      this.giveBack(tab);
      throw error;
    }
    this.remove(new Map([[tab, Infinity]]));
    return null;
  }

  giveBack(tab) {
    this.taken.get(tab)?.();
    this.taken.delete(tab);
    this.watched.delete(tab);
  }

  async close() {
    this.isClosed = true;
    for (const lease of this.watched.values()) lease.release();
    for (const tab of [...this.taken.keys()]) this.giveBack(tab);
  }
}

const contentOf = (row, entries) => ({ version: row?.version ?? 0, meta: row?.meta,
  entries: entries.map(({ key, entry }) => ({ key, entry })) });
