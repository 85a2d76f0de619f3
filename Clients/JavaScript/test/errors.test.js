// SPDX-License-Identifier: Apache-2.0

/** What an app is told of a device, a home and a browser that fail, and what it must not be told. */

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DatabaseFolder } from '../src/database.js';
import { unanswered } from '../src/http.js';
import { Lease } from '../src/lease.js';
import { networkOf } from '../src/lock.js';
import { openDevice, real } from '../src/node.js';
import { Slots } from '../src/pool.js';
import { Home, account, homeTest as tabTest, skip, soon, until } from './support/memory.js';
import { served, serverTest } from './support/server.js';

const identifier = 'T.example';
const signInAnswer = { account: 'a', accountName: 'ann', device: '1'.repeat(16), credential: 'ubd_x' };

function homeTest(name, body) {
  test(name, { skip, timeout: 300_000 }, async () => {
    const home = mkdtempSync(join(tmpdir(), 'ubiquity-js-'));
    const device = await openDevice({ home });
    try { await body(device, home); } finally {
      await device.close().catch(() => {});
      rmSync(home, { recursive: true, force: true });
    }
  });
}

/** A server that signs in, and what it was asked. */
async function signsIn(body, change = {}) {
  const asked = [];
  await served((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.end(request.method === 'POST' ? JSON.stringify({ ...signInAnswer, ...change }) : '{}');
  }, (server) => body(server, asked));
}

// Signing in

homeTest('a device that is closed while it signs in has nothing of it', (device, home) => signsIn(
  async (server, asked) => {
    const isWanted = async () => {
      await device.close();
      return true;
    };
    await assert.rejects(device.signIn({ server, code: 'c', isWanted }), { code: 'closed' });
    assert.deepEqual(asked, ['POST /v1/sign-in', `DELETE /v1/devices/${'1'.repeat(16)}`]);
    assert.ok(!readFileSync(join(home, 'account.json'), 'utf8').includes('ubd_x'));
    await assert.rejects(device.folder.changeAccount((state) => state), { code: 'closed' });
    await assert.rejects(device.signIn({ server, code: 'c' }), { code: 'closed' });
    assert.equal(asked.length, 2);
  }));

homeTest('a sign-in whose question to the app fails leaves no device at the server', (device) => signsIn(
  async (server, asked) => {
    const isWanted = () => { throw new Error('mine'); };
    await assert.rejects(device.signIn({ server, code: 'c', isWanted }), { message: 'mine' });
    assert.deepEqual(asked, ['POST /v1/sign-in', `DELETE /v1/devices/${'1'.repeat(16)}`]);
    assert.equal(device.account, null);
  }));

homeTest('a device that is closed while a sign-in is under way ends it', async (device) => {
  let asked = 0;
  await served(() => { asked += 1; }, async (server) => {
    const signingIn = device.signIn({ server, code: 'c' });
    const refused = assert.rejects(signingIn);
    await until(() => asked);
    await device.close();
    await refused;
  });
});

homeTest('a code is not used up while a store cannot be saved', (device) => signsIn(async (server, asked) => {
  const store = await device.openStore(identifier);
  const [journal] = device.folder.journals.values();
  journal.write = async () => { throw new Error('no space'); };
  store.set('a', 1);
  await assert.rejects(device.signIn({ server, code: 'c' }), { code: 'storage', message: /T.example/ });
  assert.deepEqual(asked, []);
  // One that can only be read has nothing to save.
  store.shell.recovery.isOver = true;
  assert.equal((await device.signIn({ server, code: 'c' })).name, 'ann');
  await device.signOut();
  store.shell.recovery.isOver = false;
  delete journal.write;
}));

homeTest('while a device asks whether it is approved, the disk is left alone', async (device) => {
  let polls = 0;
  let writes = 0;
  const stop = new AbortController();
  const { folder } = device;
  const change = folder.changeAccount;
  folder.changeAccount = (body) => {
    writes += 1;
    return change.call(folder, body);
  };
  await served((request, response) => {
    if (request.url.endsWith('sign-in-requests')) {
      response.end(JSON.stringify({ userCode: 'X', request: 'y', intervalSeconds: 1 }));
      return;
    }
    polls += 1;
    if (polls === 3) stop.abort();
    response.writeHead(409, { 'Content-Type': 'application/problem+json' });
    response.end('{"code": "sign-in-pending", "detail": "wait"}');
  }, async (server) => {
    const { account: wait } = await device.requestSignIn({ server });
    await assert.rejects(wait({ signal: stop.signal }));
  });
  assert.deepEqual([polls, writes], [3, 1]);
});

homeTest('no credential gets into the text of an error', (device) => signsIn(async (server, asked) => {
  const told = (error) => !error.message.includes('secret') && error.code === 'refused';
  for (const identityToken of ['secret\nsecret', 'secret\u0142', 'a secret']) {
    await assert.rejects(device.signIn({ server, identityToken }), told);
  }
  assert.deepEqual(asked, []);
  await assert.rejects(device.signIn({ server, code: 'c' }), { code: 'unreachable' });
  assert.equal(device.account, null);
  const error = new TypeError('Headers.append: "Bearer secret" is an invalid header value.');
  assert.ok(!unanswered(error, false, server, 'secret').detail.includes('secret'));
}, { credential: 'ubd\nx' }));

// The disk

homeTest('what a disk refuses is an error of this library', async (device, home) => {
  mkdirSync(join(home, 'account.json.new'));
  await assert.rejects(device.folder.changeAccount((state) => state), { code: 'storage', name: 'UbiquityError' });
  await assert.rejects(device.signOut(), { code: 'storage' });
  const disk = device.folder.disk('1', identifier);
  await disk.load();
  writeFileSync(join(home, 'stores'), '');
  await assert.rejects(disk.forget([]), { code: 'storage' });
});

test('what a browser\'s database refuses is an error of this library', async () => {
  const connect = async () => ({ transaction() { throw new DOMException('it is full', 'QuotaExceededError'); } });
  const folder = /** @type {any} */ ({ connect });
  await assert.rejects(DatabaseFolder.prototype.transact.call(folder, 'readonly', () => () => 1),
    { code: 'storage', message: 'it is full' });
});

tabTest('what the server knows of a key can be read beside a disk that fails', async (openTab) => {
  const { store } = await openTab();
  store.shell.storage.disk.refused = async () => { throw new Error('the disk is away'); };
  await assert.rejects(store.history('a'), { code: 'unauthorized' });
});

tabTest('an answer that is none is an error of this library', (openTab, home) => served(
  (_request, response) => response.end('{"devices": 1, "stores": 1}'), async (server) => {
    home.account = account(server);
    const { device } = await openTab();
    await assert.rejects(device.devices(), { code: 'unreachable', name: 'UbiquityError' });
    await assert.rejects(device.stores(), { code: 'unreachable' });
    await assert.rejects(device.renameDevice('1', 'x'), { code: 'unreachable' });
  }));

test('a home that other machines may open is known by its mount', () => {
  const mounts = ['22 1 8:1 / / rw - ext4 /dev/sda1 rw', '30 22 0:30 / /net rw shared:1 - nfs4 host:/x rw',
    '31 22 0:31 / /net/local\\040disk rw - xfs /dev/sdb rw', '32 22 0:32 / /ssh rw - fuse.sshfs host: rw',
    '33 22 0:33 / /usb rw - fuseblk /dev/sdc rw', '34 22 0:34 / /vm rw - 9p share rw'].join('\n');
  for (const [path, type] of [['/home/ann', null], ['/net', 'nfs4'], ['/net/home', 'nfs4'], ['/network', null],
    ['/net/local disk/home', null], ['/ssh/a', 'sshfs'], ['/usb/a', null], ['/vm', '9p']]) {
    assert.equal(networkOf(path, mounts), type, path);
  }
  assert.equal(networkOf('/home', ''), null);
  if (existsSync('/proc/self/mountinfo')) {
    const own = readFileSync('/proc/self/mountinfo', 'utf8');
    const proc = own.split('\n').find((line) => line.split(' ')[4] === '/proc');
    assert.equal(networkOf('/proc/self', proc.replace(/ - \S+ /, ' - nfs ')), 'nfs');
  }
});

// A browser's locks

/** @param {any} locks */
async function withLocks(locks, body) {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  Object.defineProperty(globalThis, 'navigator', { value: { locks }, configurable: true });
  try { return await body(); } finally {
    if (before) Object.defineProperty(globalThis, 'navigator', before);
    else delete globalThis.navigator;
  }
}

test('a browser that gives no locks is said, or asked again', () => {
  let asked = 0;
  const locks = {
    request: async (_name, _options, held) => {
      asked += 1;
      if (asked <= 2) throw new DOMException('no', 'InvalidStateError');
      return held({});
    },
    query: async () => { throw new DOMException('no', 'InvalidStateError'); },
  };
  return withLocks(locks, async () => {
    await assert.rejects(DatabaseFolder.open('x'), { code: 'storage', message: /the browser keeps no values: no/ });
    const lease = await new Promise((resolve) => {
      const one = new Lease('y', (isHeld) => { if (isHeld) setTimeout(() => resolve(one)); });
    });
    assert.equal(asked, 3);
    assert.equal(await lease.yields(), false);
    lease.release();
  });
});

test('a tab that is frozen gives the places of its streams back at once', async () => {
  let free = 1;
  const slots = new Slots(async () => {
    if (!free) return null;
    free -= 1;
    return () => { free += 1; };
  });
  const first = await slots.take();
  const later = globalThis.setTimeout;
  // No timer of a frozen tab runs.
  globalThis.setTimeout = /** @type {any} */ (() => 0);
  try {
    slots.freeze();
    first();
    assert.equal(free, 1);
  } finally { globalThis.setTimeout = later; }
});

// What an app reads

homeTest('what an app does to a date or bytes that it has read changes no value', async (device) => {
  const store = await device.openStore(identifier);
  store.set('a', { date: new Date(5), bytes: new Uint8Array([1]) });
  const before = JSON.stringify(store.exact('a'));
  store.get('a').date.setTime(6);
  store.get('a').bytes[0] = 2;
  assert.equal(JSON.stringify(store.exact('a')), before);
  store.set('b', real(0));
  for (const by of [real(1.25), 0.5, 2, 3n, real(1)]) store.increment('b', by);
  assert.equal(store.get('b'), 7.75);
  assert.throws(() => store.increment('b', /** @type {any} */ ('1')), { code: 'unsupported-value' });
});

tabTest('iterators of a status say what it is, and an error ends one reading only', async (openTab) => {
  const { store } = await openTab();
  const first = store.statuses();
  await first.next();
  await first.return();
  await until(() => store.status.isLeader);
  store.set('a', 1);
  const second = store.statuses();
  assert.deepEqual((await second.next()).value.pendingKeys, ['a']);
  const next = second.next();
  store.remove('a');
  await store.synchronize();
  await next;
  for (const feed of ['changes', 'statuses']) {
    assert.equal((await store[feed]({ signal: AbortSignal.abort() }).next()).done, true);
  }
  assert.equal((await store.valuesOf('a', { signal: AbortSignal.abort() }).next()).done, true);
  const values = store.valuesOf('a');
  const { value } = store.shell;
  store.shell.value = () => { throw new Error('not now'); };
  store.shell.app.heard();
  await assert.rejects(values.next(), /not now/);
  store.shell.value = value;
  assert.deepEqual(await values.next(), { done: false, value: undefined });
});

// The first sync

serverTest('the first sync is that of the account that is signed in', async (stage) => {
  const home = new Home();
  const { device, store } = await home.openTab(identifier);
  stage.open.add(device);
  const signIn = async (name) => device.signIn({ server: stage.server.url, code: await stage.server.code(name),
    deviceName: 'x', allowsPlainHTTP: true });
  await signIn('ann');
  await store.initialSync();
  await device.signOut();
  let isThere = false;
  const next = store.initialSync().then(() => {
    isThere = true;
    return store.status.account;
  });
  for (let turn = 0; turn < 20; turn += 1) await soon();
  assert.equal(isThere, false);
  await signIn('bob');
  assert.equal(await next, 'bob');
});

tabTest('who waits for the first sync is told that the device was revoked', (openTab, home) => served(
  (_request, response) => {
    response.writeHead(401, { 'Content-Type': 'application/problem+json' });
    response.end(JSON.stringify({ type: 'urn:ubiquity:problem:unauthorized', code: 'unauthorized', detail: 'revoked' }));
  }, async (server) => {
    home.account = account(server);
    const { store } = await openTab();
    await assert.rejects(store.initialSync(), { code: 'unauthorized', message: /revoked/ });
  }));
