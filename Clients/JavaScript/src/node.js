// SPDX-License-Identifier: Apache-2.0

/** Node: a folder of files, each written as a whole, for one process at a time. */

import { link, mkdir, open, readFile, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { openDeviceIn, openStoreIn } from './device.js';
import { applyRows } from './entries.js';
import { digest } from './records.js';
import { UbiquityError } from './values.js';

export { version } from './http.js';
export { ExactDate, Real, UbiquityError, real } from './values.js';

export const openDevice = async ({ home }) => openDeviceIn(await FileFolder.open(home));
/** Opens a store, with a device of its own. @param {{home: string, identifier: string}} options */
export const openStore = async ({ home, ...options }) => openStoreIn(await FileFolder.open(home), options);

/** Of a document's file. `read` is the place for a migration of older ones. */
const fileFormat = 1;

class FileFolder {
  constructor(home) {
    this.home = home;
    this.documents = new Map();
  }

  static async open(home) {
    if (typeof home !== 'string' || home === '') {
      throw new UbiquityError('storage', '`home` names the folder in which values are kept');
    }
    await mkdir(join(home, 'stores'), { recursive: true, mode: 0o700 });
    const folder = new FileFolder(home);
    await folder.lock();
    return folder;
  }

  /** Names that differ in case only are two files on any disk. */
  file(document) {
    if (!document.includes('/')) return join(this.home, `${document}.json`);
    const [folder, identifier] = document.split('/');
    const hash = digest([{ key: identifier, part: '', value: null }]).slice(0, 8);
    return join(this.home, 'stores', folder, `${identifier.slice(0, 200)}~${hash}.json`);
  }

  async read(document) {
    const file = this.file(document);
    const text = await readFile(file, 'utf8').catch((error) => {
      if (error.code === 'ENOENT') return JSON.stringify({ format: fileFormat, rows: [] });
      throw new UbiquityError('storage', `${file}: ${error.message}`);
    });
    try {
      const { format, rows } = JSON.parse(text);
      if (format !== fileFormat) {
        throw new Error(`its format is ${format}, and this version knows format ${fileFormat}: a newer version `
          + 'wrote it, or one from before the first release');
      }
      this.documents.set(document, new Map(rows));
      return new Map(rows);
    } catch (error) {
      throw new UbiquityError('storage', `${file} cannot be read: ${error.message}`);
    }
  }

  async write(document, changes) {
    const rows = new Map(this.documents.get(document) ?? await this.read(document));
    applyRows(rows, changes);
    const file = this.file(document);
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    const temporary = `${file}.new`;
    const handle = await open(temporary, 'w', 0o600);
    try {
      await handle.writeFile(JSON.stringify({ format: fileFormat, rows: [...rows] }));
      await handle.sync();
    } finally { await handle.close(); }
    await rename(temporary, file);
    await syncFolder(dirname(file));
    this.documents.set(document, rows);
  }

  async readAccount() { return JSON.parse((await this.read('account')).get('device') ?? 'null'); }

  async changeAccount(change) {
    const state = change(await this.readAccount());
    await this.write('account', new Map([['device', JSON.stringify(state)]]));
    return state;
  }

  async removeUnowned(owned) {
    const folders = owned(await this.readAccount());
    for (const name of await readdir(join(this.home, 'stores'))) {
      if (!folders.has(name)) await this.removeAll(`${name}/`);
    }
  }

  async removeAll(prefix) {
    await rm(join(this.home, 'stores', prefix), { recursive: true, force: true });
    for (const name of this.documents.keys()) {
      if (name.startsWith(prefix)) this.documents.delete(name);
    }
  }

  // There are no other processes.
  post() {}
  onMessage() { return () => {}; }
  lead(_name, lead) {
    lead();
    return () => {};
  }

  async close() { await rm(this.lockFile, { force: true }); }

  async erase() {
    await this.removeAll('');
    await rm(this.file('account'), { force: true });
    await this.close();
  }

  get lockFile() { return join(this.home, 'lock'); }

  /** Keeps other processes out. The lock of a process that has ended does not count. */
  async lock() {
    const mine = `${process.pid} ${await startOf(process.pid)} ${crypto.randomUUID()}`;
    const own = join(this.home, `lock.${crypto.randomUUID()}`);
    const handle = await open(own, 'wx', 0o600);
    try {
      await handle.writeFile(mine);
      await handle.close();
      for (let attempt = 0; attempt < 10; attempt += 1) {
        try {
          await link(own, this.lockFile);
          return;
        } catch (error) { if (error.code !== 'EEXIST') throw error; }
        const theirs = await readFile(this.lockFile, 'utf8').catch(() => null);
        if (theirs === null) continue;
        const [pid, start] = theirs.split(' ');
        if (await startOf(Number(pid)) === start) {
          throw new UbiquityError('open',
            `${this.home} is open in process ${pid}: a home belongs to one process at a time`);
        }
        // Whoever moves it away first takes it over, unless it was another one by then.
        const old = `${own}.old`;
        await rename(this.lockFile, old).catch(() => {});
        const moved = await readFile(old, 'utf8').catch(() => theirs);
        if (moved !== theirs) await link(old, this.lockFile).catch(() => {});
        await rm(old, { force: true });
      }
      throw new UbiquityError('open', `${this.lockFile} cannot be taken over`);
    } finally { await rm(own, { force: true }); }
  }
}

/** When a process started, as far as the system tells; null if there is none. */
async function startOf(pid) {
  try { process.kill(pid, 0); } catch (error) { if (error.code !== 'EPERM') return null; }
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '-';
}

/** A rename is on disk when its folder is; not every system can tell a folder so. */
async function syncFolder(folder) {
  const handle = await open(folder, 'r').catch(() => null);
  await handle?.sync().catch(() => {});
  await handle?.close();
}
