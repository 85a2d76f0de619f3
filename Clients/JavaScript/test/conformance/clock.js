// SPDX-License-Identifier: Apache-2.0

/** The clocks, the timers and the randomness of the shells here: those of the process that a command is for. */

export class Clock {
  wall = 0;
  uptime = 0;
  /** @type {Map<number, {act: () => void, at: number}>} */
  timers = new Map();
  timersMade = 0;
  state = 0n;

  /** @param {{wall: number, uptime: number}} now */
  set({ wall, uptime }) { [this.wall, this.uptime] = [wall, uptime]; }

  /** @param {string} seed Hexadecimal digits. */
  seed(seed) { this.state = BigInt(`0x${seed}`); }

  random() {
    // SplitMix64
    this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
    let mixed = this.state;
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    return mixed ^ (mixed >> 31n);
  }

  setTimer(act, milliseconds) {
    this.timersMade += 1;
    this.timers.set(this.timersMade, { act, at: this.uptime + milliseconds });
    return this.timersMade;
  }

  /** Runs the timers for which the time has come. */
  wake() {
    for (const [number, { act, at }] of [...this.timers]) {
      if (at > this.uptime || !this.timers.delete(number)) continue;
      act();
    }
  }

  /** The uptime of the next one; null if there is none. */
  get next() { return this.timers.size ? Math.min(...[...this.timers.values()].map(({ at }) => at)) : null; }
}

/** The clock of the process that is told something. */
let current = new Clock();

/** @param {Clock} clock */
export function become(clock) { current = clock; }

Date.now = () => current.wall;
performance.now = () => current.uptime;
globalThis.setTimeout = /** @type {any} */ ((act, milliseconds) => current.setTimer(act, milliseconds));
globalThis.clearTimeout = /** @type {any} */ ((number) => current.timers.delete(number));
crypto.getRandomValues = (array) => {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  for (let at = 0; at < bytes.length; at += 8) {
    const eight = new Uint8Array(new BigUint64Array([current.random()]).buffer);
    bytes.set(eight.subarray(0, bytes.length - at), at);
  }
  return array;
};

const turn = setImmediate;
/** Lets everything happen that needs no more than its turn. */
export const settled = () => new Promise((resolve) => { turn(resolve); });
