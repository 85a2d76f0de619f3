// SPDX-License-Identifier: Apache-2.0

/**
 * The first layer of the engine: its state, the app's writes, and the disk.
 *
 * @typedef {import('./values.js').Wire} Wire
 * @typedef {import('./records.js').Row} Row
 * @typedef {import('./clock.js').Reading} Reading
 * @typedef {import('./merging.js').Operation} Operation
 * @typedef {{plain: [string, Wire | null][], merging: [string, Operation][]}} Intent
 *     What an app wrote: values (null: a removal), and operations on keys with a policy.
 * @typedef {{record: Row, code: string, detail: string}} RefusedWrite
 * @typedef {'serverChange' | 'initialSyncChange' | 'quotaViolation' | 'accountChange'
 *     | 'localChange'} Reason
 * @typedef {{firstSync?: 'serverWins' | 'timestamps', unkept?: string[]}} Settings
 */

import { Entries, drop, dropIfBeaten } from './entries.js';
import { DeviceClock } from './clock.js';
import { PartNames, fits, partChanges, policies } from './merging.js';
import { Random, Receipts, TokenBucket, checkLimits, defaultLimits } from './rules.js';
import {
  digest, digestOf, entryID, noDevice, stampOf, timeOf,
} from './records.js';
import { isSame } from './values.js';

export const refusedMax = 1_024;
const saveRetryMilliseconds = 1_000;

/** What is kept besides the entries. */
const newMeta = () => ({
  /** The account that the cursor belongs to. @type {string | null} */
  account: null,
  cursor: null,
  hasCompletedFirstSync: false,
  correction: null,
  limits: { ...defaultLimits },
  allowance: { burst: 600, perSecond: 20 },
  lastSync: null,
  /** The last intent of each other tab that was written. @type {Record<string, number>} */
  applied: {},
  refusedCount: 0,
});

export class WritingEngine {
  /**
   * @param {Map<string, string>} rows What is on disk: `meta`, `e` and an entry, `r` and a number.
   * @param {{seed: string, settings?: Settings, now: Reading}} options
   */
  constructor(rows, { seed, settings = {}, now }) {
    this.settings = settings;
    this.meta = { ...newMeta(), ...JSON.parse(rows.get('meta') ?? '{}') };
    this.entries = new Entries();
    this.clock = new DeviceClock(this.meta.correction);
    this.random = new Random(seed);
    this.names = new PartNames(this.random.next());
    this.bucket = new TokenBucket(this.meta.allowance, now.uptime);
    this.receipts = new Receipts(this.meta.cursor);
    this.device = noDevice;
    /** The letter of the policy of each key that has one. @type {Map<string, string>} */
    this.policies = new Map();
    /** Writes that the server refused, or that lost unsent. @type {Map<string, RefusedWrite>} */
    this.refused = new Map();
    this.refusedUnsaved = new Set();
    this.isMetaUnsaved = false;
    this.save = null;
    /** Why the disk refused the last save. @type {string | null} */
    this.diskFailure = null;
    this.saveRetryAt = Infinity;
    /** What the app is to be told, by the reason. @type {Map<Reason, Set<string>>} */
    this.notices = new Map();
    for (const [name, text] of rows) {
      if (name.startsWith('e')) this.entries.load(name.slice(1), text);
      else if (name.startsWith('r')) this.refused.set(name, JSON.parse(text));
    }
    for (const { confirmed, pending } of this.entries.all.values()) {
      this.observe(confirmed, pending, now);
    }
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

  /** The value that the app sees. */
  value(key) { return this.entries.value(key); }

  /** Tells the app of what it sees differently since the last time. */
  tell(reason, besides = new Set()) {
    this.post(reason, this.entries.takeChanged().filter((key) => !besides.has(key)));
  }

  post(reason, keys) {
    const all = this.notices.get(reason) ?? new Set();
    for (const key of keys) all.add(key);
    if (all.size || reason === 'accountChange') this.notices.set(reason, all);
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

  /** What the app wants, with what it saw. @returns {Intent} */
  intent(values) {
    const intent = { plain: [], merging: [] };
    for (const [key, value] of values) {
      const policy = this.policies.get(key);
      if (policy) intent.merging.push([key, { policy, old: this.value(key), value }]);
      else intent.plain.push([key, value]);
    }
    return intent;
  }

  /**
   * Writes as one transaction: all or nothing, here and everywhere. An equal value is no change;
   * but if anything changes, all of it is written, or another transaction could win the rest.
   * @throws {import('./values.js').UbiquityError} Nothing has changed then.
   */
  write({ plain, merging }, now) {
    const changes = [];
    if (plain.some(([key, value]) => !isSame(value, this.value(key)))) {
      for (const [key, value] of plain) changes.push(...this.replacing(key, value));
    }
    for (const [key, operation] of merging) {
      const { policy, value } = operation;
      if (value && !fits(policy, value)) {
        changes.push(...this.replacing(key, value));
        continue;
      }
      const state = this.entries.state(key);
      const resolver = this.entries.resolvers.get(key);
      for (const [part, content] of partChanges(operation, key, state, resolver, this.names)) {
        changes.push({ key, part, value: content });
      }
    }
    this.transact(changes, now);
  }

  /** Gives keys the values that they had. Under a policy, only the difference is written. */
  revert(values, now) {
    const intent = { plain: [], merging: [] };
    for (const [key, value] of values) {
      const old = this.value(key);
      if (isSame(old, value)) continue;
      const policy = this.policies.get(key) ?? this.entries.state(key).policy;
      const isMerged = policy && !'xn'.includes(policy) && (!value || fits(policy, value));
      if (isMerged) intent.merging.push([key, { policy, old, value }]);
      else intent.plain.push([key, value]);
    }
    return intent;
  }

  /** A write without a policy replaces all that its author saw. @param {Wire | null} value */
  replacing(key, value) {
    const parts = this.entries.hasParts(key) ? this.entries.state(key).removal() : [];
    return [{ key, part: '', value },
      ...[...parts].map(([part, content]) => ({ key, part, value: content }))];
  }

  /** @param {{key: string, part: string, value: Wire | null}[]} changes */
  transact(changes, now) {
    const ids = changes.map(({ key, part }) => entryID(key, part));
    if (changes.every(({ value }, i) => isSame(value, this.entries.content(ids[i])))) return;
    const after = this.entries.usage.copy();
    changes.forEach(({ part, value }, i) =>
      after.replace(this.entries.content(ids[i]), value, part));
    checkLimits(changes, this.entries.usage, after, this.meta.limits);
    const { time, provisional } = this.clock.issue(now);
    const transaction = this.transaction(ids);
    const stamp = stampOf(time, this.device, digest(changes));
    changes.forEach((change, i) => {
      if (change.part && !change.value && this.entries.isNew(ids[i])) {
        this.entries.update(ids[i], drop);
        return;
      }
      const had = this.entries.had(ids[i]);
      const pending = { record: { ...change, stamp }, transaction, provisional, had };
      this.entries.update(ids[i], (entry) => Object.assign(entry,
        { pending, isAcknowledged: false }));
    });
  }

  /** The transaction of new writes: that of the waiting ones that they replace, joined to one. */
  transaction(ids) {
    const replaced = new Set(ids.filter((id) => this.entries.get(id)?.pending)
      .map((id) => (this.entries.get(id)).pending.transaction));
    if (!replaced.size) return this.random.next();
    const name = [...replaced].sort()[0];
    if (replaced.size === 1) return name;
    for (const id of [...this.entries.waiting]) {
      const pending = this.entries.get(id)?.pending;
      if (!pending || !replaced.has(pending.transaction)) continue;
      this.entries.update(id, (entry) => {
        entry.pending = { ...pending, transaction: name };
      });
    }
    return name;
  }

  // The disk

  get isSaved() {
    return !this.save && !this.entries.unsaved.size && !this.isMetaUnsaved
      && !this.refusedUnsaved.size;
  }

  /** What is to be saved now, all or nothing. @returns {Map<string, string | null> | null} */
  nextSave(now) {
    const waits = this.saveRetryAt !== Infinity && now.uptime < this.saveRetryAt;
    if (waits && !this.isSaved) return null;
    this.saveRetryAt = Infinity;
    if (this.isSaved || this.save) return null;
    const rows = new Map(this.entries.beginSave().map(([id, text]) => [`e${id}`, text]));
    for (const name of this.refusedUnsaved) {
      const write = this.refused.get(name);
      rows.set(name, write ? JSON.stringify(write) : null);
    }
    const receipt = this.isMetaUnsaved ? this.receipts.beginSave(this.meta.cursor) : null;
    if (receipt) rows.set('meta', JSON.stringify(this.meta));
    this.save = { receipt, refused: this.refusedUnsaved };
    this.refusedUnsaved = new Set();
    this.isMetaUnsaved = false;
    return rows;
  }

  saved(now) {
    if (!this.save) return;
    this.entries.finishSave();
    if (this.save.receipt) this.receipts.finishSave(this.save.receipt, now.uptime);
    this.save = null;
    this.diskFailure = null;
  }

  saveFailed(reason, now) {
    if (!this.save) return;
    this.entries.undoSave();
    if (this.save.receipt) {
      this.receipts.hasNews ||= this.save.receipt.hasNews;
      this.isMetaUnsaved = true;
    }
    for (const name of this.save.refused) this.refusedUnsaved.add(name);
    this.save = null;
    this.diskFailure = reason;
    this.saveRetryAt = now.uptime + saveRetryMilliseconds;
  }

  /** Keeps a refused write where the app can get at it: the newest of them. */
  refuse(record, code = '', detail = '') {
    this.meta.refusedCount += 1;
    this.isMetaUnsaved = true;
    const name = `r${String(this.meta.refusedCount).padStart(12, '0')}`;
    this.refused.set(name, { record, code, detail });
    this.refusedUnsaved.add(name);
    const isLost = code === 'superseded';
    const alike = [...this.refused].filter(([, one]) => (one.code === 'superseded') === isLost)
      .map(([one]) => one).sort();
    for (const old of alike.slice(0, -refusedMax)) this.forget(old);
  }

  forget(name) {
    this.refused.delete(name);
    this.refusedUnsaved.add(name);
  }

  // As a follower: another tab leads, and its rows are the truth.

  /** Takes over what the leader saved. @param {Iterable<[string, string | null]>} rows */
  follow(rows, now) {
    for (const [name, text] of rows) {
      if (name === 'meta' && text !== null) this.meta = { ...newMeta(), ...JSON.parse(text) };
      else if (name.startsWith('r') && text !== null) this.refused.set(name, JSON.parse(text));
      else if (name.startsWith('r')) this.refused.delete(name);
      else if (name.startsWith('e')) {
        this.entries.load(name.slice(1), text);
        const entry = this.entries.get(name.slice(1));
        this.observe(entry?.confirmed ?? null, entry?.pending ?? null, now);
      }
    }
    this.entries.finishSave();
    this.entries.unsaved.clear();
  }

  /** Replaces the stamps of waiting writes. @param {Map<string, string>} times */
  restamp(ids, times) {
    for (const id of [...ids]) {
      const pending = this.entries.get(id)?.pending;
      const time = pending ? times.get(pending.record.stamp) : undefined;
      if (!pending || time === undefined) continue;
      const stamp = stampOf(time, this.device, digestOf(pending.record.stamp));
      this.entries.update(id, (entry) => {
        entry.pending = { ...pending, provisional: null, record: { ...pending.record, stamp } };
        dropIfBeaten(entry);
      });
    }
  }
}
