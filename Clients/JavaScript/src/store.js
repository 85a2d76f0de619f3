// SPDX-License-Identifier: Apache-2.0

/** A store, as an app reads, writes and watches it. index.d.ts says what its members are for. */

import { isSame, toWire } from './exact.js';
import { Feed } from './feed.js';
import { Reading, isEqual } from './reading.js';
import { Shell } from './shell.js';
import { UbiquityError, exactOf, isNumber, isText, readable, remember, writable } from './values.js';

/** The engine's letters. */
const policies = { latest: undefined, counter: 'c', maximum: 'x', minimum: 'n', unionOfArrays: 'a',
  unionOfDictionaries: 'd', custom: 'r' };
const reasons = { initialSync: 'initialSyncChange', ownWrite: 'localChange' };
const nothing = { account: null, lastError: null, lastSync: null, nextRetry: null, diskError: null };

function checkedKey(key) {
  if (isText(key) && key !== '') return key;
  throw new UbiquityError('key', 'a key is a string that is not empty');
}

/** The most observers that write within each other. */
const depthMax = 100;
/** Of the engine's status, what is an app's. */
const shown = ({ saved: _, accountID: __, ...status }, { isPersisted = null }) => ({ ...nothing, ...status, isPersisted });
const isGone = (value) => value === null || value === undefined;
/** Throws when nobody can catch it: a program of Node ends then. */
const throwLater = (error) => queueMicrotask(() => { throw error; });

export class Store extends EventTarget {
  ownsDevice = false;
  shell;
  #read;
  /** @type {Map<string, Set<() => void>>} */
  #watchers = new Map();
  /** @type {Map<Feed, (reason: string, keys: string[]) => void>} */
  #changes = new Map();
  /** @type {Map<Feed, null>} */
  #statuses = new Map();
  #resolvers = new Map();
  #status = '';
  #looks = false;
  /** Listeners as they are called, by what the app has given. @type {WeakMap<object, (event: Event) => any>} */
  #listeners = new WeakMap();
  /** So many observers write, each called by the write of the one before. */
  #depth = 0;
  /** Whether anybody ever wanted to hear of the status. */
  #hasListener = false;

  /**
   * @param {import('./device.js').Device} device @param {string} identifier
   * @param {{firstSync?: 'serverWins' | 'timestamps', historyExcluded?: Iterable<string>}} options
   * @param {WebAssembly.Module} module
   */
  constructor(device, identifier, options, module) {
    super();
    this.device = device;
    this.identifier = identifier;
    this.#read = new Reading((key) => this.shell.value(checkedKey(key)), () => this.shell.ask({ do: 'keys' }));
    this.shell = new Shell(device, identifier, options, module, {
      heard: () => {
        this.#read.forget();
        this.#look();
      },
      notice: (reason, keys) => this.#changed(reasons[reason] ?? reason, keys),
      decide: (key, values) => this.#decide(key, values),
      problem: (detail) => this.#problem(detail),
    });
  }

  #problem(detail) { this.dispatchEvent(Object.assign(new Event('problem'), { detail })); }

  start() { return this.shell.start(); }

  /** Nothing of the sign-in. */
  toJSON() { return { identifier: this.identifier, status: this.status }; }
  [Symbol.for('nodejs.util.inspect.custom')]() { return this.toJSON(); }

  // Reading

  get(key) { return this.#read.key(key)?.value; }
  has(key) { return this.#read.key(key) !== null; }

  exact(key) {
    const read = this.#read.key(key);
    return read && toWire(read.exact);
  }

  keys() { return [...this.#read.table.keys]; }
  values() { return new Map(this.keys().map((key) => [key, this.get(key)])); }

  bytes(key) {
    const { bytes, places } = this.#read.table;
    return bytes[places.get(checkedKey(key))] ?? 0;
  }

  lastWrite(key) {
    const { devices, milliseconds, places } = this.#read.table;
    const place = places.get(checkedKey(key));
    return place === undefined ? null
      : { deviceID: devices[place] || null, date: new Date(milliseconds[place]) };
  }

  get status() {
    return shown(this.shell.status, this.device.folder);
  }

  // Writing

  /** @param {object} [more] How it is written. */
  #write(writes, more = {}) {
    if (this.#depth >= depthMax) {
      throw new UbiquityError('refused', `${writes[0]?.key}: observers write within each other without end`);
    }
    const refusal = this.shell.write(writes, more);
    if (refusal.error) {
      const place = writes.length === 1 ? `${writes[0].key}: ` : '';
      throw Object.assign(new UbiquityError(refusal.error, `${place}${refusal.detail}`),
        { keys: writes.map(({ key }) => key) });
    }
    if (!refusal.changed) return;
    this.#read.forget(refusal.changed);
    this.#depth += 1;
    try { this.#changed('localChange', refusal.changed); } finally { this.#depth -= 1; }
  }

  #intent(key, value, old = undefined) {
    if (isGone(value)) return { key: checkedKey(key) };
    const mayHaveNumbers = typeof value === 'number' || typeof value === 'object';
    const before = old ?? (mayHaveNumbers ? this.#read.key(key)?.exact : undefined);
    return { key: checkedKey(key), value: writable(value, before, key) };
  }

  set(key, value) { this.#write([this.#intent(key, value)]); }
  remove(key) { this.#write([{ key: checkedKey(key) }]); }

  batch(body) {
    const writes = new Map();
    const get = (key) => (writes.has(key) ? readable(writes.get(key).value) : this.get(key));
    const set = (key, value) => { writes.set(key, this.#intent(key, value, writes.get(key)?.value)); };
    const outcome = body({ get, set, remove: (key) => set(key, null) });
    if (typeof outcome?.then === 'function') {
      throw new UbiquityError('batch', 'a batch cannot wait: nobody else may see half of it');
    }
    this.#write([...writes.values()]);
    return outcome;
  }

  removeAll() { this.#write(this.keys().map((key) => ({ key })), { how: 'parts' }); }

  increment(key, by = 1) {
    const value = writable(by, undefined, key);
    if (!isNumber(value)) {
      throw new UbiquityError('unsupported-value', `${key}: ${by} is not a number`);
    }
    this.#write([{ key: checkedKey(key), policy: policies.counter, base: 0, value }]);
  }

  revert(values) {
    const exact = exactOf(values);
    const writes = [...values].map(([key, value]) => this.#intent(key, value, exact?.get(key)));
    this.#write(writes, { how: 'revert' });
  }

  // Policies

  setConflictPolicy(key, name, resolve = undefined) {
    checkedKey(key);
    if (!Object.hasOwn(policies, name)) throw new UbiquityError('policy', `${name} is not a conflict policy`);
    if (name === 'custom' && typeof resolve !== 'function') {
      throw new UbiquityError('policy', `${key}: a custom policy needs a function`);
    }
    this.#resolvers.set(key, resolve);
    this.shell.setPolicy(key, policies[name]);
    this.#tell(key);
  }

  /** What an app's rule makes of values; the later one stands in for its faults, which are reported. */
  #decide(key, values) {
    const resolve = this.#resolvers.get(key);
    const seen = ({ value, milliseconds }) => ({ value: readable(value), date: new Date(milliseconds) });
    return values.reduce((earlier, later) => {
      if (isSame(toWire(earlier.value), toWire(later.value))) return later;
      try { return { ...later, value: writable(resolve(seen(earlier), seen(later)), later.value, key) }; } catch (error) {
        // Not before the engine has the value: a listener may write.
        queueMicrotask(() => this.#problem(`${key}: the later value stands, because the app's rule for conflicts has `
          + `failed: ${error?.message ?? error}`));
        return later;
      }
    }).value;
  }

  // Watching

  /** Tells everybody of changes. */
  #changed(reason, keys) {
    if (!keys.length && reason !== 'accountChange') return;
    for (const key of keys) this.#tell(key);
    for (const [feed, note] of [...this.#changes]) {
      note(reason, keys);
      feed.poke();
    }
    if (reason !== 'localChange') this.dispatchEvent(Object.assign(new Event('change'), { reason, keys }));
  }

  /** Tells those who watch a key. What is kept of a key without a value goes. */
  #tell(key) {
    this.#read.drop(key);
    for (const watch of [...this.#watchers.get(key) ?? []]) this.#call(watch);
  }

  /**
   * Calls the app. Its error keeps no others from being called, and is thrown when what was written is on the disk:
   * it ends a program of Node.
   */
  #call(callback) {
    const thrown = async (error) => {
      // Other observers write too.
      await undefined;
      await Promise.allSettled([...this.device.openStores].map(({ shell }) => shell.closing ?? shell.synchronize()));
      throwLater(error);
    };
    try { callback()?.then?.(undefined, thrown); } catch (error) { thrown(error); }
  }

  subscribe(key, callback, { signal = undefined } = {}) {
    let last = this.get(key);
    const watch = () => {
      const value = this.get(key);
      if (Object.is(value, last)) return undefined;
      last = value;
      return callback(value);
    };
    const stop = () => {
      signal?.removeEventListener('abort', stop);
      const watchers = this.#watchers.get(key);
      if (watchers?.delete(watch) && !watchers.size) this.#watchers.delete(key);
    };
    if (signal?.aborted) return stop;
    signal?.addEventListener('abort', stop, { once: true });
    if (!this.#watchers.has(key)) this.#watchers.set(key, new Set());
    this.#watchers.get(key)?.add(watch);
    return stop;
  }

  /** @param {Map<Feed, any>} feeds @param {any} about What `feeds` has of it. */
  #open(feeds, about, take, signal) {
    const feed = new Feed(take, () => feeds.delete(feed), signal);
    feeds.set(feed, about);
    if (signal?.aborted) feed.return();
    else if (this.shell.isClosed) feed.end();
    return feed;
  }

  /** Of what a reader has not taken yet, there is one element for each reason. */
  changes({ signal = undefined } = {}) {
    const waiting = new Map();
    const take = () => {
      const [[reason, keys] = []] = waiting;
      waiting.delete(reason);
      return keys ? [{ reason, keys: [...keys] }] : null;
    };
    return this.#open(this.#changes, (reason, keys) => {
      waiting.set(reason, new Set([...waiting.get(reason) ?? [], ...keys]));
    }, take, signal);
  }

  valuesOf(key, { signal = undefined } = {}) {
    let [last, isFirst] = [undefined, true];
    checkedKey(key);
    return this.#open(this.#changes, () => {}, () => {
      const value = this.get(key);
      if (Object.is(value, last) && !isFirst) return null;
      [last, isFirst] = [value, false];
      return [value];
    }, signal);
  }

  statuses({ signal = undefined } = {}) {
    let last = '';
    return this.#open(this.#statuses, null, () => {
      const { status } = this;
      const text = JSON.stringify(status);
      if (text === last) return null;
      last = text;
      return [status];
    }, signal);
  }

  /** @param {string} type @param {any} listener @param {any} [options] */
  addEventListener(type, listener, options) {
    if (type === 'status') this.#hasListener = true;
    if (listener && !this.#listeners.has(listener)) {
      this.#listeners.set(listener, (event) => this.#call(() =>
        (typeof listener === 'function' ? listener.call(this, event) : listener.handleEvent(event))));
    }
    super.addEventListener(type, this.#listeners.get(listener) ?? null, options);
  }

  /** @param {string} type @param {any} listener @param {any} [options] */
  removeEventListener(type, listener, options) {
    super.removeEventListener(type, this.#listeners.get(listener) ?? null, options);
  }

  /** Looks soon whether the status is another one. */
  #look() {
    if (this.#looks || this.shell.isClosed || !(this.#hasListener || this.#statuses.size)) return;
    this.#looks = true;
    queueMicrotask(() => {
      this.#looks = false;
      if (this.shell.isClosed) return;
      const { seen } = this.shell;
      if (!seen) return;
      // Each knows what it has told; this one may have looked away.
      for (const feed of [...this.#statuses.keys()]) feed.poke();
      const text = JSON.stringify(shown(seen, this.device.folder));
      if (text === this.#status) return;
      this.#status = text;
      this.dispatchEvent(new Event('status'));
    });
  }

  initialSync() { return this.shell.initialSync(); }
  synchronize() { return this.shell.synchronize(); }
  synchronizeNow() { return this.shell.synchronizeNow(); }

  /** The disk has those that were refused just now, too. */
  async #refusedRows() {
    await this.shell.synchronize();
    return this.shell.storage.refused();
  }

  async refusedWrites() {
    const { refused } = this.shell.ask({ do: 'refused', rows: await this.#refusedRows() });
    return refused.map(({ key, value, milliseconds, code, reason }) =>
      ({ key, value: readable(value), date: new Date(milliseconds), code, reason }));
  }

  async forgetRefusedWrites() {
    const rows = await this.#refusedRows();
    const { rest } = this.shell.ask({ do: 'refused', rows });
    await this.shell.storage.forget(rows.filter((row) => !rest.some((one) => isEqual(one, row))));
  }

  // What the server knows

  async delivery(key = undefined) {
    const { saved, pendingKeys } = this.shell.status;
    const waits = pendingKeys.some((one) => key === undefined || one === key);
    return this.device.delivery(this.identifier, { key, saved }, waits);
  }

  async history(key, { limit = 100 } = {}) {
    // The server knows the others, whatever the disk says.
    const refused = await this.#refusedRows().catch(() => []);
    const { versions } = await this.shell.askServer({ key: checkedKey(key), max: limit, refused });
    const own = this.device.account?.deviceID;
    return versions.map(({ value, outcome, revision = null, came, milliseconds, device, reason = null }) => ({
      value: readable(value), exact: value === undefined ? null : toWire(value), outcome, reason, revision,
      date: new Date(came), written: new Date(milliseconds), device,
      isThisDevice: device === '' || device === own,
    }));
  }

  async valuesAt(date) {
    const { values, revision, forgottenKeys } = await this.shell.askServer({ milliseconds: date.getTime() });
    const exact = new Map(Object.entries(values));
    const read = new Map([...exact].map(([key, value]) => [key, readable(value)]));
    return { values: remember(read, exact), revision, forgottenKeys };
  }

  // The end

  followAccount() { return this.shell.followAccount(); }

  async close() {
    try { await this.shell.close(); } finally {
      for (const feed of [...this.#changes.keys(), ...this.#statuses.keys()]) feed.end();
      this.device.openStores.delete(this);
      if (this.ownsDevice) await this.device.close();
    }
  }
}
