// SPDX-License-Identifier: Apache-2.0

/** Browsers: a database that all tabs open. What one saves, it tells the others, who look. */

import { newFolder, newState } from './account.js';
import { UbiquityError, reasonOf } from './values.js';
import { DatabaseDisk, resultOf, within } from './database-disk.js';
import { Lease } from './lease.js';

/** The version of the database. */
const format = 3;
/** The longest that the database may take for anything. */
const patienceMilliseconds = 10_000;
const tables = ['account', 'stores', 'entries', 'refused'];
/** With the redo log, which only few transactions touch: a write to it waits for none that waits for a tab. */
const allTables = [...tables, 'redo'];

const storageError = (sentence) => new UbiquityError('storage', sentence);

/** @param {any} [state] */
const accountOf = (state) => state ?? { ...newState(), folder: newFolder(), database: newFolder() };

/** Makes the tables. What is there is of a version before the first release. */
function make(database, transaction) {
  for (const name of database.objectStoreNames) database.deleteObjectStore(name);
  database.createObjectStore('account');
  database.createObjectStore('stores', { keyPath: ['folder', 'store'] });
  database.createObjectStore('entries', { keyPath: ['folder', 'store', 'key'] })
    .createIndex('versions', ['folder', 'store', 'version']);
  database.createObjectStore('refused', { keyPath: ['folder', 'store', 'number'] });
  database.createObjectStore('redo', { keyPath: ['folder', 'store', 'tab', 'number'] });
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
    const { error } = request;
    reject(storageError(error.name === 'VersionError'
      ? 'a newer version of this page has written the values here; reload it'
      : `the browser keeps no values: ${reasonOf(error)}`));
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
 * Runs a transaction, all of it or nothing. `body` awaits nothing but results of its requests, and what it returns
 * is the outcome. A tab that stands still within a transaction keeps all others from saving: so whoever has made the
 * last request commits, and waits for nothing.
 * @template T @param {IDBDatabase} database @param {IDBTransactionMode} mode @param {string[]} names
 * @param {(tables: Record<string, IDBObjectStore>, commit: () => void) => Promise<T>} body
 * @returns {Promise<T>}
 */
const run = (database, mode, names, body) => new Promise((resolve, reject) => {
  const transaction = database.transaction(names, mode, { durability: 'strict' });
  let why = null;
  const refuse = (error) => {
    if (why) return;
    why = error;
    // If it is being committed, it will be known in a moment, or never.
    try { transaction.abort(); } catch { setTimeout(() => end(() => reject(why)), 1_000); }
  };
  const timer = setTimeout(() => refuse(new Error('the database does not answer')), patienceMilliseconds);
  const end = (tell) => {
    clearTimeout(timer);
    underWay.delete(refuse);
    tell();
  };
  underWay.add(refuse);
  const commit = () => { try { transaction.commit?.(); } catch { /* It is being committed, or has ended. */ } };
  const outcome = body(Object.fromEntries(names.map((name) => [name, transaction.objectStore(name)])), commit);
  // What has failed by itself has a reason, which comes before those of its requests.
  outcome.then(commit, (error) => { if (!transaction.error) refuse(error); });
  // A large value may come later than the end of the transaction that has read it.
  transaction.oncomplete = () =>
    outcome.then((result) => end(() => resolve(result)), (error) => end(() => reject(error)));
  transaction.onabort = () =>
    end(() => reject(why ?? transaction.error ?? new Error('the database has given up a transaction')));
  if (mode === 'readonly') commit();
});

export class DatabaseFolder {
  /** Why the values are gone for good, in this tab. */
  gone = '';
  /** Whether another tab has erased everything: then nobody is signed in, either. */
  isErased = false;
  /** @type {Promise<IDBDatabase> | null} */
  database = null;
  /** The same, while it is open. @type {IDBDatabase | null} */
  connection = null;
  /** The name of this tab, that no other one has. */
  tab = newFolder();
  /** The number of the last row of its redo log. */
  logged = 0;
  /** Whether the browser keeps what is here when it needs room; null while that is not known. @type {boolean | null} */
  isPersisted = null;
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
      this.presence = new Lease(this.presenceOf(this.tab), () => resolve(), reject);
    });
  }

  /** The name of the lock that a tab holds while it is there. */
  presenceOf(tab) { return `${this.name} tab ${tab}`; }

  /** Whether no other tab can have known what is in the database. */
  async isAlone() {
    return (await this.tabs()).size === 1;
  }

  /** The tabs that are there. @returns {Promise<Set<string>>} */
  async tabs() {
    const [{ held = [] }, first] = [await navigator.locks.query(), this.presenceOf('')];
    return new Set(held.flatMap(({ name }) => (name?.startsWith(first) ? name.slice(first.length) : [])));
  }

  static async open(home) {
    if (!navigator.locks) throw storageError('a page has locks only with https, or on localhost');
    const folder = new DatabaseFolder(home);
    try {
      await folder.isPresent;
      await folder.connect();
      folder.isPersisted = await navigator.storage?.persisted?.().catch(() => null) ?? null;
    } catch (error) {
      await folder.close();
      throw error instanceof UbiquityError ? error : storageError(`the browser keeps no values: ${reasonOf(error)}`);
    }
    return folder;
  }

  connect() {
    if (this.gone) throw storageError(this.gone);
    const opening = this.database ?? openDatabase(this.name).then((database) => {
      this.connection = database;
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
    [this.database, this.connection] = [null, null];
    this.tell('account');
    this.tell('files');
  }

  /** Runs a transaction; on a database that is opened again, if the browser has closed it. */
  async transact(mode, body, names = tables) {
    for (let isSecond = false; ; isSecond = true) {
      const opening = this.connect();
      const database = await opening;
      try { return await run(database, mode, names, body); } catch (error) {
        if (isSecond || error.name !== 'InvalidStateError' || this.isClosed) {
          throw error instanceof UbiquityError ? error : storageError(reasonOf(error));
        }
        this.lose(opening);
      }
    }
  }

  /**
   * Changes the redo log, in the task of now, after which the page may be gone: so it waits for nothing, not even for
   * what else the tab does with the database. It does not say whether it fails; the save that follows does.
   * @param {(log: IDBObjectStore) => void} change
   */
  log(change) {
    try {
      const transaction = /** @type {IDBDatabase} */ (this.connection)
        .transaction('redo', 'readwrite', { durability: 'relaxed' });
      change(transaction.objectStore('redo'));
      transaction.commit?.();
    } catch { /* The database is closed. */ }
  }

  disk(folder, identifier) { return new DatabaseDisk(this, folder, identifier); }

  /** The stores that are there. @returns {Promise<{folder: string, store: string}[]>} */
  documents() {
    return this.transact('readonly', async ({ stores }) =>
      (await resultOf(stores.getAllKeys())).map(([folder, store]) => ({ folder, store })));
  }

  // The device's sign-in

  async readAccount() {
    if (this.isErased) return null;
    return this.transact('readonly', async ({ account }) => await resultOf(account.get('account')) ?? null);
  }

  changeAccount(change) {
    return this.transact('readwrite', async ({ account }) => {
      const state = change(accountOf(await resultOf(account.get('account'))));
      account.put(state, 'account');
      return state;
    });
  }

  /** Removes the values that no account has. @param {(state: any) => Set<string>} owned */
  async removeUnowned(owned) {
    const unowned = async (/** @type {any} */ { account, stores }) => {
      const [state, keys] = await Promise.all([account.get('account'), stores.getAllKeys()].map(resultOf));
      const folders = owned(accountOf(state));
      return new Set(keys.map(([folder]) => folder).filter((folder) => !folders.has(folder)));
    };
    if (!(await this.transact('readonly', unowned)).size) return;
    await this.transact('readwrite', async (all) => {
      const { account: _, ...ofStores } = all;
      for (const folder of await unowned(all)) {
        for (const table of Object.values(ofStores)) table.delete(within(folder));
      }
    }, allTables);
  }

  // The platform

  /** Asks the browser to keep what is here when it needs room. */
  persist() {
    navigator.storage?.persist?.().then((isPersisted) => { this.isPersisted = isPersisted; }, () => {});
  }

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
      await this.transact('readwrite', async (all) => {
        for (const table of Object.values(all)) table.clear();
      }, allTables);
    }
    await this.close();
    const request = indexedDB.deleteDatabase(this.name);
    // Another tab may have it open. Its rows are gone already.
    await new Promise((resolve) => { request.onsuccess = request.onerror = request.onblocked = resolve; });
  }
}
