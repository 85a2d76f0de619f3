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
  /** What was written and is not on the disk; of it, so many are being saved. @type {{writes: any[], more: object}[]} */
  unsaved = [];
  saving = 0;

  /** @param {import('./shell.js').Shell} shell */
  constructor(shell) { this.shell = shell; }

  /** Begins with the file of the account of now. @returns {Promise<any>} All that is there. */
  async begin() {
    const { shell } = this;
    try {
      await shell.device.read();
      this.close();
      const disk = shell.folder.disk(shell.device.state.folder, shell.identifier);
      const content = await disk.load();
      [this.disk, this.opened, this.file] = [disk, null, 0];
      return content;
    } catch (error) {
      throw error instanceof UbiquityError ? error : new UbiquityError('storage', reasonOf(error));
    }
  }

  /** Takes note of what the next save will have. */
  wrote(transaction) {
    this.unsaved.push(transaction);
    if (this.unsaved.length <= unsavedMax) return;
    this.unsaved.shift();
    this.saving = Math.max(0, this.saving - 1);
  }

  save(step) {
    const { shell, disk } = this;
    this.answer(disk.save(step), ({ version, content }) => {
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
    this.answer(shell.device.read(), () => ({ do: 'account', device: shell.account }), 'noAccount');
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
