// SPDX-License-Identifier: Apache-2.0

/** A store's rows in memory, of a process that has its disk alone: bytes that only the engine reads. */

import { base64, bytesOf } from './exact.js';

/** As many refused writes as the engine's other disks keep. */
export const refusedMax = 1_024;

export class Disk {
  /** @param {Map<string, string>} rows */
  constructor(rows = new Map()) { this.rows = new Map(rows); }

  get version() { return Number(this.rows.get('version') ?? 0); }

  /** All that is there, for a process that starts. */
  load() {
    const entries = [];
    for (const [name, text] of this.rows) {
      if (name.startsWith('e')) entries.push({ key: bytesOf(name.slice(1)), entry: bytesOf(text) });
    }
    const meta = this.rows.get('meta');
    return { version: this.version, entries, meta: meta && bytesOf(meta) };
  }

  /** The rows that a step `save` changes. @returns {Map<string, string | null>} */
  changes({ entries, meta, refused = [] }) {
    const rows = new Map([['version', String(this.version + 1)]]);
    for (const { key, entry } of entries) rows.set(`e${base64(key)}`, entry ? base64(entry) : null);
    if (meta) rows.set('meta', base64(meta));
    let last = Number(this.rows.get('refused') ?? 0);
    for (const write of refused) {
      last += 1;
      rows.set(`r${last}`, base64(write));
      if (last > refusedMax) rows.set(`r${last - refusedMax}`, null);
    }
    if (refused.length) rows.set('refused', String(last));
    return rows;
  }

  /** The newest refused writes, the newest first. @returns {Uint8Array[]} */
  refused() {
    const writes = [];
    for (let number = Number(this.rows.get('refused') ?? 0); this.rows.has(`r${number}`); number -= 1) {
      writes.push(bytesOf(this.rows.get(`r${number}`)));
    }
    return writes;
  }

  /**
   * The rows that change when these refused writes go: the others get numbers without gaps.
   * @param {Uint8Array[]} gone
   */
  forgetting(gone) {
    const names = new Set(gone.map(base64));
    const rest = this.refused().map(base64).filter((text) => !names.has(text)).reverse();
    const last = Number(this.rows.get('refused') ?? 0);
    /** @type {Map<string, string | null>} */
    const rows = new Map();
    for (let number = last; this.rows.has(`r${number}`); number -= 1) rows.set(`r${number}`, null);
    for (const [index, text] of rest.entries()) rows.set(`r${index + 1}`, text);
    return rows.set('refused', String(rest.length));
  }

  /** @param {Map<string, string | null>} rows */
  keep(rows) {
    for (const [name, text] of rows) {
      if (text === null) this.rows.delete(name);
      else this.rows.set(name, text);
    }
  }
}
