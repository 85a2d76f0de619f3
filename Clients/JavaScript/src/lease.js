// SPDX-License-Identifier: Apache-2.0

/** The right to lead a store: a Web Lock, which the browser gives to the next tab when this one ends. */

const pause = 1_000;

export class Lease {
  isHeld = false;
  isEnded = false;
  /** Ends the request of now. */
  stop = () => {};

  /**
   * Waits for it.
   * @param {string} name @param {(isHeld: boolean) => void} tell
   * @param {(error: any) => void} [failed] Called where the browser has no locks now; without it, they are tried again.
   */
  constructor(name, tell, failed = undefined) {
    this.failed = failed;
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
    navigator.locks.request(this.name, steals ? { steal: true } : { signal: waiting.signal }, held).catch((error) => {
      if (!isCurrent) return;
      if (!this.isHeld) {
        if (this.failed) this.failed(error);
        else setTimeout(() => { if (isCurrent) this.ask(); }, pause);
        return;
      }
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
    const { pending = [] } = await navigator.locks.query().catch(() => ({ pending: [] }));
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
