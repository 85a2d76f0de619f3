// SPDX-License-Identifier: Apache-2.0

/** A store: what an app reads, writes and watches. */

import { Entries } from './entries.js';
import { readHistory, valuesOf } from './history.js';
import { add, policies, sumOf, wireSum } from './merging.js';
import { checkedNumber, checkedRow, deviceOf, idOf, milliseconds, noDevice } from './records.js';
import { Shell } from './shell.js';
import { UbiquityError, checkedList, compareText, fromWire, isText, toWire } from './values.js';

function checkedKey(key) {
  if (isText(key) && key !== '') return key;
  throw new UbiquityError('key', 'a key is a string that is not empty');
}

// Null and undefined, or no value, are a removal.
const wireOf = (key, value) => (value === null || value === undefined ? null : toWire(value, key));
const valueOf = (wire) => (wire ? fromWire(wire) : undefined);

/** An app's rule, for whose faults the later value stands in. */
const resolverOf = (resolve) => (earlier, later) => {
  const seen = ({ value, stamp }) => ({ value: fromWire(value), date: new Date(milliseconds(stamp)) });
  try { return toWire(resolve(seen(earlier), seen(later))); } catch { return later.value; }
};

export class Store extends Shell {
  /** @param {{firstSync?: 'serverWins' | 'timestamps', historyExcluded?: Iterable<string>}} options */
  constructor(device, identifier, options) {
    const { firstSync = 'serverWins', historyExcluded = [] } = options;
    super(device, identifier, { firstSync, unkept: [...historyExcluded] });
  }

  // Reading and writing

  /** The value of a key; undefined if there is none. */
  get(key) { return valueOf(this.exact(key)); }
  has(key) { return this.exact(key) !== null; }
  /** The value of a key in the protocol's form, which tells all types apart; null for none. */
  exact(key) { return this.engine.value(checkedKey(key)); }
  /** In the order of their Unicode scalars. */
  keys() { return [...this.engine.entries.values().keys()].sort(compareText); }
  /** What a key counts towards the bytes of the store. */
  bytes(key) { return this.engine.entries.bytes(checkedKey(key)); }

  /** The device that wrote a key last, and when; null if this device knows of no write. */
  lastWrite(key) {
    const stamp = this.engine.entries.lastStamp(checkedKey(key));
    if (!stamp) return null;
    const deviceID = deviceOf(stamp);
    return { deviceID: deviceID === noDevice ? null : deviceID, date: new Date(milliseconds(stamp)) };
  }

  /** All values. @returns {Map<string, any>} */
  values() { return new Map(this.keys().map((key) => [key, this.get(key)])); }
  /** Null or undefined removes. @throws {UbiquityError} Nothing has changed then. */
  set(key, value) { this.write(this.engine.intent([[checkedKey(key), wireOf(key, value)]])); }
  remove(key) { this.set(key, null); }

  /** Writes several keys as one transaction: all or nothing, on all devices. */
  batch(body) {
    const values = new Map();
    const get = (key) => (values.has(key) ? valueOf(values.get(key)) : this.get(key));
    const set = (key, value) => { values.set(checkedKey(key), wireOf(key, value)); };
    const outcome = body({ get, set, remove: (key) => set(key, null) });
    if (typeof outcome?.then === 'function') {
      throw new UbiquityError('batch', 'a batch cannot wait: nobody else may see half of it');
    }
    this.write(this.engine.intent(values));
    return outcome;
  }

  removeAll() { this.batch(({ remove }) => { for (const key of this.keys()) remove(key); }); }

  /** Adds to a number, also if others do at the same time. */
  increment(key, by = 1) {
    const old = this.exact(key);
    const amount = sumOf(toWire(by));
    if (amount === null) throw new UbiquityError('unsupported-value', `${key}: ${by} is not a number`);
    const value = wireSum(add(sumOf(old) ?? 0n, amount));
    this.write({ plain: [], merging: [[key, { policy: policies.counter, old, value }]] });
  }

  /** Declares how writes of a key merge, each time the app starts. */
  setConflictPolicy(key, name, resolve = undefined) {
    checkedKey(key);
    if (name !== 'latest' && !Object.hasOwn(policies, name)) {
      throw new UbiquityError('policy', `${name} is not a conflict policy`);
    }
    const [letter, resolver] = [policies[name] ?? null, resolve ? resolverOf(resolve) : null];
    this.declared.set(key, [letter, resolver]);
    this.engine.setPolicy(key, letter, resolver);
  }

  // Watching

  /** All changes from now on, by this app too. */
  changes() {
    return this.queue('change', ({ reason, keys }, more) =>
      ({ reason, keys: [...new Set([...keys, ...more.keys])] }));
  }

  /** The value of a key, and each new one; a slow reader gets the newest. */
  async* valuesOf(key) {
    const changes = this.changes();
    try {
      yield this.get(key);
      for await (const { keys } of changes) if (keys.includes(key)) yield this.get(key);
    } finally { changes.end(); }
  }

  /** The status, and each new one; a slow reader gets the newest. */
  async* statuses() {
    const statuses = this.queue('status', (_old, newest) => newest);
    try {
      yield this.status;
      yield* statuses;
    } finally { statuses.end(); }
  }

  /** Resolves when the first download has completed: then a key without a value has none. */
  async initialSync() {
    await this.until(() => this.isClosed || this.status.isInitialSyncComplete);
    if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
  }

  /** Writes that the server refused, the newest last. */
  refusedWrites() {
    return this.refused().map(([, { record, code, detail }]) => ({ key: record.key, value: valueOf(record.value),
      date: new Date(milliseconds(record.stamp)), code, reason: detail }));
  }

  /** Which devices have the store's changes, or those of one key. */
  async delivery(key = undefined) {
    // The server takes the last word, so only the leader says what is saved.
    const saved = (this.isLeader ? this.engine.receipts.saved : null) ?? undefined;
    const waits = this.status.pendingKeys.some((one) => key === undefined || one === key);
    return this.device.delivery(this.identifier, { key, saved }, waits);
  }

  // History

  /** What a key was, the newest first. */
  async history(key, { limit = 100 } = {}) {
    const versions = await readHistory((query) => this.ask(['history'], { query }), checkedKey(key), limit);
    const resolver = this.engine.entries.resolvers.get(key);
    return valuesOf(key, versions, limit, resolver).map(({ wire, ...version }) => ({
      ...version, value: valueOf(wire), isThisDevice: version.device === this.device.account?.deviceID,
    }));
  }

  /** The store as it was, with the keys of which that is no longer known. @param {Date} date */
  async valuesAt(date) {
    const answer = await this.ask(['snapshot'], { query: { milliseconds: date.getTime() } });
    const entries = new Entries();
    entries.resolvers = this.engine.entries.resolvers;
    for (const confirmed of checkedList(answer, 'records').map(checkedRow)) {
      entries.update(idOf(confirmed), (entry) => Object.assign(entry, { confirmed }));
    }
    return { values: new Map([...entries.values()].map(([key, wire]) => [key, fromWire(wire)])),
      revision: checkedNumber(answer.revision), forgottenKeys: checkedList(answer, 'forgottenKeys').map(String) };
  }

  /** Gives keys the values that they had, as a transaction that can be taken back too. */
  revert(values) {
    this.write(this.engine.revert([...values].map(([key, value]) => [checkedKey(key), wireOf(key, value)])));
  }
}
