// SPDX-License-Identifier: Apache-2.0

/** Node: a folder of journals, one for each store, of one process at a time. */

import { createHash } from 'node:crypto';
import { mkdir, open, readFile, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UbiquityError } from './values.js';
import { Disk } from './disk.js';
import { lockHome } from './lock.js';

/** Of all files. */
const format = 2;
/** A journal is written anew when it has more bytes than this and than twice its rows. */
const journalMax = 2 ** 18;

const newer = (found) => `its format is ${found}, and this version knows format ${format}: a newer version wrote it`;

/** What a file says, which may not be there. */
async function textOf(file) {
  try { return await readFile(file, 'utf8'); } catch (error) {
    if (error.code === 'ENOENT') return '';
    throw new UbiquityError('storage', `${file}: ${error.message}`);
  }
}

/** Replaces a file: it is there as a whole, or as it was. */
async function replace(file, text) {
  try { await replaceFile(file, text); } catch (error) {
    throw new UbiquityError('storage', `${file}: ${error.message}`);
  }
}

async function replaceFile(file, text) {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(`${file}.new`, 'w', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally { await handle.close(); }
  await rename(`${file}.new`, file);
  await syncFolder(dirname(file));
}

/** A rename is on disk when its folder is; not every system can tell a folder so. */
async function syncFolder(folder) {
  const handle = await open(folder, 'r').catch(() => null);
  await handle?.sync().catch(() => {});
  await handle?.close();
}

/**
 * The rows of one store: a line for the format, and one for the rows of each save, which counts when its end is
 * there.
 */
class Journal {
  rows = new Disk();
  /** @type {any} The file, once this process has written it. */
  handle = null;
  isRemoved = false;
  /** What is being written. */
  turn = Promise.resolve();
  bytes = 0;
  /** The rows as they would be in a journal of one save. */
  rowBytes = 0;

  /** @param {string} document The name of the file. */
  constructor(document) { this.document = document; }

  async load() {
    const text = await textOf(this.document);
    try { this.parse(text); } catch (error) {
      throw new UbiquityError('storage', `${this.document} cannot be read: ${error.message}`);
    }
    return this.rows.load();
  }

  parse(text) {
    this.rows = new Disk();
    const lines = text.split('\n');
    // What has no end was not saved.
    lines.pop();
    if (!lines.length) return;
    const head = JSON.parse(lines[0]);
    if (head.format > format) throw new Error(newer(head.format));
    if (head.format !== format) return;
    for (const [index, line] of lines.entries()) {
      if (index === 0) continue;
      let rows;
      try { rows = new Map(JSON.parse(line)); } catch (error) {
        // The system ended while it was written.
        if (index === lines.length - 1) return;
        throw error;
      }
      this.rows.keep(rows);
    }
  }

  /** Nobody else saves. */
  async changedAfter() { return undefined; }

  async refused() { return this.rows.refused(); }

  save(step) {
    return this.inTurn(async () => {
      if (step.expects !== this.rows.version) return { content: this.rows.load() };
      await this.write(this.rows.changes(step));
      return { version: this.rows.version };
    });
  }

  /** Removes refused writes. @param {Uint8Array[]} gone */
  forget(gone) { return this.inTurn(() => this.write(this.rows.forgetting(gone))); }

  inTurn(act) {
    const turn = this.turn.then(act);
    this.turn = turn.catch(() => {});
    return turn;
  }

  async write(rows) {
    if (this.isRemoved) throw new UbiquityError('storage', 'the account of these values was removed');
    try {
      if (this.handle && this.bytes < Math.max(journalMax, 2 * this.rowBytes)) await this.append(rows);
      else await this.fold(rows);
    } catch (error) {
      throw error instanceof UbiquityError ? error : new UbiquityError('storage', `${this.document}: ${error.message}`);
    }
    this.rows.keep(rows);
  }

  async append(rows) {
    const line = new TextEncoder().encode(`${JSON.stringify([...rows])}\n`);
    try {
      await this.handle.appendFile(line);
      await this.handle.datasync();
    } catch (error) {
      // What is in the file now is not known: the next save writes it anew.
      await this.close();
      throw error;
    }
    this.bytes += line.length;
  }

  /** Writes all rows as one. */
  async fold(rows) {
    const all = new Disk(this.rows.rows);
    all.keep(rows);
    const text = `${JSON.stringify({ format })}\n${JSON.stringify([...all.rows])}\n`;
    await this.close();
    const bytes = new TextEncoder().encode(text);
    await replace(this.document, bytes);
    this.handle = await open(this.document, 'a', 0o600);
    this.bytes = bytes.length;
    this.rowBytes = this.bytes;
  }

  async close() {
    const { handle } = this;
    this.handle = null;
    await handle?.close().catch(() => {});
  }
}

export class FileFolder {
  /** Those of stores that were opened, by their files. @type {Map<string, Journal>} */
  journals = new Map();
  /** One change after the other. */
  changing = Promise.resolve();

  /** @param {string} home @param {() => Promise<void>} unlock */
  constructor(home, unlock) {
    this.home = home;
    this.unlock = unlock;
    this.account = join(home, 'account.json');
    this.stores = join(home, 'stores');
  }

  static async open(home) {
    if (typeof home !== 'string' || home === '') {
      throw new UbiquityError('storage', '`home` names the folder in which values are kept');
    }
    return new FileFolder(home, await lockHome(home));
  }

  /** A store of an account. Names that differ in case only are two files on any disk. */
  disk(folder, identifier) {
    const hash = createHash('sha256').update(identifier).digest('hex').slice(0, 8);
    const file = join(this.stores, folder, `${identifier.slice(0, 200)}~${hash}.journal`);
    if (!this.journals.has(file)) this.journals.set(file, new Journal(file));
    return this.journals.get(file);
  }

  // The device's sign-in

  async readAccount() {
    const text = await textOf(this.account);
    if (text === '') return null;
    try {
      const file = JSON.parse(text);
      if (file.format > format) throw new Error(newer(file.format));
      return file.format === format ? file.device : null;
    } catch (error) {
      throw new UbiquityError('storage', `${this.account} cannot be read: ${error.message}`);
    }
  }

  changeAccount(change) {
    const changed = this.changing.then(async () => {
      if (this.isClosed) throw new UbiquityError('closed', 'the home is closed');
      const device = change(await this.readAccount());
      await replace(this.account, JSON.stringify({ format, device }));
      return device;
    });
    this.changing = changed.catch(() => {});
    return changed;
  }

  /** Removes the values that no account has. @param {(state: any) => Set<string>} owned */
  async removeUnowned(owned) {
    const folders = owned(await this.readAccount());
    const names = await readdir(this.stores).catch(() => []);
    for (const name of names.filter((one) => !folders.has(one))) await this.remove(name);
  }

  async remove(name) {
    const folder = join(this.stores, name);
    for (const [file, journal] of this.journals) {
      if (dirname(file) !== folder) continue;
      journal.isRemoved = true;
      this.journals.delete(file);
      await journal.close();
    }
    await rm(folder, { recursive: true, force: true });
  }

  // There are no other processes.
  post() {}
  onMessage() { return () => {}; }
  onWake() { return () => {}; }
  onFreeze() { return () => {}; }
  lead(_name, tell) {
    tell(true);
    return { release() {}, seize() {}, yields: async () => false };
  }

  async close() {
    this.isClosed = true;
    await this.changing;
    for (const journal of this.journals.values()) await journal.close();
    this.journals.clear();
    await this.unlock();
  }

  async erase() {
    try {
      for (const name of await readdir(this.stores).catch(() => [])) await this.remove(name);
      await rm(this.account, { force: true });
    } catch (error) {
      throw new UbiquityError('storage', `${this.home} cannot be erased: ${error.message}`);
    } finally { await this.close(); }
  }
}
