// SPDX-License-Identifier: Apache-2.0

/** The file of a store that is in use, the one that is to be next, and what is not saved. */

import { UbiquityError, reasonOf } from './values.js';
import { closed } from './waiting.js';

/** As many transactions are written again if the engine traps while the disk fails. */
const unsavedMax = 4_096;

/** What there is instead of a file that cannot be opened: nothing is saved to it. */
const unopened = (error) => {
  const fails = async () => { throw error; };
  return { document: '', changedAfter: fails, save: fails, refused: fails, forget: fails, close() {} };
};

export class Storage {
  /** @type {any} */
  disk = unopened(closed());
  /** @type {any} What was opened last, if it is not in use yet. */
  opened = null;
  /** The number of the file in use. */
  file = 0;
  /** What the disk does at the moment. */
  work = Promise.resolve();
  /** What was written and is in no save on the disk; of it, so many are being saved. @type {Redo[]} */
  unsaved = [];
  saving = 0;
  /** The name of the database, which is another one after the browser has cleared it. */
  database = undefined;
  /** What waits for the server and was on the disk, if that is gone. @type {Redo | null} */
  rescued = null;

  /** @param {import('./shell.js').Shell} shell */
  constructor(shell) { this.shell = shell; }

  /**
   * Begins with the file of the account of now.
   * @returns {Promise<{content: any, logs: Redo[]}>} All that is there, and what tabs wrote that are gone.
   */
  async begin() {
    const { shell } = this;
    try {
      await shell.device.read();
      this.close();
      const disk = shell.folder.disk(shell.device.state.folder, shell.identifier);
      const content = await disk.load();
      [this.disk, this.opened, this.file] = [disk, null, 0];
      this.database = shell.device.state.database;
      return { content, logs: await this.logs() };
    } catch (error) {
      throw error instanceof UbiquityError ? error : new UbiquityError('storage', reasonOf(error));
    }
  }

  /** The redo logs of tabs that are gone; those of others are redone when they go. @returns {Promise<Redo[]>} */
  async logs() {
    const { disk, shell } = this;
    return await disk.inherit?.((log) => { if (this.disk === disk) shell.report(log); }) ?? [];
  }

  /** Redoes what tabs wrote that are gone. */
  inherit() {
    const { disk, shell } = this;
    this.logs().then((logs) => { if (this.disk === disk) for (const log of logs) shell.report(log); }, () => {});
  }

  /** Keeps what was written, in the task in which it was: the page may be gone after it. */
  log() {
    const writes = this.unsaved.filter(({ tab, number }) => !tab && !number);
    if (writes.length) this.disk.keep?.(writes);
  }

  /** Takes note of what the next save will have. @param {Redo} write */
  wrote(write) {
    if (this.unsaved.includes(write)) return;
    this.unsaved.push(write);
    if (this.unsaved.length <= unsavedMax) return;
    this.unsaved.shift();
    this.saving = Math.max(0, this.saving - 1);
  }

  save(step) {
    const { shell, disk } = this;
    this.log();
    this.answer(disk.save(step, this.unsaved.slice(0, this.saving)), ({ version, content }) => {
      if (version !== undefined) {
        this.unsaved.splice(0, this.saving);
        shell.folder.post(disk.document);
        return { do: 'saved', version };
      }
      return { do: 'conflict', content };
    }, 'notSaved');
  }

  read({ after }) {
    this.answer(this.disk.changedAfter(after), (content) => ({ do: 'read', content }), 'notRead');
  }

  readAccount() {
    const { shell } = this;
    this.answer(shell.device.read(), () => {
      this.rescue();
      return { do: 'account', device: shell.account };
    }, 'noAccount');
  }

  noteSealed({ account }) {
    const { shell } = this;
    this.answer(shell.device.noteSealed(account), () => ({ do: 'account', device: shell.account }), 'noAccount');
  }

  /** What waits for the server is in memory alone when the browser has cleared the database. */
  rescue() {
    const { database } = this.shell.device.state;
    if (!database || database === this.database) return;
    this.database = database;
    const { entries } = this.shell.ask({ do: 'waiting' });
    if (entries.length) this.rescued = { do: 'redo', entries };
  }

  open({ folder }) {
    this.opened = this.shell.folder.disk(folder, this.shell.identifier);
    this.answer(this.opened.load().catch((error) => {
      this.notOpened(error);
      throw error;
    }), (content) => ({ do: 'opened', content }), 'notOpened');
  }

  notOpened(error) { this.opened = unopened(error); }

  /** The refused writes of the file, the newest first. @returns {Promise<Uint8Array[]>} */
  refused() { return this.disk.refused(); }

  /** Removes these of them. @param {Uint8Array[]} rows */
  forget(rows) { return this.disk.forget(rows); }

  release() {
    this.opened?.close();
    this.opened = null;
  }

  use({ file }) {
    // It was saved, or belongs to nobody any more; but not what waits for a file.
    if (this.disk.document) this.unsaved = [];
    this.disk.close();
    [this.file, this.disk, this.opened] = [file, this.opened ?? unopened(closed()), null];
    if (this.rescued) this.shell.report(this.rescued);
    this.rescued = null;
    this.inherit();
    this.shell.leading.lead();
  }

  /** Reports what becomes of something that takes time, if the engine is still there that wants to know. */
  answer(promise, done, failed) {
    const { shell } = this;
    const { engine } = shell;
    const isOfFile = ['notSaved', 'notRead'].includes(failed);
    this.work = promise.then(done, (error) => ({ do: failed, why: reasonOf(error) })).then((event) => {
      this.saving = 0;
      if (shell.engine !== engine) return;
      shell.report(event);
      if (!isOfFile || shell.isClosed || !shell.engine) return;
      if (event.do === failed) {
        // A disk can take long to fail, and is tried again and again.
        shell.waiting.saved(false);
        shell.leading.diskFailed();
      } else shell.leading.diskWorked();
    }).catch((error) => shell.app.problem(reasonOf(error)));
  }

  close() {
    this.disk.close();
    this.opened?.close();
  }
}
