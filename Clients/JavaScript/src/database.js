// SPDX-License-Identifier: Apache-2.0

/** Browsers: a database that all tabs open. What one saves, it tells the others, who look. */

import { newFolder, newState } from './account.js';
import { UbiquityError } from './values.js';
import { DatabaseDisk, within } from './database-disk.js';
import { Lease } from './lease.js';

/** The version of the database. */
const format = 2;
/** The longest that the database may take for anything. */
const patienceMilliseconds = 10_000;
const tables = ['account', 'stores', 'entries', 'refused'];

const storageError = (sentence) => new UbiquityError('storage', sentence);

/** @param {any} [state] */
const accountOf = (state) => state ?? { ...newState(), folder: newFolder() };

/** Makes the tables. What is there is of a version before the first release. */
function make(database, transaction) {
  for (const name of database.objectStoreNames) database.deleteObjectStore(name);
  database.createObjectStore('account');
  database.createObjectStore('stores', { keyPath: ['folder', 'store'] });
  database.createObjectStore('entries', { keyPath: ['folder', 'store', 'key'] })
    .createIndex('versions', ['folder', 'store', 'version']);
  database.createObjectStore('refused', { keyPath: ['folder', 'store', 'number'] });
  // A database that the browser has cleared is another one, with another folder: tabs that were open follow.
  transaction.objectStore('account').put(accountOf(), 'account');
}

/** Opens a database, or says why not. @param {string} name @returns {Promise<IDBDatabase>} */
const openDatabase = (name) => new Promise((resolve, reject) => {
  if (typeof indexedDB === 'undefined') throw storageError('this browser has no IndexedDB, so it keeps no values');
  const request = indexedDB.open(name, format);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    reject(storageError('the browser does not open its database; close other tabs of this page, or the browser'));
  }, patienceMilliseconds);
  request.onupgradeneeded = () => make(request.result, request.transaction);
  request.onerror = () => {
    clearTimeout(timer);
    const { name: kind, message } = request.error;
    reject(storageError(kind === 'VersionError' ? 'a newer version of this page has written the values here; reload it'
      : `the browser keeps no values: ${message}`));
  };
  request.onsuccess = () => {
    clearTimeout(timer);
    if (isLate) request.result.close();
    else resolve(request.result);
  };
});

/** What has begun, and gives up when the tab is to stand still: nobody else could save meanwhile. */
const underWay = new Set();
if (typeof document !== 'undefined') {
  document.addEventListener('freeze', () => {
    for (const refuse of underWay) refuse(new Error('the tab was frozen'));
  });
}

/**
 * Runs a transaction, all of it or nothing. `body` begins its requests, and returns what has their outcome in
 * the end. A tab that stands still within a transaction keeps all others from saving: so whoever has made the
 * last request commits, and waits for nothing.
 * @template T @param {IDBDatabase} database @param {IDBTransactionMode} mode
 * @param {(tables: Record<string, IDBObjectStore>, commit: () => void, refuse: (error: Error) => void)
 *     => (() => T)} body
 * @returns {Promise<T>}
 */
const run = (database, mode, body) => new Promise((resolve, reject) => {
  const transaction = database.transaction(tables, mode, { durability: 'strict' });
  let why = null;
  const refuse = (error) => {
    why ??= error;
    // If it is being committed, it will be known in a moment, or never.
    try { transaction.abort(); } catch { timer = setTimeout(() => end(() => reject(why)), 1_000); }
  };
  let timer = setTimeout(() => refuse(new Error('the database does not answer')), patienceMilliseconds);
  const end = (tell) => {
    clearTimeout(timer);
    underWay.delete(refuse);
    tell();
  };
  underWay.add(refuse);
  let outcome;
  transaction.oncomplete = () => end(() => { try { resolve(outcome()); } catch (error) { reject(error); } });
  transaction.onabort = () =>
    end(() => reject(why ?? transaction.error ?? new Error('the database has given up a transaction')));
  const commit = () => transaction.commit?.();
  outcome = body(Object.fromEntries(tables.map((name) => [name, transaction.objectStore(name)])), commit, refuse);
  if (mode === 'readonly') commit();
});

export class DatabaseFolder {
  /** Why the values are gone for good, in this tab. */
  gone = '';
  /** Whether another tab has erased everything: then nobody is signed in, either. */
  isErased = false;
  /** @type {Promise<IDBDatabase> | null} */
  database = null;
  /** What is told when the database may be another one. */
  listeners = new Set();

  /** @param {string} home */
  constructor(home) {
    this.home = home;
    this.name = `ubiquity ${home}`;
    this.channel = new BroadcastChannel(this.name);
    this.channel.onmessage = ({ data }) => { this.tell(data); };
    /** Held while this tab is there, from before it has read anything. @type {Promise<void>} */
    this.isPresent = new Promise((resolve, reject) => {
      this.presence = new Lease(`${this.name} tabs`, () => resolve(), 'shared', reject);
    });
  }

  /** Whether no other tab can have known what is in the database. */
  async isAlone() {
    const { held = [] } = await navigator.locks.query();
    return held.filter(({ name }) => name === this.presence.name).length === 1;
  }

  static async open(home) {
    if (!navigator.locks) throw storageError('a page has locks only with https, or on localhost');
    const folder = new DatabaseFolder(home);
    try {
      await folder.isPresent;
      await folder.connect();
    } catch (error) {
      await folder.close();
      throw error instanceof UbiquityError ? error : storageError(`the browser keeps no values: ${error?.message}`);
    }
    return folder;
  }

  connect() {
    if (this.gone) throw storageError(this.gone);
    const opening = this.database ?? openDatabase(this.name).then((database) => {
      // The browser has closed it, perhaps because it has cleared it.
      database.onclose = () => this.lose(opening);
      // Another tab erases everything, or is of a newer version, and waits for this one to let go.
      database.onversionchange = ({ newVersion }) => {
        this.isErased = newVersion === null;
        this.gone = this.isErased ? 'another tab has erased everything; reload the page'
          : 'a newer version of this page is open in another tab; reload this one';
        database.close();
        // It may come before what that tab says of it.
        this.tell('account');
      };
      return database;
    });
    this.database = opening;
    opening.catch(() => { if (this.database === opening) this.database = null; });
    return opening;
  }

  lose(database) {
    if (this.database !== database) return;
    this.database = null;
    this.tell('account');
    this.tell('files');
  }

  /** Runs a transaction; on a database that is opened again, if the browser has closed it. */
  async transact(mode, body) {
    for (let isSecond = false; ; isSecond = true) {
      const opening = this.connect();
      const database = await opening;
      try { return await run(database, mode, body); } catch (error) {
        if (isSecond || error.name !== 'InvalidStateError' || this.isClosed) {
          throw error instanceof UbiquityError ? error : storageError(String(error?.message ?? error));
        }
        this.lose(opening);
      }
    }
  }

  disk(folder, identifier) { return new DatabaseDisk(this, folder, identifier); }

  /** The stores that are there. @returns {Promise<{folder: string, store: string}[]>} */
  documents() {
    return this.transact('readonly', ({ stores }) => {
      const keys = stores.getAllKeys();
      return () => keys.result.map(([folder, store]) => ({ folder, store }));
    });
  }

  // The device's sign-in

  async readAccount() {
    if (this.isErased) return null;
    return this.transact('readonly', ({ account }) => {
      const state = account.get('account');
      return () => state.result ?? null;
    });
  }

  changeAccount(change) {
    return this.transact('readwrite', ({ account }, commit, refuse) => {
      const old = account.get('account');
      let state;
      old.onsuccess = () => {
        try { state = change(accountOf(old.result)); } catch (error) { return refuse(error); }
        account.put(state, 'account');
        return commit();
      };
      return () => state;
    });
  }

  /** Removes the values that no account has. @param {(state: any) => Set<string>} owned */
  async removeUnowned(owned) {
    const unowned = (state, keys) => {
      const folders = owned(accountOf(state.result));
      return new Set(keys.result.map(([folder]) => folder).filter((folder) => !folders.has(folder)));
    };
    const some = await this.transact('readonly', ({ account, stores }) => {
      const [state, keys] = [account.get('account'), stores.getAllKeys()];
      return () => unowned(state, keys);
    });
    if (!some.size) return;
    await this.transact('readwrite', ({ account, ...all }, commit) => {
      const [state, keys] = [account.get('account'), all.stores.getAllKeys()];
      keys.onsuccess = () => {
        for (const folder of unowned(state, keys)) for (const table of Object.values(all)) table.delete(within(folder));
        commit();
      };
      return () => undefined;
    });
  }

  // The platform

  /** Asks the browser to keep what is here when it needs room. */
  persist() { navigator.storage?.persist?.().catch(() => {}); }

  tell(message) { for (const listener of [...this.listeners]) listener(message); }

  /** Tells the other tabs. It is a hint: they look for themselves. */
  post(message) { if (!this.isClosed) this.channel.postMessage(message); }

  onMessage(receive) {
    this.listeners.add(receive);
    return () => { this.listeners.delete(receive); };
  }

  /** Calls when the network is back, or somebody looks at the page again. */
  onWake(wake) {
    const look = () => { if (document.visibilityState === 'visible') wake(); };
    const events = [[window, 'online', wake], [window, 'pageshow', wake], [document, 'resume', wake],
      [document, 'visibilitychange', look]];
    for (const [target, name, listener] of events) target.addEventListener(name, listener);
    return () => { for (const [target, name, listener] of events) target.removeEventListener(name, listener); };
  }

  /** Calls when this tab is about to stand still, where the browser says so. */
  onFreeze(rest) {
    document.addEventListener('freeze', rest);
    return () => document.removeEventListener('freeze', rest);
  }

  lead(name, tell) { return new Lease(`${this.name} ${name}`, tell); }

  async close() {
    this.isClosed = true;
    this.channel.close();
    this.presence.release();
    (await this.database?.catch(() => null))?.close();
  }

  async erase() {
    if (!this.gone) {
      await this.transact('readwrite', (all) => {
        for (const table of Object.values(all)) table.clear();
        return () => undefined;
      });
    }
    await this.close();
    const request = indexedDB.deleteDatabase(this.name);
    // Another tab may have it open. Its rows are gone already.
    await new Promise((resolve) => { request.onsuccess = request.onerror = request.onblocked = resolve; });
  }
}
