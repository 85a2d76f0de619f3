// SPDX-License-Identifier: Apache-2.0

/**
 * All entries of a store: keys and their parts, with what waits for the server and what is not on disk yet.
 */

import {
  isBehind, isCount, isOlder, isSameRow, keyAndPart, next, stampOf, timeOf, withoutDigest, zero,
} from './records.js';
import { MergeState } from './merging.js';
import { Usage, entryBytes } from './rules.js';
import { isSame } from './values.js';

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
  if (isOlder(mine, confirmed) || isSameRow(mine, confirmed)
    || isSameRow({ ...mine, stamp: withoutDigest(mine.stamp) }, confirmed)) drop(entry);
}

export const drop = (entry) => Object.assign(entry, { pending: null });

export class Entries {
  /** @type {Map<string, Entry>} */
  all = new Map();
  /** The IDs of entries with a write that is to be sent. @type {Set<string>} */
  waiting = new Set();
  /** @type {Map<string, Acknowledged>} */
  acknowledged = new Map();
  usage = new Usage();
  /** The usage of the confirmed records. */
  agreed = new Usage();
  tombstones = 0;
  /** The unsaved entries, and those that are being saved; true for one that was never on disk. */
  unsaved = new Map();
  saving = new Map();
  /** The parts of each key that has some. @type {Map<string, Set<string>>} */
  parts = new Map();
  /** The values that the app sees. @type {Map<string, Wire>} */
  views = new Map();
  /** The keys to look at again, and what the app saw. @type {Map<string, Wire | null>} */
  touched = new Map();
  stale = new Set();
  resolvers = new Map();

  get(id) { return this.all.get(id); }
  /** The waiting write of an entry; null if there is none. @returns {Pending | null} */
  pending(id) { return this.all.get(id)?.pending ?? null; }
  content(id) { return visible(this.all.get(id))?.value ?? null; }
  /** Whether the waiting write is at the server, and the stream has not brought it yet. */
  isAcknowledged(id) {
    const [pending, known] = [this.pending(id), this.acknowledged.get(id)];
    return pending !== null && known !== undefined && isSameRow(pending.record, known.write);
  }

  /** Notes an answer; null removes it. @param {Acknowledged | null} answer */
  acknowledge(id, answer) {
    if (answer) this.acknowledged.set(id, answer);
    else this.acknowledged.delete(id);
    this.noteWaiting(id);
  }

  hasParts(key) { return this.parts.has(key); }

  /** The value that the app sees. @returns {Wire | null} */
  value(key) {
    if (this.stale.delete(key)) {
      const value = this.hasParts(key) ? this.state(key).value(this.resolvers.get(key)) : this.content(key);
      if (value) this.views.set(key, value);
      else this.views.delete(key);
    }
    return this.views.get(key) ?? null;
  }

  values() {
    for (const key of this.stale) this.value(key);
    return this.views;
  }

  /** The records of a key that the app sees: its own, and its parts'. @returns {Row[]} */
  of(key) {
    return [key, ...this.parts.get(key) ?? []].map((id) => visible(this.all.get(id))).filter(Boolean);
  }

  bytes(key) { return this.of(key).reduce((sum, { value, part }) => sum + entryBytes(value, part), 0); }
  lastStamp(key) { return this.of(key).map(({ stamp }) => stamp).sort().at(-1) ?? null; }
  state(key) { return stateOf(this.of(key)); }

  /** Changes an entry, and all that is derived from it. */
  update(id, change, saves = true) {
    const [key, part] = keyAndPart(id);
    const old = this.all.get(id) ?? { key, part, confirmed: null, pending: null };
    const entry = { ...old };
    change(entry);
    if (entry.confirmed && old.confirmed && isSameRow(entry.confirmed, old.confirmed)) {
      entry.confirmed = old.confirmed;
    }
    const isEmpty = !entry.confirmed && !entry.pending;
    if (isEmpty) this.all.delete(id);
    else this.all.set(id, entry);
    this.noteWaiting(id);
    const isChanged = entry.confirmed !== old.confirmed || entry.pending !== old.pending;
    if (saves && isChanged && !this.unsaved.has(id)) {
      this.unsaved.set(id, !this.saving.has(id) && !old.confirmed && !old.pending);
    }
    if (isEmpty && this.unsaved.get(id)) this.unsaved.delete(id);
    if (part !== '') this.notePart(key, id, isEmpty);
    if (entry.confirmed !== old.confirmed) {
      this.agreed.replace(old.confirmed?.value ?? null, entry.confirmed?.value ?? null, part);
      const isTombstone = ({ confirmed }) => (confirmed && !confirmed.value ? 1 : 0);
      this.tombstones += isTombstone(entry) - isTombstone(old);
    }
    const [before, after] = [visible(old), visible(entry)];
    if (before === after) return;
    this.usage.replace(before?.value ?? null, after?.value ?? null, part);
    // What it was is still known, unless it is stale: then it is in `touched` already.
    if (!this.touched.has(key)) this.touched.set(key, this.views.get(key) ?? null);
    this.stale.add(key);
  }

  noteWaiting(id) {
    if (this.pending(id) && !this.isAcknowledged(id)) this.waiting.add(id);
    else this.waiting.delete(id);
  }

  notePart(key, id, isEmpty) {
    const ids = this.parts.get(key) ?? new Set();
    if (isEmpty) ids.delete(id);
    else ids.add(id);
    if (ids.size) this.parts.set(key, ids);
    else this.parts.delete(key);
  }

  /** The keys whose visible value has changed since the last call. */
  takeChanged() {
    const changed = [...this.touched].filter(([key, before]) => !isSame(this.value(key), before));
    this.touched.clear();
    return changed.map(([key]) => key);
  }

  /** The `had` of a write that replaces an entry: only one with a final stamp can have been sent. */
  had(id) {
    const { confirmed = null, pending = null } = this.all.get(id) ?? {};
    if (confirmed?.value) return withoutDigest(confirmed.stamp);
    if (!pending || pending.had || this.unsaved.has(id)) return pending?.had ?? null;
    return pending.provisional || !pending.record.value ? null : withoutDigest(pending.record.stamp);
  }

  /** Whether nobody else can know of a write. Others may have written the same entry of a dictionary. */
  isNew(id) {
    const { confirmed, part } = this.all.get(id) ?? {};
    return this.unsaved.get(id) === true && !confirmed && part && part[0] !== 'd';
  }

  // The disk

  isSaved(id) { return !this.unsaved.has(id) && !this.saving.has(id); }

  /** Takes over what is on disk. @param {string} text */
  load(id, text) {
    const { confirmed = null, pending = null } = JSON.parse(text);
    this.update(id, (entry) => Object.assign(entry, { confirmed, pending }), false);
  }

  /** Begins to save all that is unsaved; null removes. @returns {[string, string | null][]} */
  beginSave() {
    [this.saving, this.unsaved] = [this.unsaved, new Map()];
    return [...this.saving.keys()].map((id) => {
      const { confirmed, pending } = this.all.get(id) ?? {};
      return [id, this.all.has(id) ? JSON.stringify({ confirmed, pending }) : null];
    });
  }
  finishSave() { this.saving = new Map(); }
  undoSave() { [this.unsaved, this.saving] = [new Map([...this.unsaved, ...this.saving]), new Map()]; }
}

/** Changes the rows of a disk; null removes. @param {Map<string, string | null>} changes */
export function applyRows(rows, changes) {
  for (const [name, text] of changes) {
    if (text === null) rows.delete(name);
    else rows.set(name, text);
  }
}

/** The merge state of the records of one key. @param {Row[]} rows */
export function stateOf(rows) {
  const present = /** @type {any[]} */ (rows.filter(({ value }) => value));
  return new MergeState(present.find(({ part }) => !part) ?? null, present.filter(({ part }) => part));
}
