// SPDX-License-Identifier: Apache-2.0

/**
 * What a device needs of its platform: rows on a disk, and other tabs of the same app.
 * @typedef {object} Folder
 * @property {(document: string) => Promise<Map<string, string>>} read
 * @property {(document: string, rows: Map<string, string | null>) => Promise<void>} write
 *     Writes all or nothing, so that it survives the end of the process; null removes a row.
 * @property {(prefix: string) => Promise<void>} removeAll Removes documents.
 * @property {(message: any) => void} post To the other tabs.
 * @property {(receive: (message: any) => void) => () => void} onMessage From the other tabs.
 * @property {(name: string, lead: () => void) => () => void} lead
 *     Calls back when this tab is the one that leads; returns what ends that.
 * @property {() => Promise<void>} close
 * @property {() => Promise<void>} erase Removes all documents, and closes.
 */

import { Device } from './device.js';

export { version } from './http.js';
export { ExactDate, Real, UbiquityError, real } from './values.js';

/** @param {Folder} folder */
export async function openDeviceIn(folder) {
  try { return await Device.open(folder); } catch (error) {
    await folder.close();
    throw error;
  }
}

/**
 * A store with a device of its own, which is closed with it.
 * @param {Folder} folder @param {{identifier?: string}} options
 */
export async function openStoreIn(folder, { identifier, ...options }) {
  const device = await openDeviceIn(folder);
  try {
    return Object.assign(await device.openStore(identifier, options), { ownsDevice: true });
  } catch (error) {
    await device.close();
    throw error;
  }
}

/** Random hexadecimal digits. */
export const randomSeed = () => crypto.getRandomValues(new BigUint64Array(1))[0].toString(16).padStart(16, '0');

let [boot, lastGap] = ['', 0];
/** Reads the clocks. If the wall clock jumps, the machine slept or it was set: another boot. */
export function reading() {
  const [wall, uptime] = [Date.now(), performance.now()];
  if (boot === '' || Math.abs(wall - uptime - lastGap) > 1_500) boot = randomSeed();
  lastGap = wall - uptime;
  return { wall, uptime, boot };
}
