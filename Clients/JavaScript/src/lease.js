// SPDX-License-Identifier: Apache-2.0

/** The right to lead a store: a Web Lock, which the browser gives to the next tab when this one ends. */

/** @typedef {'exclusive' | 'shared'} Mode */

export class Lease {
  isHeld = false;
  isEnded = false;
  /** Ends the request of now. */
  stop = () => {};

  /** Waits for it. @param {string} name @param {(isHeld: boolean) => void} tell @param {Mode} mode */
  constructor(name, tell, mode = /** @type {Mode} */ ('exclusive')) {
    /** @type {Mode} */
    this.mode = mode;
    this.name = name;
    this.tell = tell;
    this.ask();
  }

  ask(steals = false) {
    this.stop();
    const waiting = new AbortController();
    let isCurrent = true;
    let release = () => {};
    const released = new Promise((resolve) => { release = () => resolve(undefined); });
    this.stop = () => {
      isCurrent = false;
      waiting.abort();
      release();
    };
    const held = () => {
      if (!isCurrent) return undefined;
      this.isHeld = true;
      this.tell(true);
      return released;
    };
    navigator.locks.request(this.name, steals ? { steal: true } : { signal: waiting.signal, mode: this.mode },
      held).catch(() => {
      if (!isCurrent || !this.isHeld) return;
      // Another tab has taken it, because this one stood still.
      this.isHeld = false;
      this.tell(false);
      this.ask();
    });
  }

  /** Takes it from a tab that stands still. */
  seize() { if (!this.isEnded && !this.isHeld) this.ask(true); }

  /** Lets another tab lead, if one waits. @returns {Promise<boolean>} Whether this is done. */
  async yields() {
    if (!this.isHeld) return false;
    const { pending = [] } = await navigator.locks.query();
    if (this.isEnded || !pending.some(({ name }) => name === this.name)) return false;
    this.release();
    return true;
  }

  release() {
    this.isEnded = true;
    this.isHeld = false;
    this.stop();
  }
}
