// SPDX-License-Identifier: Apache-2.0

/** A store, as an app reads and writes it. */

import { UbiquityError, isText, toWire } from '../values.js';
import { Shell } from './shell.js';

function checkedKey(key) {
  if (isText(key) && key !== '') return key;
  throw new UbiquityError('key', 'a key is a string that is not empty');
}

export class Store extends EventTarget {
  ownsDevice = false;
  /** The values that were read since the engine last heard of something. */
  values = new Map();

  /**
   * @param {import('../device.js').Device} device @param {string} identifier
   * @param {{firstSync?: 'serverWins' | 'timestamps', historyExcluded?: Iterable<string>}} options
   * @param {WebAssembly.Module} module
   */
  constructor(device, identifier, options, module) {
    super();
    this.device = device;
    this.identifier = identifier;
    this.shell = new Shell(device, identifier, options, module, {
      heard: () => this.values.clear(),
      notice: (reason, keys) => this.dispatchEvent(Object.assign(new Event('change'), { reason, keys })),
      decide: (_key, values) => values.at(-1)?.value,
      problem: (detail) => this.dispatchEvent(Object.assign(new Event('problem'), { detail })),
    });
  }

  start() { return this.shell.start(); }

  get(key) {
    if (this.values.has(key)) return this.values.get(key);
    const value = this.shell.value(checkedKey(key));
    this.values.set(key, value);
    return value;
  }

  /** Null and undefined, or no value, are a removal. */
  set(key, value) {
    // Refuses what no store can hold, and says where it is.
    if (value !== null && value !== undefined) toWire(value, key);
    const refusal = this.shell.write([{ key: checkedKey(key), value: value ?? undefined }]);
    if (refusal.error) {
      throw Object.assign(new UbiquityError(refusal.error, `${key}: ${refusal.detail}`), { keys: [key] });
    }
    this.values.delete(key);
  }

  delete(key) { this.set(key, undefined); }

  entries() { return new Map(Object.entries(this.shell.ask({ do: 'values' }).values)); }

  get status() { return this.shell.ask({ do: 'status' }); }

  synchronize() { return this.shell.synchronize(); }

  synchronizeNow() { return this.shell.synchronizeNow(); }

  followAccount() { return this.shell.followAccount(); }

  async close() {
    await this.shell.close();
    this.device.openStores.delete(this);
    if (this.ownsDevice) await this.device.close();
  }
}
