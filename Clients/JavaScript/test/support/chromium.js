// SPDX-License-Identifier: Apache-2.0

/** Chromium, driven by its debugger protocol: tabs that run code, and can be made to stand still. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { passOn, served } from './server.js';

const client = fileURLToPath(new URL('../..', import.meta.url));
export const chromium = ['chromium', 'chromium-browser', 'google-chrome'].find((name) => {
  try { return execFileSync('which', [name], { stdio: ['ignore', 'pipe', 'ignore'] }); } catch { return false; }
});

const types = { js: 'text/javascript', wasm: 'application/wasm' };
const page = '<!doctype html><meta charset="utf-8"><title>tab</title>';

/** Serves the client and empty pages, and passes on what is for the server of a stage. */
async function answer(stage, incoming, reply, headers) {
  const { pathname } = new URL(incoming.url, 'http://a');
  if (pathname.startsWith('/src/')) {
    const type = types[pathname.split('.').at(-1)];
    return reply.writeHead(200, { 'Content-Type': type, ...headers(pathname) })
      .end(readFileSync(join(client, pathname)));
  }
  if (!pathname.startsWith('/v1/')) {
    return reply.writeHead(200, { 'Content-Type': 'text/html', ...headers(pathname) }).end(page);
  }
  // The same origin, so that no server has to allow another one.
  return passOn(stage, incoming, reply);
}

/**
 * Runs the body with a browser, whose pages are of one origin with the server.
 * @param {any} stage @param {(browser: Browser) => Promise<void>} body
 * @param {(path: string) => Record<string, string>} headers Of the pages.
 */
export const withBrowser = (stage, body, headers = () => ({}), Kind = Browser) => served(
  (incoming, reply) => answer(stage, incoming, reply, headers), async (address) => {
    const browser = new Kind(stage.home('browser'), address);
    stage.programs.add(browser);
    try { await body(browser); } finally { await browser.end(); }
  });

export class Browser {
  last = 0;
  calls = new Map();
  rest = '';

  constructor(profile, address) {
    this.address = address;
    this.child = spawn(chromium, ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
      '--remote-debugging-pipe', `--user-data-dir=${profile}`, 'about:blank'],
    { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.child.stdio[4].setEncoding('utf8').on('data', (text) => this.hear(text));
  }

  hear(text) {
    const messages = (this.rest + text).split('\0');
    this.rest = messages.pop();
    for (const { id, error, result } of messages.map((one) => JSON.parse(one))) {
      const call = this.calls.get(id);
      this.calls.delete(id);
      if (error) call?.reject(new Error(`${call.method}: ${error.message}`));
      else call?.resolve(result);
    }
  }

  /** Calls a method of the protocol. @returns {Promise<any>} */
  call(method, params = {}, sessionId = undefined) {
    this.last += 1;
    const id = this.last;
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => { this.calls.set(id, { method, resolve, reject }); });
  }

  /** Opens a tab, in which `first` has run before anything else. */
  async tab(path = '/', first = '') {
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
    const tab = new Tab(this, targetId, sessionId);
    await tab.call('Page.enable');
    if (first) await tab.call('Page.addScriptToEvaluateOnNewDocument', { source: first });
    await tab.call('Page.navigate', { url: this.address + path });
    return tab.loaded();
  }

  /** All of its processes end at once. */
  async crash() {
    const ended = once(this.child, 'close');
    this.child.kill('SIGKILL');
    await ended;
  }

  /** The same, and what waits for it fails. */
  kill() {
    this.child.kill('SIGKILL');
    for (const call of this.calls.values()) call.reject(new Error(`${call.method}: the browser was ended`));
  }

  /** Its processes end one after the other, and until then they write. */
  async end() {
    if (this.child.exitCode !== null || this.child.signalCode) return;
    const ended = once(this.child, 'close');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 20_000);
    this.call('Browser.close').catch(() => {});
    await ended;
    clearTimeout(timer);
  }
}

class Tab {
  constructor(browser, targetId, session) { Object.assign(this, { browser, targetId, session }); }

  call(method, params) { return this.browser.call(method, params, this.session); }

  /** Runs the body of an asynchronous function. @returns {Promise<any>} What it returns, as JSON has it. */
  async run(body) {
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', {
      expression: `(async () => { ${body} })()`, awaitPromise: true, returnByValue: true });
    if (!exceptionDetails) return result.value;
    throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  }

  async loaded() {
    await this.run(`if (document.readyState !== 'complete') {
      await new Promise((resolve) => { addEventListener('load', resolve); });
    }`);
    return this;
  }

  /** The page goes, and comes again, without its code. */
  async reload() {
    await this.run('window.isOld = true;');
    await this.call('Page.reload');
    while (!await this.run('return !window.isOld;').catch(() => false));
    await this.loaded();
  }

  /** It does nothing any more, and keeps what it has, as a tab that a phone suspends. */
  async stop() {
    await this.call('Debugger.enable');
    await this.call('Debugger.pause');
  }
  async goOn() { await this.call('Debugger.disable'); }
  /** The same, as browsers do it, which tell the page. */
  freeze() { return this.call('Page.setWebLifecycleState', { state: 'frozen' }); }
  thaw() { return this.call('Page.setWebLifecycleState', { state: 'active' }); }
  close() { return this.browser.call('Target.closeTarget', { targetId: this.targetId }); }
}
