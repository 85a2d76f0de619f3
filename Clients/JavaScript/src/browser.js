// SPDX-License-Identifier: Apache-2.0

/** Browsers: a database that all tabs open, and of which one leads at a time. */

import { DatabaseFolder } from './database.js';
import { openDeviceIn, openStoreOf } from './device.js';
import { Engine, clocks, engineModule } from './engine.js';
import { Slots, claimLock } from './pool.js';

export { version } from './http.js';
export { ExactDate, Real, UbiquityError, real } from './values.js';

/** Of all tabs together: a browser has six connections to a server. */
const streamsMax = 3;
const address = new URL('./engine.wasm', import.meta.url);

const compile = () => engineModule(async () => {
  try { return await WebAssembly.compileStreaming(fetch(address)); } catch (error) {
    // A server may serve it as another type.
    if (!(error instanceof TypeError)) throw error;
    const response = await fetch(address);
    if (!response.ok) throw new Error(`${address} is not there (${response.status})`);
    return WebAssembly.compile(await response.arrayBuffer());
  }
});

/** @param {{home?: string}} options */
export async function openDevice({ home = 'ubiquity' } = {}) {
  // Stores wait for it, and signing in does not.
  compile().catch(() => {});
  const names = Array.from({ length: streamsMax }, (_, index) => `ubiquity ${home} stream ${index}`);
  const [folder, slots] = [await DatabaseFolder.open(home), new Slots(() => claimLock(names))];
  folder.onFreeze(() => slots.freeze());
  return openDeviceIn(folder, compile, slots);
}

/** Opens a store, with a device of its own. @param {{identifier: string, home?: string}} options */
export const openStore = async ({ home, ...options }) => openStoreOf(await openDevice({ home }), options);

/**
 * The stores with writes that no server has yet, as they are on the disk, with the number of their keys. `isOwn`:
 * of the account that is signed in.
 * @param {any} device @returns {Promise<{identifier: string, keys: number, isOwn: boolean}[]>}
 */
export async function unsentStores({ folder, state }) {
  const module = await compile();
  const stores = [];
  for (const { folder: owner, store } of await folder.documents()) {
    const disk = folder.disk(owner, store);
    const engine = Engine.showing(module, store, await disk.load());
    for (const log of await disk.unsaved()) engine.handle(log, clocks());
    const keys = engine.handle({ do: 'status' }, clocks()).pendingKeys.length;
    if (keys) stores.push({ identifier: store, keys, isOwn: owner === state.folder });
  }
  return stores;
}
