// SPDX-License-Identifier: Apache-2.0

/** What an app has read of a store, so that a value stays the same object until it is another one. */

import { decode } from './plist.js';
import { readable } from './values.js';

/** @param {Uint8Array} a @param {Uint8Array} b */
export const isEqual = (a, b) => a.length === b.length && a.every((byte, index) => byte === b[index]);

export class Reading {
  /** Counts how often anything may have changed. What was read before is compared with what the engine has. */
  #round = 0;
  /** @type {Map<string, {bytes: Uint8Array, exact: any, value: any, round: number}>} Of keys that have a value. */
  #kept = new Map();
  #table = { round: -1, keys: [], places: new Map(), bytes: [], milliseconds: [], devices: [] };
  #value;
  #keys;

  /** @param {(key: string) => Uint8Array | undefined} value @param {() => any} keys Both ask the engine. */
  constructor(value, keys) {
    this.#value = value;
    this.#keys = keys;
  }

  /** What a key has, if it has a value. */
  key(key) {
    const kept = this.#kept.get(key);
    if (kept?.round === this.#round) return kept;
    const bytes = this.#value(key);
    if (!bytes) {
      this.#kept.delete(key);
      return null;
    }
    if (kept && isEqual(kept.bytes, bytes)) {
      kept.round = this.#round;
      return kept;
    }
    const exact = decode(bytes);
    const read = { bytes, exact, value: readable(exact), round: this.#round };
    this.#kept.set(key, read);
    return read;
  }

  /** All keys, with what is known of them, and their places in the lists. */
  get table() {
    if (this.#table.round !== this.#round) {
      const table = this.#keys();
      const places = new Map(table.keys.map((key, place) => [key, place]));
      this.#table = { ...table, places, round: this.#round };
    }
    return this.#table;
  }

  /** These have changed; or something may have. @param {string[]} [keys] */
  forget(keys = undefined) {
    this.#table.round = -1;
    if (!keys) this.#round += 1;
    for (const key of keys ?? []) {
      const kept = this.#kept.get(key);
      if (kept) kept.round = -1;
    }
  }

  /** Keeps nothing of a key that has no value any more. */
  drop(key) { if (this.#kept.has(key)) this.key(key); }
}
