// SPDX-License-Identifier: Apache-2.0

/** Whether this process is the one that has the connection of a store: it has the lease of the store's file. */

import { randomText } from './engine.js';

const pause = 1_000;

export class Leading {
  /** @type {any} */
  lease = null;
  /** This process, while it leads. @type {string | null} */
  leader = null;
  /** It is tried again then. */
  timer = undefined;
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
    const wait = shell.recovery.leadsAt - performance.now();
    if (wait > 0) {
      this.timer = setTimeout(() => this.lead(), wait);
      return;
    }
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
        // It leads when the disk can be read; what refuses this alone must not be tried without end.
        this.timer = setTimeout(() => shell.report({ do: 'fileChanged' }), pause);
        return undefined;
      }
    });
  }

  follow() {
    clearTimeout(this.timer);
    this.turn += 1;
    this.lease?.release();
    this.lease = null;
    this.leader = null;
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
