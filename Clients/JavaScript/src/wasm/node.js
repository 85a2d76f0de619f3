// SPDX-License-Identifier: Apache-2.0

/** Node: a folder, which belongs to one process at a time. */

import { readFile } from 'node:fs/promises';
import { openDeviceIn, openStoreIn } from '../device.js';
import { engineModule } from './engine.js';
import { FileFolder } from './files.js';
import { Pool } from './pool.js';
import { Store } from './store.js';

export { version } from '../http.js';
export { ExactDate, Real, UbiquityError, real } from '../values.js';

/** @returns {Promise<any>} What makes a store. */
async function maker() {
  const module = await engineModule(async () =>
    WebAssembly.compile(await readFile(new URL('./engine.wasm', import.meta.url))));
  return (device, identifier, options) => {
    device.pool ??= new Pool(module);
    return new Store(device, identifier, options, module);
  };
}

/** @param {{home: string}} options */
export async function openDevice({ home }) {
  const makeStore = await maker();
  return openDeviceIn(await FileFolder.open(home), makeStore);
}

/** Opens a store, with a device of its own. @param {{home: string, identifier: string}} options */
export async function openStore({ home, ...options }) {
  const makeStore = await maker();
  return openStoreIn(await FileFolder.open(home), options, makeStore);
}
