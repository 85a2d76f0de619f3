// SPDX-License-Identifier: Apache-2.0

/**
 * The disks of devices. That of a device with one process is a home of Node's, with real files; that of a device with
 * several is one in memory, as a browser's tabs have it.
 */

import { failing } from './failing-files.js';
import { copyFile, mkdtemp, rename, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileFolder } from '../../src/files.js';

const place = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** A home of files. */
export class Files {
  async open() {
    this.home ??= join(await mkdtemp(join(place, 'ubiquity-')), 'home');
    this.folder = await FileFolder.open(this.home);
    return this.folder;
  }

  /** The process ends. */
  async close() {
    await this.folder?.close();
    this.folder = null;
  }

  disk(folder, identifier) { return this.folder.disk(folder, identifier); }

  /** Carries out a save that meets something. */
  async fail(how, disk, step) {
    const save = () => disk.save(step);
    switch (how) {
      case 'closed':
        await disk.handle?.close();
        return save();
      case 'gone': {
        const away = `${this.home}.away`;
        await rename(this.home, away);
        try { return await save(); } finally { await this.comeBack(away); }
      }
      case 'replaced':
        if (existsSync(disk.document)) {
          await copyFile(disk.document, `${disk.document}.copy`);
          await rename(`${disk.document}.copy`, disk.document);
        }
        return save();
      default: return failing(how, save);
    }
  }

  /** Copies a file. @returns {Promise<() => Promise<void>>} What puts the copy in its place. */
  async copy({ document }) {
    const copy = `${document}.copy`;
    if (!existsSync(document)) return async () => {};
    await copyFile(document, copy);
    return () => rename(copy, document);
  }

  /** The home is back, unless there is another one by now. */
  async comeBack(away) {
    if (existsSync(this.home)) await rm(away, { recursive: true });
    else await rename(away, this.home);
  }

  /** The process ends in the middle of a save. */
  async tear(disk, step) { await failing('full', () => disk.save(step)).catch(() => {}); }

  async remove() {
    await this.close();
    if (this.home) await rm(join(this.home, '..'), { recursive: true });
  }
}

/** Rows in memory, which only the engine reads. */
export class Rows {
  document = 'rows';
  /** Counts the saves. */
  version = 0;
  /** By key. An empty entry stays, for the processes that have known the key. */
  rows = new Map();
  meta = undefined;

  async load() { return this.changes(); }

  async changedAfter(version) { return this.version > version ? this.changes(version) : undefined; }

  /** What was saved after a version. */
  changes(after = -1) {
    const rows = [...this.rows.values()].filter((row) => row.version > after);
    return { version: this.version, entries: rows.map(({ key, entry }) => ({ key, entry })), meta: this.meta };
  }

  /** Writes all of it, if the disk has the version that the step expects. */
  async save({ expects, entries, meta }) {
    if (expects !== this.version) return { content: this.changes(expects) };
    this.version += 1;
    for (const { key, entry } of entries) this.rows.set(`${key}`, { key, entry, version: this.version });
    this.meta = meta ?? this.meta;
    return { version: this.version };
  }

  close() {}
}

/** A disk that processes share. */
export class Memory {
  rows = new Rows();

  async open() {}
  async close() {}
  async remove() {}
  async tear() {}

  disk() { return this.rows; }

  /** Nobody replaces a browser's database. */
  async copy() { return async () => {}; }

  async fail(how, disk, step) {
    if (how === 'late') {
      const { content } = await disk.save(step);
      if (content) return { content };
    }
    // What a browser says of a full quota.
    throw new Error(how === 'silent' ? '' : `the disk fails: ${how}`);
  }
}
