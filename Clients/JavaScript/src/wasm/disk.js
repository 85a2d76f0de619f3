// SPDX-License-Identifier: Apache-2.0

/** A store's rows in a folder of documents: bytes that only the engine reads. */

import { base64 } from '../values.js';

/** As many refused writes as the engine's other disks keep. */
const refusedMax = 1_024;
const bytesOf = (text) => Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));

export class Disk {
  /**
   * @param {{write(document: string, rows: Map<string, string | null>): Promise<void>}} folder
   * @param {string} document @param {Map<string, string>} rows
   */
  constructor(folder, document, rows) {
    this.folder = folder;
    this.document = document;
    this.rows = new Map(rows);
  }

  /** The rows of an identifier. No identifier begins with this character. */
  static document(folder, identifier) { return `${folder}/~${identifier}`; }

  static async open(folder, document) { return new Disk(folder, document, await folder.read(document)); }

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
  changes({ entries, meta, refused }) {
    const rows = new Map([['version', String(this.version + 1)]]);
    for (const { key, entry } of entries) rows.set(`e${base64(key)}`, entry ? base64(entry) : null);
    if (meta) rows.set('meta', base64(meta));
    if (refused) {
      const all = [...JSON.parse(this.rows.get('refused') ?? '[]'), ...refused.map(base64)];
      rows.set('refused', JSON.stringify(all.slice(-refusedMax)));
    }
    return rows;
  }

  /** The newest refused writes, the newest first. */
  refused() { return JSON.parse(this.rows.get('refused') ?? '[]').map(bytesOf).reverse(); }

  /** @param {Uint8Array[]} rows Of them. */
  async forget(rows) {
    const gone = new Set(rows.map(base64));
    const rest = JSON.parse(this.rows.get('refused') ?? '[]').filter((row) => !gone.has(row));
    const change = new Map([['refused', JSON.stringify(rest)]]);
    await this.folder.write(this.document, change);
    this.keep(change);
  }

  /** Writes it all or nothing. @returns {Promise<number>} The version that the disk has then. */
  async save(step) {
    const rows = this.changes(step);
    await this.folder.write(this.document, rows);
    this.keep(rows);
    return this.version;
  }

  /** @param {Map<string, string | null>} rows */
  keep(rows) {
    for (const [name, text] of rows) {
      if (text === null) this.rows.delete(name);
      else this.rows.set(name, text);
    }
  }
}
