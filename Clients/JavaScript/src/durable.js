// SPDX-License-Identifier: Apache-2.0

/** Files and folders of Node that are on the disk, under their names, when a call returns. */

import { mkdir, open, readFile, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UbiquityError } from './values.js';

/** The errors of a system that cannot flush a folder. */
const unflushable = new Set(['EINVAL', 'ENOTSUP', 'ENOSYS', 'EPERM', 'EISDIR']);
/** Whether two results of `stat` are of the same file. */
export const isSame = (one, other) => one.ino === other.ino && one.dev === other.dev;
export const statOf = (file) => stat(file, { bigint: true });

/** Adds the place to an error of the system. @throws {UbiquityError} `storage` */
export async function withPlace(place, act) {
  try { return await act(); } catch (error) {
    throw error instanceof UbiquityError ? error : new UbiquityError('storage', `${place}: ${error.message}`);
  }
}

/** Checks that a file is still the one at its path. @returns {Promise<any>} What the system says of it. */
export async function checkPlace(handle, file, bytes) {
  const [own, there] = [await handle.stat({ bigint: true }), await statOf(file)];
  if (isSame(own, there) && Number(there.size) === bytes) return there;
  throw new Error('another program has changed or replaced it');
}

/** The value to use in place of a file that does not exist. */
export const orElse = (value) => (error) => {
  if (error.code === 'ENOENT') return value;
  throw error;
};
export const textOf = (file) => withPlace(file, () => readFile(file, 'utf8').catch(orElse('')));
export const namesIn = (folder) => withPlace(folder, () => readdir(folder).catch(orElse([])));

/** Flushes the names in a folder, where the system can. */
export async function syncFolder(folder) {
  let handle;
  try {
    handle = await open(folder, 'r');
    await handle.sync();
  } catch (error) {
    if (!unflushable.has(error.code)) throw error;
  } finally { await handle?.close(); }
}

/** Makes a folder in one that exists. It is flushed even if it exists: who made it may have ended before that. */
export async function makeFolder(folder) {
  const isNew = await mkdir(folder, 0o700).then(() => true, async (error) => {
    if (error.code === 'EEXIST' && (await stat(folder)).isDirectory()) return false;
    throw error;
  });
  try { await syncFolder(dirname(folder)); } catch (error) {
    // The next attempt makes it anew: a second flush would not write it.
    if (isNew) await rmdir(folder).catch(() => {});
    throw error;
  }
}

/** Makes a folder, and those above it. */
export async function makeFolders(folder) {
  if (await stat(folder).then((there) => there.isDirectory(), () => false)) return;
  try { await makeFolder(folder); } catch (error) {
    if (error.code !== 'ENOENT' || dirname(folder) === folder) throw error;
    await makeFolders(dirname(folder));
    await makeFolder(folder);
  }
}

/**
 * Replaces a file of a home that is locked: it is there as a whole, or as it was.
 * @param {string} file @param {string} text @param {import('./lock.js').Lock} lock
 * @returns {Promise<{handle: any, left: any}>} The file, open for more at its end, and what the system says of it.
 */
export async function replace(file, text, lock) {
  const next = `${file}.new`;
  const bytes = new TextEncoder().encode(text);
  await rm(next, { force: true });
  const handle = await open(next, 'ax', 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
    await lock.check();
    await rename(next, file);
    await syncFolder(dirname(file));
    const left = await checkPlace(handle, file, bytes.length);
    await lock.check();
    return { handle, left };
  } catch (error) {
    await handle.close().catch(() => {});
    // Its room may be needed.
    await rm(next, { force: true }).catch(() => {});
    throw error;
  }
}
