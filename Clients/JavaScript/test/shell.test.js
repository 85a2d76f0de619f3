// SPDX-License-Identifier: Apache-2.0

/** The shell without a real server: disks, tabs, and servers that mean harm. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDevice, openStore } from '../src/node.js';
import { openDeviceIn } from '../src/device.js';
import { until } from './support/server.js';

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
  await assert.rejects(openStore({ home, identifier }), { code: 'open', message: /open in process/ });
  child.kill('SIGKILL');
  await ended;
  const store = await openStore({ home, identifier });
  assert.equal(store.get('a'), 1n << 60n);
  assert.deepEqual(store.get('b'), { c: [new Date(5)] });
  await store.close();
  assert.ok(!readdirSync(home).some((name) => name.startsWith('lock')));
});

folderTest('a closed store keeps no program running', async (home) => {
  const server = createServer(() => {}).listen(0);
  await once(server, 'listening');
  writeFileSync(join(home, 'account.json'), accountFile(`http://127.0.0.1:${server.address().port}`));
  const { ended } = await run(home, `
    store.set('a', 1);
    for await (const status of store.statuses()) if (status.connection === 'connecting') break;
    store.synchronizeNow().catch(() => {});
    await store.close();`);
  assert.deepEqual(await ended, [0, null]);
  server.closeAllConnections();
  server.close();
});

folderTest('a damaged file is named, and left as it is', async (home) => {
  const store = await openStore({ home, identifier });
  store.set('a', 1);
  await store.close();
  const folder = join(home, 'stores', '1');
  const [name] = readdirSync(folder);
  writeFileSync(join(folder, name), '{"format": 1, "rows"');
  await assert.rejects(openStore({ home, identifier }), { code: 'storage', message: /cannot be read/ });
  assert.equal(readFileSync(join(folder, name), 'utf8'), '{"format": 1, "rows"');
});

folderTest('a disk that refuses is said in the status, and tried again', async (home) => {
  const store = await openStore({ home, identifier });
  const { folder } = store.device;
  const write = folder.write.bind(folder);
  folder.write = async () => { throw new Error('no space'); };
  store.set('a', 1);
  assert.equal(await store.synchronize(), false);
  assert.match(store.status.explanation, /no space/);
  folder.write = write;
  await until(store, () => store.status.diskError === null);
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
  const state = { signedIn, folder: '1', lastFolder: 1, folders: [['a', '1']] };
  return JSON.stringify({ format: 1, rows: [['device', JSON.stringify(state)]] });
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
  folderTest(`a server that sends ${name} changes nothing`, async (home) => {
    const server = createServer(answer).listen(0);
    await once(server, 'listening');
    writeFileSync(join(home, 'account.json'), accountFile(`http://127.0.0.1:${server.address().port}`));
    const store = await openStore({ home, identifier });
    store.set('mine', 1);
    await until(store, () => store.status.lastError !== null);
    assert.deepEqual([...store.values()], [['mine', 1]]);
    assert.ok(store.status.lastError.length < 2_000);
    await store.close();
    server.closeAllConnections();
    server.close();
  });
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

/** A browser with tabs: rows, a channel and a lock that are shared in memory. */
class Browser {
  documents = new Map();
  tabs = new Set();
  queue = [];

  async openTab() {
    const browser = this;
    const listeners = new Set();
    const tab = {
      async read(document) { return new Map(browser.documents.get(document)); },
      async write(document, rows) {
        const all = new Map(browser.documents.get(document));
        for (const [name, text] of rows) {
          if (text === null) all.delete(name);
          else all.set(name, text);
        }
        browser.documents.set(document, all);
      },
      async removeAll(prefix) {
        for (const name of browser.documents.keys()) {
          if (name.startsWith(prefix)) browser.documents.delete(name);
        }
      },
      post(message) {
        const copy = structuredClone(message);
        for (const other of browser.tabs) if (other !== tab) setImmediate(() => other.receive(copy));
      },
      receive(message) { if (browser.tabs.has(tab)) for (const listener of listeners) listener(message); },
      onMessage(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      lead(_name, lead) {
        const request = { lead, tab };
        browser.queue.push(request);
        if (browser.queue.length === 1) setImmediate(lead);
        return () => browser.release(request);
      },
      async close() { browser.tabs.delete(tab); },
      async erase() {
        browser.documents.clear();
        await tab.close();
      },
      /** The tab is gone, without a word. */
      crash() {
        browser.tabs.delete(tab);
        for (const request of [...browser.queue]) if (request.tab === tab) browser.release(request);
      },
    };
    this.tabs.add(tab);
    const device = await openDeviceIn(tab);
    const store = await device.openStore(identifier);
    return { tab, device, store };
  }

  release(request) {
    const wasFirst = this.queue[0] === request;
    this.queue = this.queue.filter((one) => one !== request);
    if (wasFirst && this.queue.length) setImmediate(this.queue[0].lead);
  }
}

test('tabs share a store: one leads, and another one takes over', { timeout }, async () => {
  const browser = new Browser();
  const first = await browser.openTab();
  await until(first.store, () => first.store.status.isLeader);
  const second = await browser.openTab();
  assert.equal(second.store.status.isLeader, false);
  first.store.set('a', 1);
  await until(second.store, () => second.store.get('a') === 1);
  second.store.set('b', 2);
  second.store.increment('count', 5);
  assert.equal(second.store.get('b'), 2);
  assert.equal(await second.store.synchronize(), true);
  assert.equal(first.store.get('b'), 2);
  first.store.increment('count', 1);
  await until(second.store, () => second.store.get('count') === 6);
  // The leader goes without having heard of a write.
  browser.tabs.delete(first.tab);
  second.store.increment('count', 10);
  first.tab.crash();
  await until(second.store, () => second.store.status.isLeader);
  assert.equal(await second.store.synchronize(), true);
  assert.equal(second.store.get('count'), 16);
  const third = await browser.openTab();
  assert.deepEqual([...third.store.values()], [['a', 1], ['b', 2], ['count', 16]]);
  await first.store.close();
  for (const { device } of [second, third]) await device.close();
});

test('a store says what each key counts, and which write was the last', { timeout }, async () => {
  const { device, store } = await new Browser().openTab();
  await until(store, () => store.status.isLeader);
  store.batch(({ set }) => { set('text', 'é'); set('list', [1, true]); set('\u{1f600}', 0.5); set('\uffff', 1); });
  store.setConflictPolicy('count', 'counter');
  store.increment('count', 2);
  store.setConflictPolicy('tags', 'unionOfArrays');
  store.set('tags', ['a', 'b']);
  await store.synchronize();
  assert.deepEqual(store.keys(), ['count', 'list', 'tags', 'text', '\uffff', '\u{1f600}']);
  const sum = store.keys().reduce((all, key) => all + store.bytes(key), 0);
  assert.equal(sum, store.status.usage.bytes);
  assert.equal(store.bytes('none'), 0);
  assert.deepEqual(store.exact('count'), { integer: '2' });
  assert.equal(store.lastWrite('none'), null);
  assert.equal(store.lastWrite('text').deviceID, null);
  assert.ok(Math.abs(store.lastWrite('tags').date - Date.now()) < 600_000);
  await device.close();
});

test('a tab that follows is told when another one erases everything', { timeout }, async () => {
  const browser = new Browser();
  browser.documents.set('account', new Map(JSON.parse(accountFile('http://127.0.0.1:1')).rows));
  const first = await browser.openTab();
  await until(first.store, () => first.store.status.isLeader);
  // One of them leads next.
  const others = [await browser.openTab(), await browser.openTab()];
  const changes = others.map(({ store }) => store.changes());
  await first.device.erase();
  for (const [i, { device }] of others.entries()) {
    assert.equal((await changes[i].next()).value.reason, 'accountChange');
    assert.equal(device.account, null);
  }
  for (const { device } of others) await device.close();
});

test('a tab that has missed something reads the disk', { timeout }, async () => {
  const browser = new Browser();
  const [first, second] = [await browser.openTab(), await browser.openTab()];
  await until(first.store, () => first.store.status.isLeader);
  browser.tabs.delete(second.tab);
  first.store.set('missed', 1);
  first.store.set('gone', 1);
  await first.store.synchronize();
  browser.tabs.add(second.tab);
  first.store.set('b', 2);
  await until(second.store, () => second.store.get('b') === 2);
  assert.equal(second.store.get('missed'), 1);
  for (const { device } of [first, second]) await device.close();
});

test('what the leader has no room for is taken back in the tab that wrote it', { timeout }, async () => {
  const browser = new Browser();
  const [first, second] = [await browser.openTab(), await browser.openTab()];
  await until(first.store, () => first.store.status.isLeader);
  const changes = second.store.changes();
  first.store.set('a', 'x'.repeat(600_000));
  second.store.batch(({ set }) => { set('b', 'y'.repeat(600_000)); set('c', 1); });
  for await (const { reason, keys } of changes) {
    if (reason !== 'quotaViolation') continue;
    assert.deepEqual(keys, ['b', 'c']);
    break;
  }
  assert.equal(second.store.has('b'), false);
  assert.equal(second.store.has('c'), false);
  await until(second.store, () => second.store.has('a'));
  assert.equal(await second.store.synchronize(), true);
  for (const { device } of [first, second]) await device.close();
});

test('a write that the leader has counted is not counted again by the next one', { timeout }, async () => {
  const browser = new Browser();
  const [first, second] = [await browser.openTab(), await browser.openTab()];
  await until(first.store, () => first.store.status.isLeader);
  second.store.increment('count', 5);
  await until(first.store, () => first.store.get('count') === 5);
  assert.equal(await first.store.synchronize(), true);
  first.tab.crash();
  await until(second.store, () => second.store.status.isLeader);
  assert.equal(await second.store.synchronize(), true);
  assert.equal(second.store.get('count'), 5);
  await first.store.close();
  await second.device.close();
});
