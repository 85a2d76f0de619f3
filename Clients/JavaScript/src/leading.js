// SPDX-License-Identifier: Apache-2.0

/** Whether this process is the one that has the connection of a store: it has the lease of the store's file. */

export class Leading {
  /** @type {any} */
  lease = null;
  /** It is tried again then. */
  timer = undefined;

  /** @param {import('./shell.js').Shell} shell */
  constructor(shell) { this.shell = shell; }

  /** Waits for the lease of the file in use. */
  lead() {
    const { shell } = this;
    const { file, disk } = shell.storage;
    this.follow();
    if (!disk.document) return;
    const wait = shell.recovery.leadsAt - performance.now();
    if (wait > 0) {
      this.timer = setTimeout(() => this.lead(), wait);
      return;
    }
    const lease = shell.folder.lead(disk.document, (isHeld) => {
      if (!this.lease || this.lease === lease) shell.report({ do: 'leading', file, isLeading: isHeld });
    });
    this.lease = lease;
  }

  follow() {
    clearTimeout(this.timer);
    this.lease?.release();
    this.lease = null;
  }

  /** Takes the lease from a process that stands still. */
  seize() { this.lease?.seize(); }

  /** Leads no more, until the disk has been read again. */
  resign() {
    this.follow();
    this.shell.report({ do: 'leading', file: this.shell.storage.file, isLeading: false });
  }

  /** Another process can lead while this one's disk fails. */
  async diskFailed() {
    const { lease } = this;
    // The lease may have been taken away meanwhile; if it was given up, another one is needed.
    if (await lease?.yields() && lease === this.lease) this.resign();
  }

  diskWorked() {
    if (this.lease || !this.shell.storage.disk.document) return;
    const { seen } = this.shell;
    if (seen && !seen.diskError) this.lead();
  }
}
