// SPDX-License-Identifier: Apache-2.0

/** A store: what an app reads, writes and watches. index.d.ts says what its members are for. */

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

  get(key) { return valueOf(this.exact(key)); }
  has(key) { return this.exact(key) !== null; }
  exact(key) { return this.engine.value(checkedKey(key)); }
  keys() { return [...this.engine.entries.values().keys()].sort(compareText); }
  bytes(key) { return this.engine.entries.bytes(checkedKey(key)); }

  lastWrite(key) {
    const stamp = this.engine.entries.lastStamp(checkedKey(key));
    if (!stamp) return null;
    const deviceID = deviceOf(stamp);
    return { deviceID: deviceID === noDevice ? null : deviceID, date: new Date(milliseconds(stamp)) };
  }

  values() { return new Map(this.keys().map((key) => [key, this.get(key)])); }
  set(key, value) { this.write(this.engine.intent([[checkedKey(key), wireOf(key, value)]])); }
  remove(key) { this.set(key, null); }

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

  increment(key, by = 1) {
    const old = this.exact(key);
    const amount = sumOf(toWire(by));
    if (amount === null) throw new UbiquityError('unsupported-value', `${key}: ${by} is not a number`);
    const value = wireSum(add(sumOf(old) ?? 0n, amount));
    this.write({ plain: [], merging: [[key, { policy: policies.counter, old, value }]] });
  }

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

  changes() {
    return this.queue('change', ({ reason, keys }, more) =>
      ({ reason, keys: [...new Set([...keys, ...more.keys])] }));
  }

  async* valuesOf(key) {
    const changes = this.changes();
    try {
      yield this.get(key);
      for await (const { keys } of changes) if (keys.includes(key)) yield this.get(key);
    } finally { changes.end(); }
  }

  async* statuses() {
    const statuses = this.queue('status', (_old, newest) => newest);
    try {
      yield this.status;
      yield* statuses;
    } finally { statuses.end(); }
  }

  async initialSync() {
    await this.until(() => this.isClosed || this.status.isInitialSyncComplete);
    if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
  }

  refusedWrites() {
    return this.refused().map(([, { record, code, detail }]) => ({ key: record.key, code, reason: detail,
      value: valueOf(record.value), date: new Date(milliseconds(record.stamp)) }));
  }

  async delivery(key = undefined) {
    // The server takes the last word, so only the leader says what is saved.
    const saved = (this.isLeader ? this.engine.receipts.saved : null) ?? undefined;
    const waits = this.status.pendingKeys.some((one) => key === undefined || one === key);
    return this.device.delivery(this.identifier, { key, saved }, waits);
  }

  // History

  async history(key, { limit = 100 } = {}) {
    const versions = await readHistory((query) => this.ask(['history'], { query }), checkedKey(key), limit);
    const resolver = this.engine.entries.resolvers.get(key);
    return valuesOf(key, versions, limit, resolver).map(({ wire, ...version }) => ({
      ...version, value: valueOf(wire), isThisDevice: version.device === this.device.account?.deviceID,
    }));
  }

  async valuesAt(date) {
    const answer = await this.ask(['snapshot'], { query: { milliseconds: date.getTime() } });
    const entries = new Entries();
    entries.resolvers = this.engine.entries.resolvers;
    for (const confirmed of checkedList(answer, 'records').map(checkedRow)) {
      entries.update(idOf(confirmed), (entry) => Object.assign(entry, { confirmed }));
    }
    return { values: new Map([...entries.values()].map(([key, wire]) => [key, fromWire(wire)])),
      revision: checkedNumber(answer.revision),
      forgottenKeys: checkedList(answer, 'forgottenKeys').map(String) };
  }

  revert(values) {
    this.write(this.engine.revert([...values].map(([key, value]) => [checkedKey(key), wireOf(key, value)])));
  }
}
