// SPDX-License-Identifier: Apache-2.0

/** Node, with the engine in WebAssembly: the device, its sign-in and its folder are those of the other engine. */

import { readFile } from 'node:fs/promises';
import { openDevice as openOtherDevice } from '../node.js';
import { UbiquityError } from '../values.js';
import { Pool } from './pool.js';
import { Store } from './store.js';

export { ExactDate, Real, UbiquityError, real } from '../values.js';

/** @type {Promise<WebAssembly.Module> | null} */
let compiled = null;

/** The module, which all stores share. */
export function engineModule() {
  compiled ??= readFile(new URL('./engine.wasm', import.meta.url)).then((bytes) => WebAssembly.compile(bytes));
  return compiled;
}

/** @param {{home: string}} options */
export async function openDevice(options) {
  const module = await engineModule();
  const device = await openOtherDevice(options);
  /** @param {string} identifier */
  const openStore = async (identifier, settings = {}) => {
    if ([...device.openStores].some((store) => store.identifier === identifier)) {
      throw new UbiquityError('open', `the store ${identifier} is open already`);
    }
    const store = new Store(device, identifier, settings, module);
    device.openStores.add(store);
    try { await store.start(); } catch (error) {
      device.openStores.delete(store);
      throw error;
    }
    return store;
  };
  return Object.assign(device, { openStore, pool: new Pool(module) });
}
