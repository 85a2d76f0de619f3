// SPDX-License-Identifier: Apache-2.0

/** README's examples: all compile in a project of their own, and those of watching run, with React and without. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium, withBrowser } from './support/chromium.js';
import { identifier, serverTest } from './support/server.js';

const client = fileURLToPath(new URL('..', import.meta.url));
const examples = [...readFileSync(join(client, 'README.md'), 'utf8')
  .matchAll(/```[jt]s\n(.*?)```/gs)].map(([, code]) => code);
/** The example that has this. */
const example = (part) => examples.find((code) => code.includes(part)) ?? assert.fail(`README has no ${part}`);
const run = promisify(execFile);

/** What the examples take for granted. */
const given = `import { Device, Store, openDevice, openStore, real } from 'ubiquity-store';
declare const [store, device, server, userCode, scanned]: [Store, Device, string, string, string];
declare function show(code: string): void;
declare function createElement(...terms: any[]): any;
declare function useSyncExternalStore<T>(subscribe: (heard: () => void) => () => void, get: () => T): T;
`;

const hasCompiler = await run('tsc', ['--version']).then(() => true, () => false);

test("README's examples compile, and so does an app that imports the package", { timeout: 300_000,
  skip: hasCompiler ? false : 'there is no tsc' }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ubiquity-js-'));
  try {
    assert.ok(examples.length > 5);
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(client, join(folder, 'node_modules/ubiquity-store'));
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
    for (const [index, code] of examples.entries()) {
      writeFileSync(join(folder, `${index}.ts`), code.startsWith('import') ? code : `${given}${code}export {};\n`);
    }
    for (const resolution of ['node', 'node16']) {
      const compilerOptions = { target: 'ES2022', module: resolution === 'node' ? 'ES2022' : 'node16',
        moduleResolution: resolution, lib: ['ES2022', 'DOM'], types: [],
        strict: true, noImplicitAny: false, noEmit: true };
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
      await run('tsc', ['--project', folder]).catch(({ stdout }) => assert.fail(stdout));
    }
  } finally { rmSync(folder, { recursive: true }); }
});

test('the package can be required, too', async () => {
  const loaded = createRequire(import.meta.url)(client);
  assert.equal(typeof loaded.openStore, 'function');
});

const libraries = ['react', 'react-dom'].map((name) => `/usr/share/nodejs/${name}/umd/${name}.development.js`);
const skip = !chromium ? 'there is no Chromium'
  : !libraries.every((file) => existsSync(file)) && 'there is no React: install node-react and node-react-dom';

const open = `const { openDevice } = await import('/src/browser.js');
  window.device = await openDevice({ home: 'readme' });
  window.store = await device.openStore('${identifier}');
  window.until = async (isSo) => { while (!isSo()) await new Promise((go) => { setTimeout(go, 20); }); };`;

async function withTabs(stage, body) {
  await withBrowser(stage, async (browser) => {
    const tabs = [await browser.tab('/'), await browser.tab('/')];
    for (const tab of tabs) await tab.run(open);
    await body(...tabs);
  });
}

const withReact = async (a, b) => {
  for (const file of libraries) await a.run(readFileSync(file, 'utf8'));
  await a.run(`const { createElement, useSyncExternalStore } = React;
    ${example('useSyncExternalStore')}
    window.renders = 0;
    const Counted = (properties) => { renders += 1; return Counter(properties); };
    const place = document.body.appendChild(document.createElement('div'));
    ReactDOM.createRoot(place).render(createElement(Counted, { store }));
    await until(() => document.querySelector('button'));`);
  const text = () => a.run('return document.querySelector("button").textContent;');
  assert.equal(await text(), 'Pressed 0 times');
  await a.run('document.querySelector("button").click();');
  await a.run('await until(() => document.querySelector("button").textContent === "Pressed 1 times");');
  await b.run('await until(() => store.get("count") === 1); store.increment("count", 41);');
  await a.run('await until(() => document.querySelector("button").textContent === "Pressed 42 times");');
  // Nothing else is a reason to show it again.
  assert.equal(await a.run(`store.set('other', [1]); await store.synchronize(); store.set('other', [2]);
    await store.synchronize(); return renders;`), 3);
};
serverTest('the example with React shows what this tab and another one write',
  (stage) => withTabs(stage, withReact), skip);

serverTest('the example without a framework shows what this tab and another one write', (stage) => withTabs(stage,
  async (a, b) => {
    const [signal, subscription] = example('store.subscribe(').split('\n');
    await a.run(`${signal} window.over = over; ${subscription}`);
    assert.equal(await a.run('store.set("theme", "dark"); return document.body.className;'), 'dark');
    await b.run('await until(() => store.get("theme") === "dark"); store.set("theme", "light");');
    await a.run('await until(() => document.body.className === "light");');
    assert.equal(await a.run('over.abort(); store.set("theme", "blue"); return document.body.className;'), 'light');
  }), chromium ? false : 'there is no Chromium');
