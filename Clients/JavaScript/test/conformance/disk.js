// SPDX-License-Identifier: Apache-2.0

/** A device's disk in memory, which its processes share: bytes that only the engine reads. */
export class Disk {
  /** Counts the saves. */
  version = 0;
  /** By key. An empty entry stays, for the processes that have known the key. */
  rows = new Map();
  meta = undefined;

  /** What was saved after a version. */
  changes(after = -1) {
    const rows = [...this.rows.values()].filter((row) => row.version > after);
    return { version: this.version, entries: rows.map(({ key, entry }) => ({ key, entry })), meta: this.meta };
  }

  /** Writes all of it, if the disk has the version that the step expects. @returns {boolean} Whether it has. */
  save({ expects, entries, meta }) {
    if (expects !== this.version) return false;
    this.version += 1;
    for (const { key, entry } of entries) this.rows.set(`${key}`, { key, entry, version: this.version });
    this.meta = meta ?? this.meta;
    return true;
  }
}
