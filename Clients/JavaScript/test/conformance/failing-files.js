// SPDX-License-Identifier: Apache-2.0

/** Node's files, whose calls fail as a disk's do. Must be loaded before what uses them. */

import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

/** What is the matter: `full`, `readOnly`, `silent`, `late`, or nothing. @type {string | null} */
let failure = null;

const messages = { ENOSPC: 'no space left on device', EROFS: 'read-only file system', EIO: 'i/o error' };
const failed = (code, call) => Object.assign(new Error(`${code}: ${messages[code]}, ${call}`), { code });

/** Fails a call that changes the disk. */
function change(call) {
  if (failure === 'readOnly') throw failed('EROFS', call);
  if (failure === 'silent') throw Object.assign(new Error(''), { code: 'EIO' });
}

const { open, rename, rm, unlink, mkdir } = fs;
fs.open = async (path, flags = 'r', ...rest) => {
  if (flags !== 'r') change('open');
  return open(path, flags, ...rest);
};
for (const [name, call] of Object.entries({ rename, rm, unlink, mkdir })) {
  fs[name] = async (...given) => {
    change(name);
    return call(...given);
  };
}

const handle = await open('/dev/null', 'r');
const prototype = Object.getPrototypeOf(handle);
await handle.close();
for (const name of ['write', 'writeFile', 'appendFile']) {
  const write = prototype[name];
  prototype[name] = async function (data, ...rest) {
    change('write');
    if (failure !== 'full') return write.call(this, data, ...rest);
    // Half of it still had room.
    const bytes = Buffer.from(data);
    await write.call(this, bytes.subarray(0, bytes.length / 2), ...rest);
    throw failed('ENOSPC', 'write');
  };
}
for (const name of ['sync', 'datasync']) {
  const flush = prototype[name];
  prototype[name] = async function () {
    change('fsync');
    if (failure === 'late') throw failed('EIO', 'fsync');
    return flush.call(this);
  };
}
const { truncate } = prototype;
prototype.truncate = async function (...given) {
  change('truncate');
  return truncate.apply(this, given);
};
syncBuiltinESMExports();

/** Does something while the disk fails so. @template T @param {string} how @param {() => Promise<T>} act */
export async function failing(how, act) {
  failure = how;
  try { return await act(); } finally { failure = null; }
}
