// SPDX-License-Identifier: Apache-2.0

/** The first layer of the engine: its state, the app's writes, and the disk. */

import { DeviceClock } from './clock.js';
import { Entries, drop, dropIfBeaten, stateOf } from './entries.js';
import { PartNames, fits, isReached, partChanges, policies } from './merging.js';
import { digest, digestOf, entryID, noDevice, stampOf, timeOf } from './records.js';
import { defaultAllowance, defaultLimits } from './limits.js';
import { Random, Receipts, TokenBucket, checkLimits } from './rules.js';
import { isSame } from './values.js';

const refusedMax = 1_024;
const saveRetryMilliseconds = 1_000;

/** The stored state besides the entries. `applied`: the last intent of each other tab that was written. */
const newMeta = () => ({
  account: null, cursor: null, hasCompletedFirstSync: false, correction: null, limits: { ...defaultLimits },
  allowance: { ...defaultAllowance }, lastSync: null, applied: {}, refusedCount: 0,
});

export class WritingEngine {
  entries = new Entries();
  device = noDevice;
  /** The letter of the policy of each key that has one. */
  policies = new Map();
  /** Writes that the server refused, each with a code and a detail, by the names of their rows. */
  refused = new Map();
  refusedUnsaved = new Set();
  isMetaUnsaved = false;
  /** The names of the refused writes in the save under way. */
  save = null;
  /** Why the disk refused the last save. */
  diskFailure = null;
  saveRetryAt = Infinity;
  /** The keys of which the app is to be told, by the reason. */
  notices = new Map();

  /**
   * @param {Map<string, string>} rows What is on disk: `meta`, `e` and an entry, `r` and a number.
   * @param {{seed: string, settings?: Settings, now: Reading}} options
   */
  constructor(rows, { seed, settings = {}, now }) {
    this.settings = settings;
    this.meta = { ...newMeta(), ...JSON.parse(rows.get('meta') ?? '{}') };
    this.clock = new DeviceClock(this.meta.correction);
    this.random = new Random(seed);
    this.names = new PartNames(this.random.next());
    this.bucket = new TokenBucket(this.meta.allowance, now.uptime);
    this.receipts = new Receipts(this.meta.cursor);
    for (const [name, text] of rows) {
      if (name.startsWith('e')) this.entries.load(name.slice(1), text);
      else if (name.startsWith('r')) this.refused.set(name, JSON.parse(text));
      // What was kept before, and nothing shows.
      if (this.refused.get(name)?.code === 'superseded') this.forget(name);
    }
    for (const { confirmed, pending } of this.entries.all.values()) this.observe(confirmed, pending, now);
    this.entries.takeChanged();
  }

  /** Later writes get later stamps. */
  observe(confirmed, pending, now) {
    if (confirmed) this.clock.observe(timeOf(confirmed.stamp));
    if (!pending) return;
    // Who overwrites a write has seen all that its author had seen.
    if (pending.provisional) this.clock.observe(pending.provisional.seen);
    this.clock.observe(this.clock.time(pending, now), pending.provisional === null);
  }

  value(key) { return this.entries.value(key); }

  /** Tells the app of what it sees differently since the last time. */
  tell(reason, besides = new Set()) {
    this.post(reason, this.entries.takeChanged().filter((key) => !besides.has(key)));
  }
  post(reason, keys) {
    const all = new Set([...this.notices.get(reason) ?? [], ...keys]);
    if (all.size) this.notices.set(reason, all);
  }

  // Writing

  /** @param {string | null} policy A letter. */
  setPolicy(key, policy, resolver = null) {
    if (policy) this.policies.set(key, policy);
    else this.policies.delete(key);
    if (resolver && policy === policies.custom) this.entries.resolvers.set(key, resolver);
    else this.entries.resolvers.delete(key);
    this.entries.stale.add(key);
  }

  /** The wish of the app, with the values that it saw. @returns {Intent} */
  intent(values, policyOf = (key, _value) => this.policies.get(key)) {
    const intent = { plain: [], merging: [] };
    for (const [key, value] of values) {
      const policy = policyOf(key, value);
      if (policy) intent.merging.push([key, { policy, old: this.value(key), value }]);
      else intent.plain.push([key, value]);
    }
    return intent;
  }

  /** Gives keys the values that they had. Under a policy, only the difference is written. */
  revert(values) {
    return this.intent(values.filter(([key, value]) => !isSame(this.value(key), value)), (key, value) => {
      const policy = this.policies.get(key) ?? this.entries.state(key).policy;
      const isMerged = policy && !isReached(policy) && (!value || fits(policy, value));
      return isMerged && !(policy === policies.counter && this.misses(key, value)) ? policy : null;
    });
  }

  /** Whether a counter cannot be brought to an integer by a difference, whose sums have 64 bits. */
  misses(key, value) {
    if (value?.integer === undefined) return false;
    const operation = { policy: policies.counter, old: this.value(key), value };
    const state = this.entries.state(key);
    const changes = partChanges(operation, key, state, undefined, this.names.copy());
    const rows = new Map(this.entries.of(key).map((row) => [row.part, row]));
    for (const change of changesOf(key, changes)) rows.set(change.part, { ...change, stamp: 'g' });
    return !isSame(stateOf([...rows.values()]).value(), value);
  }

  /**
   * Writes as one transaction: all or nothing, here and everywhere. An equal value is no change; but if
   * anything changes, all of it is written, or another transaction could win the rest.
   * @param {Intent} intent @throws {import('./values.js').UbiquityError} Nothing has changed then.
   */
  write({ plain, merging }, now) {
    const changes = plain.some(([key, value]) => !isSame(value, this.value(key)))
      ? plain.flatMap(([key, value]) => this.replacing(key, value)) : [];
    for (const [key, operation] of merging) {
      const { policy, value } = operation;
      const [state, resolver] = [this.entries.state(key), this.entries.resolvers.get(key)];
      if (value && !fits(policy, value)) changes.push(...this.replacing(key, value));
      else changes.push(...changesOf(key, partChanges(operation, key, state, resolver, this.names)));
    }
    this.transact(changes, now);
  }

  /** A write without a policy replaces all that its author saw. */
  replacing(key, value) { return changesOf(key, [['', value], ...this.entries.state(key).removal()]); }

  /** @param {{key: string, part: string, value: Wire | null}[]} changes */
  transact(changes, now) {
    const all = changes.map((change) => {
      const id = entryID(change.key, change.part);
      return { id, change, old: this.entries.content(id) };
    });
    if (all.every(({ change, old }) => isSame(change.value, old))) return;
    const after = this.entries.usage.copy();
    for (const { change, old } of all) after.replace(old, change.value, change.part);
    checkLimits(changes, this.entries.usage, after, this.meta.limits);
    const { time, provisional } = this.clock.issue(now);
    const transaction = this.transaction(all.map(({ id }) => id));
    const stamp = stampOf(time, this.device, digest(changes));
    for (const { id, change } of all) {
      const pending = { record: { ...change, stamp }, transaction, provisional, had: this.entries.had(id) };
      const isDropped = !change.value && this.entries.isNew(id);
      this.entries.update(id, (entry) => (isDropped ? drop(entry) : Object.assign(entry, { pending })));
    }
  }

  /** The transaction of new writes: that of the waiting ones that they replace, joined to one. */
  transaction(ids) {
    const replaced = new Set(ids.map((id) => this.entries.pending(id)?.transaction).filter(Boolean));
    const transaction = [...replaced].sort()[0] ?? this.random.next();
    replaced.delete(transaction);
    const join = (old) => (replaced.has(old.transaction) ? { ...old, transaction } : old);
    if (replaced.size) this.changeWaiting(join);
    return transaction;
  }

  /** Replaces the stamps of waiting writes. @param {Map<string, string>} times */
  restamp(times) {
    this.changeWaiting((pending) => {
      const time = times.get(pending.record.stamp);
      if (time === undefined) return pending;
      const stamp = stampOf(time, this.device, digestOf(pending.record.stamp));
      return { ...pending, provisional: null, record: { ...pending.record, stamp } };
    });
  }

  changeWaiting(change) {
    for (const id of [...this.entries.waiting]) {
      const old = this.entries.pending(id);
      const pending = change(old);
      if (pending === old) continue;
      this.entries.update(id, (entry) => dropIfBeaten(Object.assign(entry, { pending })));
    }
  }

  // The disk

  get isSaved() {
    return !this.save && !this.entries.unsaved.size && !this.isMetaUnsaved && !this.refusedUnsaved.size;
  }

  /** The rows to save now, all or none; null removes. @returns {Map<string, string | null> | null} */
  nextSave(now) {
    // What failed to save is on disk now, or need not be saved any more.
    if (this.isSaved) [this.saveRetryAt, this.diskFailure] = [Infinity, null];
    const waits = this.saveRetryAt !== Infinity && now.uptime < this.saveRetryAt;
    if (this.save || this.isSaved || waits) return null;
    this.saveRetryAt = Infinity;
    const rows = new Map(this.entries.beginSave().map(([id, text]) => [`e${id}`, text]));
    for (const name of this.refusedUnsaved) {
      rows.set(name, this.refused.has(name) ? JSON.stringify(this.refused.get(name)) : null);
    }
    if (this.isMetaUnsaved) {
      this.receipts.beginSave(this.meta.cursor);
      rows.set('meta', JSON.stringify(this.meta));
    }
    [this.save, this.refusedUnsaved, this.isMetaUnsaved] = [this.refusedUnsaved, new Set(), false];
    return rows;
  }

  saved(_event, now) {
    if (!this.save) return;
    this.entries.finishSave();
    this.receipts.finishSave(now.uptime);
    [this.save, this.diskFailure] = [null, null];
  }

  saveFailed({ reason }, now) {
    if (!this.save) return;
    this.entries.undoSave();
    this.isMetaUnsaved ||= this.receipts.saving !== null;
    this.receipts.undoSave();
    this.refusedUnsaved = new Set([...this.save, ...this.refusedUnsaved]);
    [this.save, this.diskFailure] = [null, reason];
    this.saveRetryAt = now.uptime + saveRetryMilliseconds;
  }

  /** Keeps a refused write where the app can get at it: the newest of them. */
  refuse(record, code, detail) {
    this.meta.refusedCount += 1;
    this.isMetaUnsaved = true;
    const name = `r${String(this.meta.refusedCount).padStart(12, '0')}`;
    this.refused.set(name, { record, code, detail });
    this.refusedUnsaved.add(name);
    for (const old of [...this.refused.keys()].sort().slice(0, -refusedMax)) this.forget(old);
  }

  forget(name) {
    this.refused.delete(name);
    this.refusedUnsaved.add(name);
  }
}

const changesOf = (key, parts) => [...parts].map(([part, value]) => ({ key, part, value }));
