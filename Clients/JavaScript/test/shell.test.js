// SPDX-License-Identifier: Apache-2.0

/** The shell in Node, without a real server: its disk, and servers that mean harm. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDevice, openStore } from '../src/node.js';
import { served, until } from './support/server.js';

const identifier = 'T.example';
const timeout = 300_000;

function folderTest(name, body) {
  test(name, { timeout }, async () => {
    const home = mkdtempSync(join(tmpdir(), 'ubiquity-js-'));
    try { await body(home); } finally { rmSync(home, { recursive: true, force: true }); }
  });
}

/** Runs a module in another process, until it ends or prints a line. */
async function run(home, code) {
  const source = `import { openStore } from ${JSON.stringify(new URL('../src/node.js', import.meta.url).href)};
    const store = await openStore({ home: ${JSON.stringify(home)}, identifier: '${identifier}' });
    ${code}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source],
    { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  return { child, ended, line: once(child.stdout, 'data').then(([data]) => String(data).trim(), () => '') };
}

folderTest('what is saved survives kill -9, and the lock of a killed process does not count', async (home) => {
  const { child, ended, line } = await run(home, `
    store.batch(({ set }) => { set('a', 1n << 60n); set('b', { c: [new Date(5)] }); });
    console.log(await store.synchronize());
    setInterval(() => store.set('later', Math.random()), 1);`);
  assert.equal(await line, 'true');
  await assert.rejects(openStore({ home, identifier }), { code: 'open', message: /is open/ });
  child.kill('SIGKILL');
  await ended;
  const store = await openStore({ home, identifier });
  assert.equal(store.get('a'), 1n << 60n);
  assert.deepEqual(store.get('b'), { c: [new Date(5)] });
  await store.close();
  assert.ok(!readdirSync(home).some((name) => name.startsWith('lock')));
});

folderTest('a closed store keeps no program running', (home) => served(() => {}, async (address) => {
  writeFileSync(join(home, 'account.json'), accountFile(address));
  const { ended } = await run(home, `
    store.set('a', 1);
    for await (const status of store.statuses()) if (status.connection === 'connecting') break;
    store.synchronizeNow().catch(() => {});
    await store.close();`);
  assert.deepEqual(await ended, [0, null]);
}));

for (const [what, text, message] of [
  ['damaged file', '{"format":2}\n[["version"\n[["version","2"]]\n', /cannot be read/],
  ['file of a newer format', '{"format":3}\n', /its format is 3, .*: a newer version wrote it/],
]) {
  folderTest(`a ${what} is named, and left as it is`, async (home) => {
    const store = await openStore({ home, identifier });
    store.set('a', 1);
    await store.close();
    const folder = join(home, 'stores', '1');
    const [name] = readdirSync(folder);
    writeFileSync(join(folder, name), text);
    await assert.rejects(openStore({ home, identifier }), { code: 'storage', message });
    assert.equal(readFileSync(join(folder, name), 'utf8'), text);
  });
}

/** A store with a value that its disk refuses to save, until room is made. */
async function storeOnFullDisk(home) {
  const store = await openStore({ home, identifier });
  const [journal] = store.device.folder.journals.values();
  journal.write = async () => { throw new Error('no space'); };
  store.set('a', 1);
  return { store, makeRoom: () => { delete journal.write; } };
}

folderTest('a disk that refuses is said in the status, and tried again', async (home) => {
  const { store, makeRoom } = await storeOnFullDisk(home);
  assert.equal(await store.synchronize(), false);
  assert.match(store.status.explanation, /no space/);
  makeRoom();
  await until(store, () => store.status.diskError === null);
  assert.equal(await store.synchronize(), true);
  await store.close();
});

folderTest('synchronize tries a disk again that refused a save', async (home) => {
  const { store, makeRoom } = await storeOnFullDisk(home);
  assert.equal(await store.synchronize(), false);
  assert.equal(await store.synchronize(), false);
  makeRoom();
  assert.equal(await store.synchronize(), true);
  await store.close();
});

folderTest('bad keys and values are refused before anything is stored', async (home) => {
  const store = await openStore({ home, identifier });
  const cycle = [];
  cycle.push(cycle);
  let deep = 1;
  for (let level = 1; level < 512; level += 1) deep = [deep];
  for (const bad of [Symbol('a'), () => 1, [undefined], { a: null }, new Map(), new Date(NaN), cycle,
    [deep], '\ud800', { '\ud800': 1 }, 2n ** 64n, -(2n ** 63n) - 1n, new URL('http://a')]) {
    assert.throws(() => store.set('a', bad), { code: 'unsupported-value' });
  }
  for (const bad of ['', 1, null, '\udfff']) assert.throws(() => store.set(bad, 1), { code: 'key' });
  assert.deepEqual(store.keys(), []);
  store.set('deep', deep);
  assert.deepEqual(store.get('deep'), deep);
  for (const key of ['__proto__', 'constructor', 'toString', '\0', 'e\u0301', '\u00e9']) {
    assert.equal(store.get(key), undefined);
    store.set(key, { [key]: key });
    assert.equal(Object.hasOwn(store.get(key), key), true);
  }
  assert.equal(Object.getPrototypeOf(store.get('__proto__')), Object.prototype);
  assert.throws(() => store.batch(async () => {}), { code: 'batch' });
  await store.close();
  assert.throws(() => store.set('a', 1), { code: 'closed' });
  const again = await openStore({ home, identifier });
  assert.equal(again.keys().length, 7);
  await again.close();
});

function accountFile(server) {
  const signedIn = { server, account: 'a', accountName: 'ann', device: '1'.repeat(16), deviceName: 'x',
    credential: 'ubd_x' };
  const state = { signedIn, folder: '1', folders: { a: '1' } };
  return JSON.stringify({ format: 2, device: state });
}

const record = { key: 'k', value: { integer: '1' }, milliseconds: '1800000000000', device: '2'.repeat(16) };
const changes = (more) => `event: changes\ndata: ${JSON.stringify({
  records: [record], cursor: '1-1', serverMilliseconds: String(Date.now()), whole: true, ...more })}\n\n`;
const stream = (text) => (_request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response.write(text);
};
const endless = (piece) => (_request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const more = () => { while (response.write(piece)); };
  response.on('drain', more);
  more();
};

const hostile = {
  'what is no event stream': (_request, response) => response.end('{}'),
  'an event that is no JSON': stream('event: changes\ndata: {"records": [\n\n'),
  'records of wrong types': stream(changes({ records: [{ ...record, value: { integer: 'x' } }] })),
  'a record without an author': stream(changes({ records: [{ ...record, device: '' }] })),
  'a negative time': stream(changes({ records: [{ ...record, milliseconds: '-1' }] })),
  'a null record': stream(changes({ records: [null] })),
  'a cursor with a line end': stream(changes({ cursor: '1\n2' })),
  'too many keys': stream(changes({ records: Array.from({ length: 70_000 }, (_, i) =>
    ({ ...record, key: `k${i}` })) })),
  'nesting without end': stream(`event: changes\ndata: {"cursor": "1", "records": ${'['.repeat(3_000_000)}\n\n`),
  'a value that is too deep': stream(changes({ records: [{ ...record, value:
    JSON.parse(`${'{"array":{"values":['.repeat(600)}${']}}'.repeat(600)}`) }] })),
  'base64 that pads in the middle': stream(changes({ records: [{ ...record, value:
    { data: `${'='.repeat(1_000_000)}x` } }] })),
  'a real of a million digits': stream(changes({ records: [{ ...record, value:
    { real: `${'1'.repeat(1_000_000)}x` } }] })),
  'a real of too many digits': stream(changes({ records: [{ ...record, value:
    { real: '0'.repeat(3_000) } }] })),
  'a line without end': endless('x'.repeat(65_536)),
  'events without end': endless(`data: ${'x'.repeat(65_536)}\n`),
  'bytes that are no text': stream(Buffer.from([0x64, 0xff, 0xfe, 0x0a])),
  'a redirect': (_request, response) => {
    response.writeHead(302, { Location: 'http://127.0.0.1:1/' });
    response.end();
  },
  'an error of a megabyte': (_request, response) => {
    response.writeHead(500, { 'Content-Type': 'application/problem+json' });
    response.end(`{"detail": "${'x'.repeat(2 ** 20)}"}`);
  },
};

for (const [name, answer] of Object.entries(hostile)) {
  folderTest(`a server that sends ${name} changes nothing`, (home) => served(answer, async (address) => {
    writeFileSync(join(home, 'account.json'), accountFile(address));
    const store = await openStore({ home, identifier });
    store.set('mine', 1);
    await until(store, () => store.status.lastError !== null);
    assert.deepEqual([...store.values()], [['mine', 1]]);
    assert.ok(store.status.lastError.length < 2_000);
    await store.close();
  }));
}

test('a credential goes to no other machine over plain HTTP', async () => {
  const home = mkdtempSync(join(tmpdir(), 'ubiquity-js-'));
  const device = await openDevice({ home });
  for (const server of ['http://example.com', 'http://localhost.example.com', 'ftp://127.0.0.1',
    'http://user:x@127.0.0.1', 'http://127.0.0.1/?a', 'example.com']) {
    await assert.rejects(device.signIn({ server, code: 'x' }), { code: 'address' }, server);
  }
  await device.close();
  rmSync(home, { recursive: true });
});

test('a link with the server\'s key is refused, for the platform cannot check that', async () => {
  const home = mkdtempSync(join(tmpdir(), 'ubiquity-js-'));
  const device = await openDevice({ home });
  const code = `CODE-1234-ABCD;sha256//${'A'.repeat(43)}=`;
  await assert.rejects(device.signIn({ server: 'https://127.0.0.1:1', code }), { code: 'refused', message: /key/ });
  await device.close();
  rmSync(home, { recursive: true });
});

folderTest('a device that asks for long whether it is approved listens to nothing twice', async (home) => {
  let polls = 0;
  const answer = (request, response) => {
    if (request.url.endsWith('sign-in-requests')) {
      response.end(JSON.stringify({ userCode: 'X', request: 'y', intervalSeconds: 1 }));
      return;
    }
    polls += 1;
    if (polls === 15) stop.abort();
    response.writeHead(409, { 'Content-Type': 'application/problem+json' });
    response.end('{"code": "sign-in-pending", "detail": "wait"}');
  };
  const [stop, warnings, later] = [new AbortController(), [], globalThis.setTimeout];
  const warn = (warning) => warnings.push(warning.name);
  process.on('warning', warn);
  // The pauses between polls pass at once.
  globalThis.setTimeout = /** @type {any} */ ((body, pause) => later(body, pause === 1_000 ? 0 : pause));
  const device = await openDevice({ home });
  try {
    await served(answer, async (server) => {
      const { account } = await device.requestSignIn({ server });
      await assert.rejects(account({ signal: stop.signal }));
    });
    assert.equal(polls, 15);
    assert.deepEqual(warnings, []);
  } finally {
    globalThis.setTimeout = later;
    process.off('warning', warn);
    await device.close();
  }
});
