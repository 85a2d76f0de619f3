// SPDX-License-Identifier: Apache-2.0

/**
 * A home's lock: a socket on which its process listens, and which the system closes when the process ends,
 * however it ends. Processes in other namespaces of this machine reach it by its name.
 */

import { once } from 'node:events';
import { lstat, open, readFile, readdir, realpath, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { UbiquityError } from './values.js';

const prefix = 'lock.';
/** As many bytes as every system allows for the name of a socket. */
const pathMax = 100;
const attempts = 10;
/** What other machines may use at the same time, where no lock of this one holds: Core's `FileSystemKind` has them too. */
const networks = new Set(['nfs', 'nfs4', 'cifs', 'smb3', 'smbfs', 'afpfs', 'webdav', 'davfs', 'davfs2', 'afs', 'openafs',
  '9p', 'ceph', 'ceph-fuse', 'gfs', 'gfs2', 'ocfs2', 'lustre', 'gpfs', 'beegfs', 'orangefs', 'pvfs2', 'panfs', 'glusterfs',
  'coda', 'ncpfs', 'moosefs', 'mfs', 'juicefs', 'sshfs', 'curlftpfs', 'gvfsd-fuse', 's3fs', 'goofys', 'gcsfuse',
  'blobfuse', 'blobfuse2', 'rclone', 'mount-s3', 'vboxsf', 'prl_fs', 'vmhgfs', 'vmhgfs-fuse']);

/**
 * The network file system on which a folder is, if it is on one. Without mounts, as on systems that have no list, none.
 * @param {string} path Without links. @param {string} mounts The content of `/proc/self/mountinfo`.
 */
export function networkOf(path, mounts) {
  let [found, type] = ['', ''];
  for (const line of mounts.split('\n')) {
    // "36 35 98:0 /root /point options [fields] - type source options"
    const [before, after = ''] = line.split(' - ');
    const point = (before.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, digits) =>
      String.fromCharCode(parseInt(digits, 8)));
    if (!point || !(point === '/' || path === point || path.startsWith(`${point}/`))) continue;
    // Of two at one point, the later one covers the earlier one.
    if (point.length >= found.length) [found, type] = [point, after.split(' ')[0].replace(/^fuse\./, '')];
  }
  return networks.has(type) ? type : null;
}

/** Whether a process listens there. It may be stopped, and have no room for one who asks. */
async function isAlive(path) {
  const socket = connect({ path });
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) { return !['ECONNREFUSED', 'ENOENT'].includes(error.code); } finally { socket.destroy(); }
}

export class Lock {
  /** @param {string} home */
  constructor(home) {
    this.home = home;
    this.name = `${prefix}${crypto.randomUUID().slice(0, 13)}`;
    this.server = createServer((socket) => socket.destroy());
  }

  /** @throws {UbiquityError} */
  async take() {
    try {
      this.folder = await open(this.home, 'r');
      // The names of sockets are short; a folder that is open has a short one.
      const short = `/proc/self/fd/${this.folder.fd}`;
      const isThere = await readdir(short).then(() => true, () => false);
      this.place = isThere ? short : this.home;
      if (new TextEncoder().encode(join(this.place, this.name)).length > pathMax) {
        throw new Error('the path is too long for a socket');
      }
      // Of a cluster, each worker has its own.
      this.server.listen({ path: join(this.place, this.name), exclusive: true });
      await once(this.server, 'listening');
      this.server.unref();
      this.own = await lstat(join(this.place, this.name), { bigint: true });
    } catch (error) {
      throw new UbiquityError('storage', `${this.home} cannot be locked: ${error.message}. A home is a folder of a `
        + 'disk of this machine, on which a program can make sockets');
    }
  }

  /**
   * Whether this is the only one. Each listens first and looks then, so that of two at once, one at least sees
   * the other. What nobody listens to any more is removed, by the holder alone: who has begun to listen since
   * finds that its own is missing.
   */
  async isAlone() {
    const names = (await readdir(this.home)).filter((name) => name.startsWith(prefix));
    const others = names.filter((name) => name !== this.name);
    for (const name of others) if (await isAlive(join(this.place, name))) return false;
    if (!names.includes(this.name)) return false;
    for (const name of others) await rm(join(this.home, name), { force: true });
    return true;
  }

  /**
   * Checks that the path still leads to the home that this locks, and that the lock is there, which keeps others out.
   * @throws {UbiquityError}
   */
  async check() {
    const { own } = this;
    const there = await lstat(join(this.home, this.name), { bigint: true }).catch((error) => error);
    if (own && there.ino === own.ino && there.dev === own.dev) return;
    const why = there.message ?? `${this.name} is another file`;
    throw new UbiquityError('storage', `${this.home} is not what was opened: another program has moved, replaced or removed `
      + `it, or the lock in it (${why}). Nothing is saved. Move it back, or close it and open it again`);
  }

  async release() {
    if (this.server.listening) await new Promise((resolve) => { this.server.close(resolve); });
    await this.folder?.close();
    this.folder = undefined;
  }
}

/** Takes the lock of a home. @param {string} home @returns {Promise<Lock>} */
export async function lockHome(home) {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  const network = networkOf(await realpath(home).catch(() => home), mounts);
  if (network) {
    throw new UbiquityError('storage', `${home} is on a network file system (${network}), where another machine could `
      + 'open it at the same time. A home is a folder of a disk of this machine');
  }
  for (let attempt = 1; ; attempt += 1) {
    const lock = new Lock(home);
    try {
      await lock.take();
      if (await lock.isAlone()) return lock;
    } catch (error) {
      await lock.release();
      throw error;
    }
    await lock.release();
    if (attempt === attempts) {
      throw new UbiquityError('open', `${home} is open in another process, or in this one: a home belongs to one `
        + 'process at a time');
    }
    // Two that have seen each other try again, and not at the same moment.
    await new Promise((resolve) => { setTimeout(resolve, 10 + Math.random() * 10 * attempt); });
  }
}
