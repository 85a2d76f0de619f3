// SPDX-License-Identifier: Apache-2.0

/** Files and folders of Node that are on the disk, under their names, when a call returns. */

import { mkdir, open, readFile, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UbiquityError } from './values.js';

/** What a folder may be that no system can flush, or this one cannot. */
const unflushable = new Set(['EINVAL', 'ENOTSUP', 'ENOSYS', 'EPERM', 'EISDIR']);
/** Of a `stat`, what tells one file from another. */
export const isSame = (one, other) => one.ino === other.ino && one.dev === other.dev;
export const statOf = (file) => stat(file, { bigint: true });

/** Says of an error of the system where it was met. */
export async function told(place, act) {
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

/** What stands in for what is not there. */
export const orElse = (value) => (error) => {
  if (error.code === 'ENOENT') return value;
  throw error;
};
export const textOf = (file) => told(file, () => readFile(file, 'utf8').catch(orElse('')));
export const namesIn = (folder) => told(folder, () => readdir(folder).catch(orElse([])));

/** A name is on disk when its folder is; not every system can tell a folder so. */
export async function syncFolder(folder) {
  let handle;
  try {
    handle = await open(folder, 'r');
    await handle.sync();
  } catch (error) {
    if (!unflushable.has(error.code)) throw error;
  } finally { await handle?.close(); }
}

/** Makes a folder in one that is there. The process that made it may have ended before it was on the disk. */
export async function makeFolder(folder) {
  const isNew = await mkdir(folder, 0o700).then(() => true, async (error) => {
    if (error.code === 'EEXIST' && (await stat(folder)).isDirectory()) return false;
    throw error;
  });
  try { await syncFolder(dirname(folder)); } catch (error) {
    // Made anew, it is written anew.
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
