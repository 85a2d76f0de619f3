// SPDX-License-Identifier: Apache-2.0

/**
 * What becomes of a store whose engine has trapped: another engine begins with what is on the disk, and with what
 * was written since. If that traps too, what was written may be the cause, and is given up; if it goes on, the
 * store can only be read.
 */

import { UbiquityError, reasonOf } from './values.js';
import { Engine, EventError } from './engine.js';

/** So many engines a store may have in a minute, after the first. */
const enginesMax = 3;
const minute = 60_000;
const pause = 1_000;
/** What a server has said, and made an engine trap, is not met again so soon that the store would be given up. */
const leadingPause = 30_000;

export class Recovery {
  /** When an engine trapped, in the last minute. */
  traps = [];
  /** What goes on, until the store has an engine again. @type {Promise<void> | null} */
  work = null;
  /** The store can only be read. */
  isOver = false;
  /** What is read from meanwhile. @type {Engine | null} */
  last = null;
  error = new UbiquityError('engine', 'the engine of the store has stopped');
  /** When the store may lead again. */
  leadsAt = 0;
  /** Whether the last trap was at what a server has said: then nothing that was written is the cause. */
  isOfServer = false;
  /** @type {string[]} What was written and is lost. */
  lostKeys = [];

  /** @param {import('./shell.js').Shell} shell */
  constructor(shell) { this.shell = shell; }

  /** @template T @param {(engine: Engine) => T} body @returns {T} */
  reading(body) {
    const engine = this.shell.engine ?? this.last;
    if (!engine) throw this.error;
    try { return body(engine); } catch (error) {
      // It goes on.
      if (error instanceof EventError) throw error;
      if (engine === this.shell.engine) this.trapped(error);
      throw this.error;
    }
  }

  /** What is written while there is no engine is refused, and a write that makes it trap is the cause. */
  writing(body) {
    if (!this.shell.engine) throw this.error;
    return this.reading(body);
  }

  /** @param {any} error @param {boolean} isOfServer */
  trapped(error, isOfServer = false) {
    const { shell } = this;
    this.note(error);
    this.isOfServer = isOfServer;
    if (isOfServer) this.leadsAt = performance.now() + leadingPause;
    this.last = shell.engine;
    shell.engine = null;
    if (shell.isClosed) return;
    shell.link.close();
    shell.leading.follow();
    clearTimeout(shell.timer);
    this.work ??= this.begin().finally(() => { this.work = null; });
  }

  note(error) {
    this.error = new UbiquityError('engine', `the engine of the store has stopped: ${reasonOf(error)}`);
    const now = performance.now();
    this.traps = [...this.traps.filter((time) => now - time < minute), now];
  }

  async begin() {
    const { shell } = this;
    while (!shell.engine) {
      // What is being saved may be on the disk then.
      await shell.storage.work;
      if (this.traps.length > enginesMax) return this.giveUp();
      const isCause = this.traps.length > 1 && !this.isOfServer;
      const writes = shell.storage.unsaved.splice(0);
      this.tell(isCause && writes.length ? `; what was written last is lost (${writes.length} writes)` : '');
      if (isCause && writes.length) await this.lose(writes);
      try { await shell.begin(isCause ? [] : writes); } catch (error) {
        shell.engine = null;
        if (!isCause) shell.storage.unsaved = writes;
        if (error instanceof UbiquityError) await this.diskFailed(error);
        else {
          this.note(error);
          this.isOfServer = false;
        }
        if (shell.isClosing) return shell.ended();
      }
    }
    return this.goOn();
  }

  /** Who waits for what is lost is told, and the app is shown in the end what is there instead. */
  async lose(writes) {
    for (const { keys = [] } of writes) this.lostKeys.push(...keys);
    this.shell.waiting.lost(this.error);
    await this.shell.storage.disk.drop?.(writes).catch(() => {});
  }

  /** Nobody waits for a disk; it is tried again. */
  async diskFailed(error) {
    this.error = error;
    this.shell.waiting.fail(error);
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }

  /** All who wait wait for the new engine. */
  goOn() {
    const { shell } = this;
    this.last = null;
    shell.waiting.askAgain();
    if (shell.isClosing) shell.report({ do: 'close' });
    this.show();
  }

  /** What the app sees may be what it was before what the server has sent last. */
  show() {
    const { shell } = this;
    shell.app.heard();
    try {
      const { keys } = shell.ask({ do: 'keys' });
      shell.app.notice('serverChange', [...new Set([...keys, ...this.lostKeys.splice(0)])]);
    } catch { /* It is told. */ }
  }

  tell(more) { this.shell.app.problem(`${this.error.message}; it is started again${more}`); }

  /** From here on, the store shows what is on the disk. */
  async giveUp() {
    const { shell } = this;
    this.isOver = true;
    this.error = new UbiquityError('engine', `${this.error.message}, again and again; the store can only be read. `
      + 'Reload the page, or start the program again');
    try {
      this.last = Engine.showing(shell.module, shell.identifier, await shell.storage.disk.load());
    } catch { /* What the one before had is all that there is. */ }
    shell.app.problem(this.error.message);
    shell.waiting.fail(this.error);
    shell.ended();
    this.show();
  }
}
