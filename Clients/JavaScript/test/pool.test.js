// SPDX-License-Identifier: Apache-2.0

/** The streams of a device's stores; with a server that says what a test wants, and with a real one. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openDevice } from '../src/node.js';
import { Pool, Slots, Turns } from '../src/pool.js';
import { Browser, chromium, withBrowser } from './support/chromium.js';
import { Firefox, firefox } from './support/firefox.js';
import { passOn, served, serverTest } from './support/server.js';

const file = new URL('../src/engine.wasm', import.meta.url);
const skip = existsSync(file) ? false : '`make engine` was not run';
const module = skip ? undefined : new WebAssembly.Module(readFileSync(file));
const deadline = 300_000;
const names = (count) => Array.from({ length: count }, (_, index) => `TEAM.example.${index}`);

/** Waits for a condition, however long it takes. */
async function soon(isSo) {
  while (!await isSo()) await new Promise((resolve) => { setTimeout(resolve, 20); });
}

/** A server with streams only, which tells each store that it is ready. */
class Streams {
  /** @type {Set<{stores: string[], send(name: string, store: string, more?: object): void}>} */
  open = new Set();
  opened = 0;
  /** Of the client: the requests that it has not given up, and the most at once. */
  wanted = 0;
  most = 0;

  began() {
    this.wanted += 1;
    this.most = Math.max(this.most, this.wanted);
  }

  ended() { this.wanted -= 1; }

  answer = async (incoming, answer) => {
    const single = /^\/v1\/stores\/([^/]+)\/changes/.exec(incoming.url)?.[1];
    let text = '';
    for await (const more of incoming) text += more;
    const refusal = this.refusal?.(incoming);
    if (refusal) {
      answer.writeHead(refusal, { 'Content-Type': 'application/json' });
      answer.end(JSON.stringify({ type: 'urn:ubiquity:problem:x', status: refusal, detail: 'no' }));
      return;
    }
    answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const send = (name, store, more = {}) => answer.write(
      `event: ${name}\ndata: ${JSON.stringify({ ...(single ? {} : { store }), ...more })}\n\n`);
    const stores = single ? [single] : JSON.parse(text).stores.map(({ identifier }) => identifier);
    const stream = { stores, send };
    this.open.add(stream);
    this.opened += 1;
    answer.on('close', () => this.open.delete(stream));
    for (const store of stores) send('ready', store, { cursor: '1-1', config: {} });
  };

  /** The only stream of all of these stores, once they share one. */
  async shared(count) {
    await soon(() => this.open.size === 1 && [...this.open][0].stores.length === count);
    return [...this.open][0];
  }
}

/** A pool with a listener for each store, and what they hear. */
async function withPool(count, body, { slots = undefined, refusal = undefined } = {}) {
  const streams = new Streams();
  streams.refusal = refusal;
  await served(streams.answer, async (server) => {
    const pool = new Pool(/** @type {any} */ (module), slots);
    const heard = new Map();
    const listen = (store) => {
      heard.set(store, []);
      return pool.listen({ server, headers: { Accept: 'text/event-stream', Authorization: 'Bearer x' },
        stream: { store, since: '1-0', saved: true } }, (event) => heard.get(store).push(event));
    };
    const { fetch } = globalThis;
    globalThis.fetch = (url, options) => {
      streams.began();
      options?.signal?.addEventListener('abort', () => streams.ended());
      return fetch(url, options);
    };
    const hangUps = names(count).map(listen);
    try { await body({ streams, pool, heard, listen }); } finally {
      for (const hangUp of hangUps) hangUp();
      globalThis.fetch = fetch;
    }
  });
}

const poolTest = (name, count, body, options = {}) =>
  test(name, { skip, timeout: deadline }, () => withPool(count, body, options));
const last = (heard, store) => heard.get(store).at(-1);
const isReady = (heard) => (store) => heard.get(store).some(({ name }) => name === 'ready');

poolTest('what ends one store of a stream is nothing to the others', 4, async ({ streams, heard, listen }) => {
  const [a, b, c, d] = names(4);
  const stream = await streams.shared(4);
  stream.send('resync', a);
  stream.send('ended', b, { type: 'urn:ubiquity:problem:forbidden', status: 403, detail: 'not this store' });
  stream.send('ended', c, { type: 'urn:ubiquity:problem:busy', status: 503, retryAfterSeconds: 7 });
  stream.send('changes', d, { cursor: '1-2', records: [] });
  await soon(() => last(heard, d).name === 'changes');
  assert.equal(last(heard, a).name, 'resync');
  assert.equal(last(heard, b).status, 403);
  assert.match(new TextDecoder().decode(last(heard, b).body), /not this store/);
  assert.deepEqual([last(heard, c).status, last(heard, c).headers], [503, { 'Retry-After': '7' }]);
  listen(b);
  await soon(() => isReady(heard)(b));
  assert.ok(!heard.get(d).some(({ do: word }) => word === 'end' || word === 'fail'));
});

poolTest('stores wait for a place, and then share', 7, async ({ streams, heard }) => {
  await soon(() => names(7).every(isReady(heard)));
  await streams.shared(7);
  assert.equal(streams.most, 3);
}, { slots: slotsOf(3) });

poolTest('without a place, a store is told that there are too many streams', 2, async ({ streams, heard }) => {
  await soon(() => names(2).every((store) => heard.get(store).length));
  for (const store of names(2)) assert.equal(last(heard, store).why, 'tooManyStreams');
  assert.equal(streams.opened, 0);
}, { slots: slotsOf(0) });

poolTest('when the engine of the streams traps, all are told and another one begins', 3, async (stage) => {
  const { streams, pool, heard, listen } = stage;
  await streams.shared(3);
  const [first] = [...pool.accounts.values()];
  first.engine.handle = () => { throw new WebAssembly.RuntimeError('unreachable'); };
  [...streams.open][0].send('changes', names(1)[0], { cursor: '1-2', records: [] });
  await soon(() => names(3).every((store) => last(heard, store).do === 'fail'));
  await soon(() => streams.open.size === 0);
  const hangUps = names(3).map(listen);
  await streams.shared(3);
  for (const hangUp of hangUps) hangUp();
  await soon(() => streams.open.size === 0);
});

poolTest('what cannot be read ends its stream', 1, async ({ streams, heard, listen }) => {
  const [store] = names(1);
  await soon(() => isReady(heard)(store));
  [...streams.open][0].send('changes', store, { cursor: 5 });
  await soon(() => last(heard, store).do === 'fail');
  assert.match(last(heard, store).detail, /cannot be read: "cursor" has another type/);
  await soon(() => streams.open.size === 0);
  listen(store);
  await soon(() => isReady(heard)(store));
});

poolTest('a server of an earlier version has a stream for each store', 3, async ({ streams, heard }) => {
  await soon(() => names(3).every((store) => heard.get(store).filter(({ name }) => name === 'ready').length === 2));
  assert.equal(streams.posts, 1);
  assert.equal(streams.open.size, 3);
}, { refusal(incoming) {
  if (incoming.method !== 'POST') return null;
  this.posts = (this.posts ?? 0) + 1;
  return 404;
} });

/** Places without locks. */
function slotsOf(count) {
  let free = count;
  return new Slots(async () => {
    if (free === 0) return null;
    free -= 1;
    return () => { free += 1; };
  });
}

test('the stream of a store names the key that its device has, alone and with others', { skip, timeout: deadline }, async () => {
  /** @type {string[]} */
  const asked = [];
  await served(async (incoming, answer) => {
    let text = '';
    for await (const more of incoming) text += more;
    asked.push(text || incoming.url);
    answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const stores = text ? JSON.parse(text).stores.map(({ identifier }) => ({ store: identifier })) : [{}];
    for (const store of stores) answer.write(`event: ready\ndata: ${JSON.stringify({ ...store, cursor: '1-1', config: {} })}\n\n`);
  }, async (server) => {
    const pool = new Pool(/** @type {any} */ (module));
    const stops = ['T.a', 'T.b'].map((store) => pool.listen({ server, headers: { Accept: 'text/event-stream' },
      stream: { store, since: '1-0', saved: true, generation: 2 } }, () => {}));
    await soon(() => asked.some((one) => one.startsWith('{')));
    for (const stop of stops) stop();
  });
  assert.ok(asked.includes('/v1/stores/T.a/changes?since=1-0&generation=2'), asked.join());
  const { stores } = JSON.parse(/** @type {string} */ (asked.find((one) => one.startsWith('{'))));
  assert.deepEqual(stores.map(({ generation }) => generation), [2, 2]);
});

test('requests go a few at a time, in order', async () => {
  const turns = new Turns(2);
  const ends = [await turns.take(), await turns.take()];
  const order = [];
  const later = [1, 2].map((number) => turns.take().then((end) => {
    order.push(number);
    ends.push(end);
  }));
  ends.shift()();
  await later[0];
  assert.deepEqual(order, [1]);
  ends.shift()();
  await later[1];
  assert.deepEqual(order, [1, 2]);
});

serverTest('twelve stores of a device have two connections', async (stage) => {
  const sockets = new Set();
  let streams = 0;
  const pass = (incoming, answer) => {
    const { socket } = incoming;
    if (!sockets.has(socket)) socket.on('close', () => sockets.delete(socket));
    sockets.add(socket);
    if (incoming.headers.accept === 'text/event-stream') {
      streams += 1;
      answer.on('close', () => { streams -= 1; });
    }
    passOn(stage, incoming, answer);
  };
  await served(pass, async (server) => {
    const devices = [];
    for (const name of ['a', 'b']) {
      const device = await openDevice({ home: stage.home(name) });
      stage.open.add(device);
      await device.signIn({ server, code: await stage.server.code('ann'), deviceName: name });
      devices.push(device);
    }
    const [mine, others] = [devices[0], devices[1]];
    const stores = await Promise.all(names(12).map((one) => mine.openStore(one)));
    await Promise.all(stores.map((store) => store.synchronizeNow()));
    await soon(() => streams === 1 && stores.every(({ status }) => status.connection === 'connected'));
    await soon(() => sockets.size <= 2);
    for (const [index, one] of names(12).entries()) {
      const other = await others.openStore(one);
      other.set('a', index);
      await other.synchronizeNow();
      await other.close();
    }
    await soon(() => stores.every((store, index) => store.get('a') === index));
    await soon(() => streams === 1 && sockets.size <= 2);
    for (const device of devices) await device.close();
    await soon(() => streams === 0);
  });
}, skip);

serverTest('a store without a stream asks now and then', async (stage) => {
  const device = await openDevice({ home: stage.home('a') });
  stage.open.add(device);
  device.pool = new Pool(/** @type {any} */ (module), slotsOf(0));
  await device.signIn({ server: stage.server.url, code: await stage.server.code('ann'), deviceName: 'a' });
  const store = await device.openStore(names(1)[0]);
  await soon(() => store.status.connection === 'polling');
  store.set('a', 1);
  await store.synchronizeNow();
  assert.deepEqual(store.status.pendingKeys, []);
}, skip);

const begin = (identifiers) => `
  const { openDevice } = await import('/src/browser.js');
  window.device = await openDevice();
  window.signIn = (code) => device.signIn({ server: location.origin, code, deviceName: 'browser' });
  window.stores = [];
  window.open = async () => {
    stores.push(...await Promise.all(${JSON.stringify(identifiers)}.map((one) => device.openStore(one))));
    await Promise.all(stores.map((store) => store.synchronizeNow()));
  };`;
const states = (tab) => tab.run('return stores.map(({ status }) => status.connection)');

const name = 'seven stores of a tab, and stores of more tabs, leave connections for requests';
serverTest(name, (stage) => withBrowser(stage, leavesConnections(stage)),
  skip || (chromium ? false : 'there is no Chromium'));
serverTest(`${name}, in Firefox`, (stage) => withBrowser(stage, leavesConnections(stage), undefined, Firefox),
  skip || (firefox ? false : 'there is no Firefox'));

/** @returns {(browser: Browser | Firefox) => Promise<void>} */
function leavesConnections(stage) {
  return async (browser) => {
    const tab = await browser.tab();
    await tab.run(begin(names(7)));
    await tab.run(`await signIn(${JSON.stringify(await stage.server.code('ann'))}); await open();`);
    assert.equal(await tab.run('return (await device.devices()).length'), 1);
    await soon(async () => (await states(tab)).every((state) => state === 'connected'));
    const places = () => tab.run(`return (await navigator.locks.query()).held
      .filter(({ name }) => / stream \\d$/.test(name)).length`);
    await soon(async () => await places() === 1);

    const tabs = [];
    for (const identifier of ['other.1', 'other.2', 'other.3']) {
      const another = await browser.tab();
      await another.run(begin([identifier]));
      await another.run('await open();');
      tabs.push(another);
    }
    await soon(async () => (await Promise.all(tabs.map(states))).flat().sort().join() === 'connected,connected,polling');
    assert.equal(await places(), 3);
    for (const one of [tab, ...tabs]) assert.equal(await one.run('return (await device.devices()).length'), 1);
    for (const [index, one] of tabs.entries()) await one.run(`stores[0].set('a', ${index}); await stores[0].synchronizeNow();`);
    const node = await openDevice({ home: stage.home('node') });
    stage.open.add(node);
    await node.signIn({ server: stage.server.url, code: await stage.server.code('ann'), deviceName: 'node' });
    for (const [index, identifier] of ['other.1', 'other.2', 'other.3'].entries()) {
      const store = await node.openStore(identifier);
      await store.synchronizeNow();
      assert.equal(store.get('a'), index);
      store.set('a', `${index} again`);
      await store.synchronizeNow();
    }
    for (const [index, one] of tabs.entries()) {
      await soon(() => one.run(`return stores[0].get('a') === '${index} again'`));
    }
  };
}
