// SPDX-License-Identifier: Apache-2.0

/** Tests with tabs of Chromium or Firefox, each of which has a store. */

import { existsSync } from 'node:fs';
import { Browser, chromium, withBrowser } from './chromium.js';
import { Firefox, firefox } from './firefox.js';
import { identifier, serverTest } from './server.js';
import { openDevice } from '../../src/node.js';

const isMade = existsSync(new URL('../../src/engine.wasm', import.meta.url));
const missing = (program, name) => (!program ? `there is no ${name}` : !isMade && '`make engine` was not run');

export function chromiumTest(name, body, headers = undefined, Kind = Browser) {
  const skip = Kind === Browser ? missing(chromium, 'Chromium') : missing(firefox, 'Firefox');
  serverTest(name, (stage) => withBrowser(stage, (browser) => body(browser, stage), headers, Kind), skip);
}

export function browserTest(name, body, headers = undefined) {
  chromiumTest(name, body, headers);
  chromiumTest(`${name}, in Firefox`, body, headers, Firefox);
}

/** What tabs begin with. */
const ready = `
  window.client = await import('/src/browser.js');
  window.device = await client.openDevice();
  window.store = await device.openStore('${identifier}');
  window.changes = [];
  store.addEventListener('change', ({ reason, keys }) => changes.push([reason, keys.join()]));
  window.problems = [];
  store.addEventListener('problem', ({ detail }) => problems.push(detail));
  window.count = (table) => device.folder.transact('readonly', (tables) => new Promise((resolve) => {
    const request = tables[table].count();
    request.onsuccess = () => resolve(request.result);
  }), [table]);
  window.until = async (isSo) => { while (!await isSo()) await new Promise((go) => { setTimeout(go, 20); }); };`;

export async function openTab(browser, first = '') {
  const tab = await browser.tab('/', first);
  await begin(tab);
  return tab;
}

/** A tab begins, for the first time or after a reload. */
export const begin = (tab) => tab.run(ready);

export async function signIn(tab, stage, account = 'ann') {
  const code = await stage.server.code(account);
  await tab.run(`
    await device.signIn({ server: location.origin, code: '${code}', deviceName: 'browser' });
    await store.initialSync();`);
}

/** A store of Node, of the same account. */
export async function other(stage, account = 'ann') {
  const device = await openDevice({ home: stage.home(`node ${account}`) });
  stage.open.add(device);
  const store = await device.openStore(identifier);
  const code = await stage.server.code(account);
  await device.signIn({ server: stage.server.url, code, deviceName: 'node' });
  await store.initialSync();
  return store;
}

/** Until a store has a value. */
export async function has(store, key, value) {
  while (store.get(key) !== value) await new Promise((go) => { setTimeout(go, 20); });
}

export const leads = (tab) => tab.run('await until(() => store.status.isLeader);');
