// SPDX-License-Identifier: Apache-2.0

/** Whether this process is the one that has the connection of a store: it has the lease of the store's file. */

import { randomText } from './engine.js';

export class Leading {
  /** @type {any} */
  lease = null;
  /** This process, while it leads. @type {string | null} */
  leader = null;
  /** Counts what has become of the lease. */
  turn = 0;

  /** @param {import('./shell.js').Shell} shell */
  constructor(shell) { this.shell = shell; }

  /** Waits for the lease of the file in use. */
  lead() {
    const { shell } = this;
    const { file, disk } = shell.storage;
    this.follow();
    if (!disk.document) return;
    this.lease = shell.folder.lead(disk.document, async (isHeld) => {
      this.leader = null;
      this.turn += 1;
      const { turn } = this;
      if (!isHeld) return shell.report({ do: 'leading', file, isLeading: false });
      const leader = randomText();
      try {
        // A leader that stood still, and does not know yet that it does not lead, finds this when it saves.
        await disk.claim(leader);
        if (turn !== this.turn) return undefined;
        this.leader = leader;
        return shell.report({ do: 'leading', file, isLeading: true });
      } catch {
        if (turn !== this.turn) return undefined;
        this.follow();
        return shell.report({ do: 'fileChanged' });
      }
    });
  }

  follow() {
    this.turn += 1;
    this.lease?.release();
    this.lease = null;
    this.leader = null;
  }

  /** Takes the lease from a process that stands still. */
  seize() { this.lease?.seize(); }

  /** Another process leads by now; the lease says so in a moment. */
  deposed() {
    this.leader = null;
    this.shell.report({ do: 'leading', file: this.shell.storage.file, isLeading: false });
  }

  /** Leads no more, until the disk has been read again. */
  resign() {
    this.follow();
    this.shell.report({ do: 'leading', file: this.shell.storage.file, isLeading: false });
  }

  /** Another process can lead while this one's disk fails. */
  async diskFailed() {
    const { lease, turn } = this;
    if (await lease?.yields() && turn === this.turn) this.resign();
  }

  diskWorked() { if (!this.lease && this.shell.storage.disk.document && !this.shell.status.diskError) this.lead(); }
}
