// SPDX-License-Identifier: Apache-2.0

/** Node: a folder of journals, one for each store, of one process at a time. */

import { createHash } from 'node:crypto';
import { constants, open, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { UbiquityError } from './values.js';
import { Disk } from './disk.js';
import { checkPlace, isSame, makeFolder, makeFolders, namesIn, orElse, replace, statOf, syncFolder, textOf,
  withPlace } from './durable.js';
import { lockHome } from './lock.js';

/** Of all files. */
const format = 2;
/** A journal is written anew when it has more bytes than this and than twice its rows. */
const journalMax = 2 ** 18;

const newer = (found) => `its format is ${found}, and this version knows format ${format}: a newer version wrote it`;

/**
 * The rows of one store: a line for the format, and one for the rows of each save, which counts when its end is
 * there. While this process has the lock, what it has is what counts: a file that another program has changed,
 * replaced or removed is written anew.
 */
class Journal {
  rows = new Disk();
  /** Whether it was read. From then on, `rows` is what the file must have. */
  isLoaded = false;
  /** @type {any} The file, open for more at its end; null if it is to be written anew. */
  handle = null;
  /** @type {any} The `stat` of the file after the last write. */
  left = null;
  /** Whether this process has written the file. */
  isOwn = false;
  isRemoved = false;
  /** What is being written. */
  turn = Promise.resolve();
  /** The length of the file that is good. */
  bytes = 0;
  /** The rows as they would be in a journal of one save. */
  rowBytes = 0;

  /** @param {string} document The name of the file. @param {import('./lock.js').Lock} lock */
  constructor(document, lock) {
    this.document = document;
    this.lock = lock;
  }

  load() {
    return this.inTurn(async () => {
      await this.lock.check();
      if (!this.isLoaded) await withPlace(`${this.document} cannot be read`, () => this.read());
      // What was read is of the home that is locked.
      await this.lock.check();
      this.isLoaded = true;
      return this.rows.load();
    });
  }

  async read() {
    await this.release();
    this.handle = await open(this.document, constants.O_RDWR | constants.O_APPEND).catch(orElse(null));
    if (!this.handle) return;
    try {
      const text = await this.handle.readFile('utf8');
      this.bytes = new TextEncoder().encode(text.slice(0, this.parse(text))).length;
      if (!this.bytes) return await this.release();
      await this.cut();
      await syncFolder(dirname(this.document));
    } catch (error) {
      await this.release();
      throw error;
    }
  }

  /** @returns {number} How much of the text is good. */
  parse(text) {
    this.rows = new Disk();
    const lines = text.split('\n');
    // What has no end was not saved.
    const torn = lines.pop();
    if (!lines.length) return 0;
    const head = JSON.parse(lines[0]);
    if (head.format > format) throw new Error(newer(head.format));
    if (head.format !== format) return 0;
    for (const [index, line] of lines.entries()) {
      if (index === 0) continue;
      let rows;
      try { rows = new Map(JSON.parse(line)); } catch (error) {
        // The system ended while it was written.
        if (index === lines.length - 1) return text.length - torn.length - line.length - 1;
        throw error;
      }
      this.rows.keep(rows);
    }
    return text.length - torn.length;
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
    await this.lock.check();
    await withPlace(this.document, async () => {
      if (!await this.isAsLeft()) await this.release();
      const isShort = this.handle && this.isOwn && this.bytes < Math.max(journalMax, 2 * this.rowBytes);
      await (isShort ? this.append(rows) : this.fold(rows));
    });
    // Without the lock, another process may have opened the home meanwhile.
    await this.lock.check();
    this.rows.keep(rows);
  }

  /** Whether no other program has touched the file since the last write. */
  async isAsLeft() {
    const there = this.handle && await statOf(this.document).catch(() => null);
    return there !== null && isSame(there, this.left) && there.size === this.left.size
      && there.mtimeNs === this.left.mtimeNs;
  }

  async append(rows) {
    const line = new TextEncoder().encode(`${JSON.stringify([...rows])}\n`);
    try { await this.handle.appendFile(line); } catch (error) {
      // A disk that is full may have room for less, and has none for all rows.
      await this.cut().catch(() => this.release());
      throw error;
    }
    try {
      await this.handle.datasync();
      this.left = await checkPlace(this.handle, this.document, this.bytes + line.length);
    } catch (error) {
      // What is on the disk now is not known: the next save writes it anew.
      await this.release();
      throw error;
    }
    this.bytes += line.length;
  }

  /** Cuts off what is not good, and flushes the rest. */
  async cut() {
    await this.handle.truncate(this.bytes);
    await this.handle.sync();
    this.left = await this.handle.stat({ bigint: true });
  }

  /** Writes all rows as one. */
  async fold(rows) {
    const all = new Disk(this.rows.rows);
    all.keep(rows);
    const text = `${JSON.stringify({ format })}\n${JSON.stringify([...all.rows])}\n`;
    const folder = dirname(this.document);
    let file;
    try {
      // Not the home itself: a new one would not be locked.
      await makeFolder(dirname(folder));
      await makeFolder(folder);
      file = await replace(this.document, text, this.lock);
    } catch (error) {
      // A line may have room where a second copy has none.
      if (!await this.isAsLeft()) throw error;
      return this.append(rows);
    }
    await this.release();
    const bytes = Number(file.left.size);
    Object.assign(this, file, { isOwn: true, bytes, rowBytes: bytes });
  }

  close() { return this.inTurn(() => this.release()); }

  async release() {
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

  /** @param {string} home @param {import('./lock.js').Lock} lock */
  constructor(home, lock) {
    this.home = home;
    this.lock = lock;
    this.account = join(home, 'account.json');
    this.stores = join(home, 'stores');
  }

  static async open(home) {
    if (typeof home !== 'string' || home === '') {
      throw new UbiquityError('storage', '`home` names the folder in which values are kept');
    }
    // The program may go to another folder.
    const path = resolve(home);
    await withPlace(`${path} cannot be made`, () => makeFolders(path));
    return new FileFolder(path, await lockHome(path));
  }

  /** A store of an account. Names that differ in case only are two files on any disk. */
  disk(folder, identifier) {
    const hash = createHash('sha256').update(identifier).digest('hex').slice(0, 8);
    const file = join(this.stores, folder, `${identifier.slice(0, 200)}~${hash}.journal`);
    if (!this.journals.has(file)) this.journals.set(file, new Journal(file, this.lock));
    return this.journals.get(file);
  }

  // The device's sign-in

  async readAccount() {
    const text = await textOf(this.account);
    await this.lock.check();
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
      const text = JSON.stringify({ format, device });
      const { handle } = await withPlace(this.account, () => replace(this.account, text, this.lock));
      await handle.close();
      return device;
    });
    this.changing = changed.catch(() => {});
    return changed;
  }

  /** Removes the values that no account has. @param {(state: any) => Set<string>} owned */
  async removeUnowned(owned) {
    const folders = owned(await this.readAccount());
    const names = await namesIn(this.stores);
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
    await withPlace(folder, () => rm(folder, { recursive: true, force: true }));
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
    await this.lock.release();
  }

  async erase() {
    try {
      await this.lock.check();
      for (const name of await namesIn(this.stores)) await this.remove(name);
      await rm(this.account, { force: true });
    } catch (error) {
      throw new UbiquityError('storage', `${this.home} cannot be erased: ${error.message}`);
    } finally { await this.close(); }
  }
}
