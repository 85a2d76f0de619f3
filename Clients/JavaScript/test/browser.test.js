// SPDX-License-Identifier: Apache-2.0

/** The client in a browser: IndexedDB, Web Locks, BroadcastChannel. Skipped where there is no Chromium. */

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { served, serverTest, until } from './support/server.js';

const sources = fileURLToPath(new URL('..', import.meta.url));
const browser = ['chromium', 'chromium-browser', 'google-chrome'].find((name) => {
  try { return execFileSync('which', [name], { stdio: ['ignore', 'pipe', 'ignore'] }); } catch { return false; }
});

const page = `<!doctype html><script type="module">
const tab = async () => {
  const frame = document.createElement('iframe');
  frame.src = '/tab';
  document.body.append(frame);
  await new Promise((resolve) => { addEventListener('message', resolve, { once: true }); });
  return { frame, store: frame.contentWindow.store, real: frame.contentWindow.real };
};
const until = async (store, isSo) => {
  for await (const _ of (async function* () {
    yield 0;
    yield* store.changes();
  })()) if (isSo()) return;
};
const leads = async (store) => { for await (const { isLeader } of store.statuses()) if (isLeader) return; };
const log = [];
try {
  const a = await tab();
  await leads(a.store);
  const b = await tab();
  log.push(b.store.status.isLeader);
  const { code } = await (await fetch('/code')).json();
  await a.store.device.signIn({ server: location.origin, code, deviceName: 'browser' });
  await b.store.initialSync();
  for await (const { account } of b.store.statuses()) if (account) break;
  log.push(b.store.status.account);
  a.store.set('a', [1n << 60n, a.real(1)]);
  await until(b.store, () => b.store.has('a'));
  b.store.batch(({ set }) => { set('b', new Uint8Array([1, 2])); set('b2', -0); });
  await b.store.synchronizeNow();
  await until(b.store, () => b.store.get('from node') === 'hello');
  log.push(a.store.get('from node'));
  a.frame.remove();
  await leads(b.store);
  b.store.set('c', 'after the leader');
  await b.store.synchronizeNow();
  const again = await tab();
  log.push(again.store.keys().join());
  log.push(String(again.store.get('a')[0]), Object.is(again.store.get('b2'), -0));
} catch (error) { log.push(String(error?.stack ?? error)); }
await fetch('/result', { method: 'POST', body: JSON.stringify(log) });
</script>`;

const tab = `<!doctype html><script type="module">
import { openStore, real } from '/src/browser.js';
window.real = real;
window.store = await openStore({ identifier: 'TEAM.example.js' });
parent.postMessage('open', '*');
</script>`;

serverTest('tabs of a browser share a store with a device of Node', async (stage) => {
  const html = { 'Content-Type': 'text/html' };
  let finish;
  const result = new Promise((resolve) => { finish = resolve; });
  const reply = async (incoming, answer) => {
    const path = new URL(incoming.url, 'http://a').pathname;
    if (path === '/') answer.writeHead(200, html).end(page);
    else if (path === '/tab') answer.writeHead(200, html).end(tab);
    else if (path === '/code') answer.end(JSON.stringify({ code: await stage.server.code('ann') }));
    else if (path.startsWith('/src/')) {
      answer.writeHead(200, { 'Content-Type': 'text/javascript' }).end(readFileSync(join(sources, path)));
    } else if (path === '/result') {
      let text = '';
      for await (const more of incoming) text += more;
      answer.end();
      finish(JSON.parse(text));
    } else if (path.startsWith('/v1/')) {
      // The same origin, so that no server has to allow another one.
      const { host, ...headers } = incoming.headers;
      const passed = request(`${stage.server.url}${incoming.url}`, { method: incoming.method, headers },
        (response) => {
          answer.writeHead(response.statusCode, response.headers);
          response.pipe(answer);
        });
      passed.on('error', () => answer.destroy());
      answer.on('close', () => passed.destroy());
      incoming.pipe(passed);
    } else answer.writeHead(404).end();
  };
  const node = await stage.signedIn('node');
  await served(reply, async (address) => {
    const child = spawn(browser, ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
      `--user-data-dir=${stage.home('browser')}`, `${address}/`], { stdio: 'ignore' });
    try {
      const early = await Promise.race([until(node, () => node.has('b')), result]);
      assert.equal(early, undefined);
      assert.deepEqual(node.get('b'), new Uint8Array([1, 2]));
      node.set('from node', 'hello');
      assert.deepEqual(await result, [false, 'ann', 'hello', 'a,b,b2,c,from node', String(1n << 60n), true]);
      await node.synchronizeNow();
      assert.equal(node.get('c'), 'after the leader');
    } finally {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
  });
}, browser ? false : 'there is no Chromium');
