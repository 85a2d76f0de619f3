// SPDX-License-Identifier: Apache-2.0

/** Node: a folder, which belongs to one process at a time. */

import { readFile } from 'node:fs/promises';
import { openDeviceIn, openStoreOf } from './device.js';
import { engineModule } from './engine.js';
import { FileFolder } from './files.js';

export { version } from './http.js';
export { ExactDate, Real, UbiquityError, real } from './values.js';

const compile = () => engineModule(async () =>
  WebAssembly.compile(await readFile(new URL('./engine.wasm', import.meta.url))));

/** @param {{home?: string}} options */
export const openDevice = async ({ home } = {}) => openDeviceIn(await FileFolder.open(home), compile);

/** Opens a store, with a device of its own. @param {{home?: string, identifier: string}} options */
export const openStore = async ({ home, ...options }) => openStoreOf(await openDevice({ home }), options);
