// SPDX-License-Identifier: Apache-2.0

/** The shell without a real server: disks, tabs, and servers that mean harm. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDevice, openStore } from '../src/node.js';
import { openDeviceIn } from '../src/device.js';
import { applyRows } from '../src/entries.js';
import { defaultLimits } from '../src/limits.js';
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
  await assert.rejects(openStore({ home, identifier }), { code: 'open', message: /open in process/ });
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
  ['damaged file', '{"format": 1, "rows"', /cannot be read/],
  ['file of another format', '{"format": 2, "rows": []}', /its format is 2, .*: a newer version wrote it/],
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
  const { folder } = store.device;
  const write = folder.write.bind(folder);
  folder.write = async () => { throw new Error('no space'); };
  store.set('a', 1);
  return { store, makeRoom: () => { folder.write = write; } };
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

/** A browser with tabs: rows, a channel and a lock that are shared in memory. */
class Browser {
  documents = new Map();
  tabs = new Set();
  queue = [];
  /** How many turns a disk access takes. */
  turns = 0;

  async wait() { for (let turn = 0; turn < this.turns; turn += 1) await new Promise(setImmediate); }

  async openTab() {
    const browser = this;
    const listeners = new Set();
    const tab = {
      isErased: false,
      async read(document) {
        if (tab.isErased) throw new Error('all is erased');
        const rows = new Map(browser.documents.get(document));
        await browser.wait();
        return rows;
      },
      async write(document, rows) {
        if (tab.isErased) throw new Error('all is erased');
        await browser.wait();
        const all = new Map(browser.documents.get(document));
        applyRows(all, rows);
        browser.documents.set(document, all);
      },
      async readAccount() { return JSON.parse((await tab.read('account')).get('device') ?? 'null'); },
      async changeAccount(change) {
        const state = change(await tab.readAccount());
        await tab.write('account', new Map([['device', JSON.stringify(state)]]));
        return state;
      },
      async removeUnowned(owned) {
        const folders = owned(await tab.readAccount());
        for (const name of browser.documents.keys()) {
          const [folder, isStore] = name.split('/');
          if (isStore && !folders.has(folder)) await tab.removeAll(`${folder}/`);
        }
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
        // They hear of it after all messages before.
        for (const other of browser.tabs) setImmediate(() => { other.isErased = true; });
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

test('what a removal of values left when it was cut off is removed at the next start', { timeout }, async () => {
  const browser = new Browser();
  const rows = new Map(JSON.parse(accountFile('http://127.0.0.1:1')).rows);
  const state = { ...JSON.parse(rows.get('device')), folders: { a: '1', b: '2' } };
  const names = () => [...browser.documents.keys()].filter((name) => name.includes('/')).sort();
  for (const [end, left] of [['erase', []], ['signOut', [`2/${identifier}`]]]) {
    browser.documents = new Map([['account', new Map([['device', JSON.stringify(state)]])],
      ...['1', '2'].map((folder) => [`${folder}/${identifier}`, new Map()])]);
    const { tab, device, store } = await browser.openTab();
    await until(store, () => store.status.isLeader);
    store.set('secret', 1);
    await store.synchronize();
    // The tab is closed as soon as nobody is signed in.
    await new Promise((resolve) => {
      tab.removeAll = tab.erase = () => {
        resolve(undefined);
        return new Promise(() => {});
      };
      device[end]({ wipes: true });
    });
    tab.crash();
    assert.ok(names().includes(`1/${identifier}`));
    // What an account has that nobody has removed stays.
    const next = await browser.openTab();
    assert.equal(next.device.account, null);
    assert.deepEqual(next.store.keys(), []);
    await next.store.synchronize();
    assert.deepEqual(names().filter((name) => /^\d\//.test(name)), left);
    await next.device.close();
  }
});

test('after an erasure nothing is saved, and nothing waits', { timeout }, async () => {
  const browser = new Browser();
  const [first, second, third] = [await browser.openTab(), await browser.openTab(), await browser.openTab()];
  await until(first.store, () => first.store.status.isLeader);
  first.store.set('a', 1);
  await until(third.store, () => third.store.get('a') === 1);
  await second.device.erase();
  while (!first.tab.isErased || !third.tab.isErased) await new Promise(setImmediate);
  for (const { store } of [third, first]) {
    store.set('b', 2);
    assert.equal(await store.synchronize(), false);
    assert.equal(store.get('b'), 2);
  }
  assert.equal(browser.documents.size, 0);
  for (const { device } of [first, third]) await device.close();
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

/** A server with one key, `k`, and a browser that is signed in to it. */
async function signedInBrowser(body) {
  const page = { k: 0, pushed: new Set(), credentials: new Map() };
  const news = () => ({ records: [{ ...record, value: { integer: String(page.k) },
    milliseconds: String(1_800_000_000_000 + page.k) }], cursor: `1-${page.k}`,
  serverMilliseconds: String(Date.now()) });
  const limits = Object.fromEntries(Object.entries(defaultLimits).map(([name, max]) => [name, String(max)]));
  const config = { serverMilliseconds: String(Date.now()), limits, keepAliveSeconds: '20',
    allowance: { burst: '600', perSecond: 20 } };
  const streams = new Set();
  const say = (response, name, data) => response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  const answer = async (request, response) => {
    if (request.headers.accept === 'text/event-stream') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      if (page.endsStreams) return response.end();
      say(response, 'changes', { ...news(), whole: true });
      say(response, 'ready', { cursor: `1-${page.k}`, config });
      streams.add(response);
      response.on('close', () => streams.delete(response));
    } else if (request.url.endsWith('/sign-in')) {
      response.end(JSON.stringify({ account: 'b', accountName: 'bob', device: '3'.repeat(16), credential: 'ubd_y' }));
    } else if (request.method === 'POST') {
      let text = '';
      for await (const more of request) text += more;
      const { transactions } = JSON.parse(text);
      for (const { key } of transactions.flatMap(({ writes }) => writes)) {
        page.pushed.add(key);
        page.credentials.set(key, request.headers.authorization);
      }
      const results = transactions.map(({ writes }) =>
        ({ committed: { writes: writes.map(() => ({ applied: true })) } }));
      response.end(JSON.stringify({ ...news(), results }));
    } else {
      for (const one of streams) say(one, 'changes', news());
      response.end(JSON.stringify(request.url.includes('/config') ? config
        : { ...news(), records: page.endsStreams ? news().records : [], whole: !!page.endsStreams }));
    }
    return undefined;
  };
  await served(answer, (address) => {
    const browser = new Browser();
    browser.documents.set('account', new Map(JSON.parse(accountFile(address)).rows));
    return body(browser, page);
  });
}

/** Three tabs: one that leads and hears no more, the one that leads next, and another one. */
async function threeTabs(browser) {
  const tabs = [await browser.openTab(), await browser.openTab(), await browser.openTab()];
  await until(tabs[0].store, () => tabs[0].store.status.isLeader);
  await tabs[0].store.synchronize();
  await new Promise(setImmediate);
  return tabs;
}

test('a tab that follows has what it waited for', { timeout }, () => signedInBrowser(async (browser, page) => {
  browser.turns = 10;
  page.k = 1;
  const [first, second] = [await browser.openTab(), await browser.openTab()];
  await second.store.initialSync();
  assert.equal(second.store.get('k'), 1);
  page.k = 2;
  await second.store.synchronizeNow();
  assert.equal(second.store.get('k'), 2);
  for (const { device } of [second, first]) await device.close();
}));

test('what is written before another account is here goes to the account before', { timeout }, () =>
  signedInBrowser(async (browser, page) => {
    const { tab, store, device } = await browser.openTab();
    await store.initialSync();
    const { read } = tab;
    tab.read = async (document) => {
      // The device has the other account, and the store not yet.
      if (![`1/${identifier}`, 'account'].includes(document) && !page.pushed.has('late')) {
        store.set('late', 1);
        await store.synchronizeNow();
      }
      return read(document);
    };
    await device.signIn({ server: device.account.server, code: 'c', allowsPlainHTTP: true });
    assert.equal(page.credentials.get('late'), 'Bearer ubd_x');
    assert.equal(store.get('late'), undefined);
    store.set('new', 1);
    await store.synchronizeNow();
    assert.equal(page.credentials.get('new'), 'Bearer ubd_y');
    await device.close();
  }));

test('a store that is being opened while the account changes is of the new one', { timeout }, () =>
  signedInBrowser(async (browser, page) => {
    const { store: old, device } = await browser.openTab();
    await old.close();
    browser.turns = 20;
    const opening = device.openStore(identifier);
    await device.signIn({ server: device.account.server, code: 'c', allowsPlainHTTP: true });
    const store = await opening;
    store.set('new', 1);
    await store.synchronizeNow();
    assert.equal(page.credentials.get('new'), 'Bearer ubd_y');
    assert.ok(browser.documents.has(device.documentOf(identifier)));
    assert.notEqual(device.state.folder, '1');
    await device.close();
  }));

test('who waits for a round trip gets it though streams end before they are ready', { timeout }, () =>
  signedInBrowser(async (browser, page) => {
    page.endsStreams = true;
    page.k = 1;
    const { store, device } = await browser.openTab();
    await store.synchronizeNow();
    assert.equal(store.get('k'), 1);
    await device.close();
  }));

test('who waits for a round trip when the leader goes gets it', { timeout }, () =>
  signedInBrowser(async (browser, page) => {
    const [first, second] = [await browser.openTab(), await browser.openTab()];
    await second.store.initialSync();
    browser.tabs.delete(first.tab);
    page.k = 1;
    const done = second.store.synchronizeNow();
    first.tab.crash();
    await done;
    assert.equal(second.store.get('k'), 1);
    await first.store.close();
    await second.device.close();
  }));

test('what a leader never heard of comes before what its successor hears', { timeout }, () =>
  signedInBrowser(async (browser, page) => {
    const [first, second, third] = await threeTabs(browser);
    browser.tabs.delete(first.tab);
    third.store.set('one', 1);
    first.tab.crash();
    await until(second.store, () => second.store.status.isLeader);
    // It does not know the new leader yet.
    third.store.set('two', 2);
    await third.store.synchronizeNow();
    assert.deepEqual([second.store.get('one'), second.store.get('two')], [1, 2]);
    assert.deepEqual(page.pushed, new Set(['one', 'two']));
    assert.equal(await third.store.synchronize(), true);
    await first.store.close();
    for (const { device } of [second, third]) await device.close();
  }));

test('what was written before a refused write is not lost with the leader', { timeout }, async () => {
  const browser = new Browser();
  const [first, second, third] = await threeTabs(browser);
  first.tab.write = () => new Promise(() => {});
  const changes = third.store.changes();
  first.store.set('large', 'x'.repeat(600_000));
  third.store.set('one', 1);
  third.store.set('two', 'y'.repeat(600_000));
  for await (const { reason } of changes) if (reason === 'quotaViolation') break;
  first.tab.crash();
  await until(second.store, () => second.store.status.isLeader);
  third.store.set('three', 3);
  assert.equal(await third.store.synchronize(), true);
  assert.deepEqual([...second.store.values()], [['one', 1], ['three', 3]]);
  for (const { device } of [second, third]) await device.close();
});

/** Holds the next reading of a document, as one that takes long. Returns what lets it go on. */
function holdRead(tab, document) {
  const { read } = tab;
  return new Promise((held) => {
    tab.read = async (name) => {
      const rows = await read(name);
      if (name !== document) return rows;
      tab.read = read;
      await new Promise((resolve) => { held(() => { resolve(undefined); }); });
      return rows;
    };
  });
}

for (const account of ['the old', 'the new']) {
  test(`who begins to lead while ${account} account is read, leads the new one`, { timeout }, async () => {
    const browser = new Browser();
    const [first, second] = [await browser.openTab(), await browser.openTab()];
    await until(first.store, () => first.store.status.isLeader);
    await first.store.synchronize();
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    browser.tabs.delete(first.tab);
    second.store.set('of the old account', 1);
    const isNew = account === 'the new';
    const held = holdRead(second.tab, isNew ? `2/${identifier}` : `1/${identifier}`);
    const change = () => {
      const state = { signedIn: null, folder: '2', folders: { a: '1' } };
      browser.documents.set('account', new Map([['device', JSON.stringify(state)]]));
      second.tab.receive('account');
    };
    const crash = () => first.tab.crash();
    for (const step of isNew ? [change, crash] : [crash, change]) {
      step();
      // The first step is under way, and the second one is over.
      const goOn = await held;
      if (step !== (isNew ? crash : change)) continue;
      if (isNew) await until(second.store, () => second.store.status.isLeader);
      else await until(second.store, () => second.store.document === `2/${identifier}`);
      goOn();
    }
    await until(second.store, () => second.store.status.isLeader);
    second.store.set('of the new account', 2);
    assert.equal(await second.store.synchronize(), true);
    assert.deepEqual([...second.store.values()], [['of the new account', 2]]);
    const rows = (folder) => [...browser.documents.get(`${folder}/${identifier}`)?.keys() ?? []].join();
    assert.match(rows(2), /of the new account/);
    assert.doesNotMatch(rows(2), /of the old account/);
    assert.doesNotMatch(rows(1), /of the new account/);
    await second.device.close();
  });
}

test('a part that nobody else can know of leaves no deletion behind', { timeout }, async () => {
  const { tab, device, store } = await new Browser().openTab();
  await until(store, () => store.status.isLeader);
  const { entries } = store.engine;
  const sizeAfter = (key, ...values) => {
    for (const value of values) store.set(key, value);
    assert.deepEqual(store.get(key), values.at(-1));
    return [...entries.all.values()].filter((entry) => entry.key === key).length;
  };
  store.setConflictPolicy('custom', 'custom');
  store.setConflictPolicy('list', 'unionOfArrays');
  store.setConflictPolicy('dictionary', 'unionOfDictionaries');
  assert.equal(sizeAfter('custom', 'a', 'b', 'c'), 1);
  // With the key itself, which is empty.
  assert.equal(sizeAfter('list', ['a'], ['b'], ['c']), 2);
  // Others may have written the same entry.
  assert.equal(sizeAfter('dictionary', { a: 1 }, { b: 1 }), 3);
  const { write } = tab;
  let goOn;
  tab.write = async (...all) => {
    await new Promise((resolve) => { goOn = resolve; });
    await write(...all);
  };
  await Promise.resolve();
  assert.ok(goOn, 'a save is under way');
  assert.equal(sizeAfter('custom', 'd', 'e'), 2);
  tab.write = write;
  goOn();
  assert.equal(await store.synchronize(), true);
  assert.equal(sizeAfter('custom', 'f', 'g'), 3);
  await device.close();
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
