// SPDX-License-Identifier: Apache-2.0

/**
 * All entries of a store: keys and their parts, with what waits for the server and what is not on
 * disk yet.
 *
 * @typedef {import('./values.js').Wire} Wire
 * @typedef {import('./records.js').Row} Row
 * @typedef {{record: Row, transaction: string,
 *     provisional: import('./clock.js').Provisional | null, had: string | null}} Pending
 *     A write that waits for the server. Never changed in place. Writes of one transaction apply
 *     all or not at all; `had` is the stamp of what it replaced, if the server may have had that.
 * @typedef {{key: string, part: string, confirmed: Row | null, pending: Pending | null,
 *     isAcknowledged: boolean}} Entry
 *     What device and server last agreed on, and the write that hides it. An acknowledged write
 *     is at the server, and the stream has not brought it yet.
 */

import {
  isBehind, isCount, isOlder, isSameRow, keyAndPart, next, stampOf, timeOf,
  withoutDigest, zero,
} from './records.js';
import { isSame } from './values.js';
import { MergeState } from './merging.js';
import { Usage, entryBytes } from './rules.js';

/** The record that the app sees. */
const visible = (entry) => entry?.pending?.record ?? entry?.confirmed ?? null;

/** Merges a record of the server. `isNews`: the stream brought it, as the server's present. */
export function merge(entry, record, isNews = false) {
  if (!isNews && entry.confirmed && isOlder(record, entry.confirmed)) return;
  entry.confirmed = record;
  dropIfBeaten(entry);
}

/** Drops the waiting write if the confirmed record is it, or wins over it. */
export function dropIfBeaten(entry) {
  const { pending, confirmed } = entry;
  if (!pending || !confirmed) return;
  const mine = pending.record;
  // A provisional stamp decides nothing yet.
  if (pending.provisional && isBehind(mine, confirmed) === null) return;
  // The server has folded the run, and knows alone whether this count is in the sum.
  const following = stampOf(next(timeOf(mine.stamp)), zero);
  if (isCount(mine) && !confirmed.value && mine.value && confirmed.stamp !== following) return;
  const withoutMine = { ...mine, stamp: withoutDigest(mine.stamp) };
  if (isOlder(mine, confirmed) || isSameRow(mine, confirmed)
    || isSameRow(withoutMine, confirmed)) drop(entry);
}

export function drop(entry) {
  entry.pending = null;
  entry.isAcknowledged = false;
}

/** What a write that replaces this one `had`: only one with a final stamp can have been sent. */
function passedOn(pending) {
  if (!pending || pending.had) return pending?.had ?? null;
  return pending.provisional || !pending.record.value ? null : withoutDigest(pending.record.stamp);
}

export class Entries {
  constructor() {
    this.all = new Map();
    /** The keys with a write that has to be sent. @type {Set<string>} */
    this.waiting = new Set();
    this.usage = new Usage();
    /** That of the confirmed records. */
    this.agreed = new Usage();
    this.tombstones = 0;
    /** What is not on disk, with the waiting write that is there. @type {Map<string, Pending>} */
    this.unsaved = new Map();
    /** What is being saved. @type {Map<string, Pending | null>} */
    this.saving = new Map();
    /** The parts of each key that has some. @type {Map<string, Set<string>>} */
    this.parts = new Map();
    /** What the app sees. @type {Map<string, Wire>} */
    this.views = new Map();
    /** The keys to look at again, and what the app saw. @type {Map<string, Wire | null>} */
    this.touched = new Map();
    this.stale = new Set();
    this.resolvers = new Map();
  }

  get(id) { return this.all.get(id); }

  /** The value of one entry alone. */
  content(id) { return visible(this.all.get(id))?.value ?? null; }

  hasParts(key) { return this.parts.has(key); }

  /** The value that the app sees. @returns {Wire | null} */
  value(key) {
    if (this.stale.delete(key)) {
      const value = this.hasParts(key) ? this.state(key).value(this.resolvers.get(key))
        : this.content(key);
      if (value) this.views.set(key, value);
      else this.views.delete(key);
    }
    return this.views.get(key) ?? null;
  }

  /** The entries of a key: its own, and its parts'. @returns {Entry[]} */
  of(key) {
    return [key, ...this.parts.get(key) ?? []].map((id) => this.all.get(id)).filter(Boolean);
  }

  /** What a key counts towards the bytes of the store. */
  bytes(key) {
    return this.of(key).reduce((sum, entry) =>
      sum + entryBytes(visible(entry)?.value ?? null, entry.part), 0);
  }

  /** The stamp of a key's last write; null if it was never written. @returns {string | null} */
  lastStamp(key) {
    return this.of(key).map((entry) => visible(entry)?.stamp).filter(Boolean).sort().at(-1) ?? null;
  }

  /** All values that the app sees. */
  values() {
    for (const key of [...this.stale]) this.value(key);
    return this.views;
  }

  /** @returns {MergeState} */
  state(key) {
    const own = visible(this.all.get(key));
    const parts = [...this.parts.get(key) ?? []].map((id) => visible(this.all.get(id)));
    return new MergeState(
      own?.value ? { value: own.value, stamp: own.stamp } : null,
      (parts.filter((record) => record?.value)));
  }

  /** Changes an entry, and all that is derived from it. */
  update(id, change, saves = true) {
    const [key, part] = keyAndPart(id);
    const old = this.all.get(id)
      ?? { key, part, confirmed: null, pending: null, isAcknowledged: false };
    const entry = { ...old };
    change(entry);
    if (entry.confirmed && old.confirmed && isSameRow(entry.confirmed, old.confirmed)) {
      entry.confirmed = old.confirmed;
    }
    const isEmpty = !entry.confirmed && !entry.pending;
    if (isEmpty) this.all.delete(id);
    else this.all.set(id, entry);
    if (entry.pending && !entry.isAcknowledged) this.waiting.add(id);
    else this.waiting.delete(id);
    const isChanged = entry.confirmed !== old.confirmed || entry.pending !== old.pending;
    if (saves && isChanged && !this.unsaved.has(id)) this.unsaved.set(id, old.pending);
    if (part !== '') this.notePart(key, id, isEmpty);
    if (entry.confirmed !== old.confirmed) {
      const [before, after] = [old.confirmed, entry.confirmed];
      this.agreed.replace(before?.value ?? null, after?.value ?? null, part);
      this.tombstones += (after && !after.value ? 1 : 0) - (before && !before.value ? 1 : 0);
    }
    const [before, after] = [visible(old)?.value ?? null, visible(entry)?.value ?? null];
    if (before !== after) this.usage.replace(before, after, part);
    if (visible(old) !== visible(entry)) this.touch(key);
  }

  notePart(key, id, isEmpty = false) {
    const ids = this.parts.get(key) ?? new Set();
    if (isEmpty) ids.delete(id);
    else ids.add(id);
    if (ids.size) this.parts.set(key, ids);
    else this.parts.delete(key);
  }

  touch(key) {
    // What it was is still known, unless it is stale: then it is in `touched` already.
    if (!this.touched.has(key)) this.touched.set(key, this.views.get(key) ?? null);
    this.stale.add(key);
  }

  /** The keys of which the app sees another value than at the last call. */
  takeChanged() {
    const changed = [...this.touched].filter(([key, before]) =>
      !isSame(this.value(key), before)).map(([key]) => key);
    this.touched.clear();
    return changed;
  }

  /** The `had` of a write that replaces an entry. */
  had(id) {
    const entry = this.all.get(id);
    if (entry?.confirmed?.value) return withoutDigest(entry.confirmed.stamp);
    return this.unsaved.has(id) ? entry?.pending?.had ?? null : passedOn(entry?.pending ?? null);
  }

  /** Whether nobody else can know of it. Others may have written the same entry of a dictionary. */
  isNew(id) {
    const entry = this.all.get(id);
    const isShared = keyAndPart(id)[1].startsWith('d');
    if (isShared || entry?.confirmed || this.saving.has(id)) return false;
    return this.unsaved.has(id) ? !this.unsaved.get(id) : !entry?.pending;
  }

  // The disk

  isSaved(id) { return !this.unsaved.has(id) && !this.saving.has(id); }

  /** Takes over what is on disk: both are agreed to be saved. */
  load(id, text) {
    const stored = text === null ? null : JSON.parse(text);
    this.update(id, (entry) => {
      entry.confirmed = stored?.confirmed ?? null;
      entry.pending = stored?.pending ?? null;
      entry.isAcknowledged = false;
    }, false);
  }

  /** What is on disk after a save; null if nothing is. @returns {string | null} */
  text(id) {
    const entry = this.all.get(id);
    return entry ? JSON.stringify({ confirmed: entry.confirmed, pending: entry.pending }) : null;
  }

  /** Begins to save all that is unsaved. @returns {[string, string | null][]} */
  beginSave() {
    [this.saving, this.unsaved] = [this.unsaved, new Map()];
    return [...this.saving.keys()].map((id) => [id, this.text(id)]);
  }

  finishSave() { this.saving = new Map(); }

  undoSave() {
    // If it changed meanwhile, the older base stays: it is what the disk has.
    for (const [id, base] of this.saving) this.unsaved.set(id, base);
    this.saving = new Map();
  }
}
