// SPDX-License-Identifier: Apache-2.0

/** Browsers: a database, of which one tab is the leader at a time. */

import { openDeviceIn, openStoreIn } from './device.js';
import { keyAndPart } from './records.js';
import { UbiquityError } from './values.js';

export { version } from './http.js';
export { ExactDate, Real, UbiquityError, real } from './values.js';

export const openDevice = async ({ home = 'ubiquity' } = {}) => openDeviceIn(await DatabaseFolder.open(home));
/** Opens a store, with a device of its own. @param {{identifier: string, home?: string}} options */
export const openStore = async ({ home = 'ubiquity', ...options }) =>
  openStoreIn(await DatabaseFolder.open(home), options);

/**
 * The stores with writes that no server has yet, as they are on the disk, with the number of their keys. `isOwn`:
 * of the account that is signed in.
 * @param {any} device @returns {Promise<{identifier: string, keys: number, isOwn: boolean}[]>}
 */
export async function unsentStores({ folder, state }) {
  const stores = [];
  for (const document of await folder.documents()) {
    const [owner, identifier] = document.split('/');
    if (!identifier) continue;
    const waiting = [...await folder.read(document)].filter(([name, text]) =>
      name.startsWith('e') && text.includes('"pending":{') && JSON.parse(text).pending);
    const keys = new Set(waiting.map(([name]) => keyAndPart(name.slice(1))[0])).size;
    if (keys) stores.push({ identifier, keys, isOwn: owner === state.folder });
  }
  return stores;
}

/** @param {IDBRequest} request @returns {Promise<any>} */
const result = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

class DatabaseFolder {
  constructor(database, home) {
    this.database = database;
    this.home = home;
    this.channel = new BroadcastChannel(`ubiquity ${home}`);
    this.isErased = false;
    // Another tab erases everything, and waits for this one to let go.
    database.onversionchange = () => {
      this.isErased = true;
      database.close();
    };
  }

  static async open(home) {
    if (!navigator.locks) {
      throw new UbiquityError('storage', 'a page has locks only with https, or on localhost');
    }
    const request = indexedDB.open(`ubiquity ${home}`, 1);
    request.onupgradeneeded = () => request.result.createObjectStore('rows');
    try { return new DatabaseFolder(await result(request), home); } catch (error) {
      throw new UbiquityError('storage', `the browser keeps no values: ${error?.message}`);
    }
  }

  checkErased() {
    if (this.isErased) throw new UbiquityError('storage', 'another tab has erased everything; reload the page');
  }

  // The key of a row is [document, name]; an array is greater than any text.
  async read(document) {
    this.checkErased();
    const rows = this.database.transaction('rows').objectStore('rows');
    const range = IDBKeyRange.bound([document], [document, []]);
    const [keys, texts] = await Promise.all([result(rows.getAllKeys(range)), result(rows.getAll(range))]);
    return new Map(keys.map(([, name], i) => [name, texts[i]]));
  }

  /** The names of all documents. */
  async documents() {
    this.checkErased();
    const names = [];
    const request = this.database.transaction('rows').objectStore('rows').openKeyCursor();
    await new Promise((resolve, reject) => {
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const cursor = request.result;
        if (!cursor) return resolve(undefined);
        const [name] = /** @type {string[]} */ (cursor.key);
        names.push(name);
        return cursor.continue([name, []]);
      };
    });
    return names;
  }

  /** @param {(rows: IDBObjectStore) => void} change @returns {Promise<void>} */
  async change(change) {
    this.checkErased();
    await new Promise((resolve, reject) => {
      const transaction = this.database.transaction('rows', 'readwrite', { durability: 'strict' });
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
      change(transaction.objectStore('rows'));
    });
  }

  write(document, changes) {
    return this.change((rows) => {
      for (const [name, text] of changes) {
        if (text === null) rows.delete([document, name]);
        else rows.put(text, [document, name]);
      }
    });
  }

  async readAccount() { return JSON.parse((await this.read('account')).get('device') ?? 'null'); }

  async changeAccount(change) {
    const state = change(await this.readAccount());
    await this.write('account', new Map([['device', JSON.stringify(state)]]));
    return state;
  }

  async removeUnowned(owned) {
    const folders = owned(await this.readAccount());
    for (const document of await this.documents()) {
      const [folder, identifier] = document.split('/');
      if (identifier && !folders.has(folder)) await this.removeAll(`${folder}/`);
    }
  }

  removeAll(prefix) {
    return this.change((rows) => rows.delete(IDBKeyRange.bound([prefix], [`${prefix}\uffff`])));
  }

  post(message) { this.channel.postMessage(message); }

  onMessage(receive) {
    const listener = ({ data }) => receive(data);
    this.channel.addEventListener('message', listener);
    return () => this.channel.removeEventListener('message', listener);
  }

  lead(name, lead) {
    const waiting = new AbortController();
    let release = () => {};
    navigator.locks.request(`ubiquity ${this.home} ${name}`, { signal: waiting.signal }, () => {
      lead();
      return new Promise((resolve) => { release = () => resolve(undefined); });
    }).catch(() => {});
    return () => {
      waiting.abort();
      release();
    };
  }

  async close() {
    this.channel.close();
    this.database.close();
  }

  async erase() {
    if (!this.isErased) await this.change((rows) => rows.clear());
    await this.close();
    const request = indexedDB.deleteDatabase(this.database.name);
    // Another tab may have it open. Its rows are gone already.
    await new Promise((resolve) => { request.onsuccess = request.onerror = request.onblocked = resolve; });
  }
}
