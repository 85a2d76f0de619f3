// SPDX-License-Identifier: Apache-2.0

/** Firefox, driven by WebDriver BiDi, which it speaks itself. */

import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';

export const firefox = ['firefox-esr', 'firefox'].find((name) => {
  try { return execFileSync('which', [name], { stdio: ['ignore', 'pipe', 'ignore'] }); } catch { return false; }
});

/** What would ask a server of Mozilla. */
const preferences = { 'browser.shell.checkDefaultBrowser': false, 'datareporting.policy.dataSubmissionEnabled': false,
  'network.captive-portal-service.enabled': false, 'network.connectivity-service.enabled': false };

/** A WebSocket for texts: Node 20 has none. */
class Messages {
  bytes = Buffer.alloc(0);
  text = '';

  /** @param {(text: string) => void} hear */
  constructor(socket, hear) {
    this.socket = socket;
    socket.on('data', (more) => {
      this.bytes = Buffer.concat([this.bytes, more]);
      for (let frame; (frame = this.frame());) {
        // A part of a text, or the end of one.
        if (frame.kind > 1) continue;
        this.text += frame.data;
        if (!frame.isLast) continue;
        hear(this.text);
        this.text = '';
      }
    });
  }

  static async open(url, hear) {
    const asked = request(url, { headers: { Connection: 'Upgrade', Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': randomBytes(16).toString('base64') } }).end();
    const [, socket] = await once(asked, 'upgrade');
    return new Messages(socket, hear);
  }

  frame() {
    const { bytes } = this;
    const sizes = { 126: 2, 127: 8 }[bytes[1]] ?? 0;
    const start = 2 + sizes;
    if (bytes.length < start) return null;
    const count = sizes === 8 ? Number(bytes.readBigUInt64BE(2)) : sizes ? bytes.readUInt16BE(2) : bytes[1];
    if (bytes.length < start + count) return null;
    this.bytes = bytes.subarray(start + count);
    return { kind: bytes[0] & 0xf, isLast: bytes[0] >= 0x80, data: bytes.subarray(start, start + count) };
  }

  send(text) {
    const data = Buffer.from(text);
    const head = Buffer.from([0x81, 0x80 | Math.min(data.length, 126), 0, 0]);
    // The protocol's own sizes: none of these texts has 64 kB.
    head.writeUInt16BE(data.length, 2);
    // A mask must be there, and must not be zero.
    this.socket.write(Buffer.concat([head.subarray(0, data.length < 126 ? 2 : 4), Buffer.alloc(4, 1), data.map((byte) => byte ^ 1)]));
  }
}

export class Firefox {
  last = 0;
  calls = new Map();

  constructor(profile, address) {
    this.address = address;
    mkdirSync(profile, { recursive: true });
    writeFileSync(join(profile, 'user.js'), Object.entries(preferences)
      .map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${value});`).join('\n'));
    this.child = spawn(firefox, ['--headless', '--no-remote', '--remote-debugging-port=0', '--profile', profile],
      { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, HOME: profile } });
    this.messages = this.connect();
  }

  async connect() {
    let text = '';
    const url = await new Promise((resolve) => {
      this.child.stderr.setEncoding('utf8').on('data', (more) => {
        text += more;
        const [, found] = /BiDi listening on (ws:\S+)/.exec(text) ?? [];
        if (found) resolve(found.replace('ws:', 'http:'));
      });
    });
    const messages = await Messages.open(`${url}/session`, (message) => this.hear(JSON.parse(message)));
    this.messages = Promise.resolve(messages);
    await this.call('session.new', { capabilities: { alwaysMatch: { unhandledPromptBehavior: { default: 'ignore' } } } });
    return messages;
  }

  /** Waits for the next event of that kind. */
  event(method) { return new Promise((resolve, reject) => { this.calls.set(method, { method, resolve, reject }); }); }

  hear({ id, method, error, message, result }) {
    if (method) {
      this.calls.get(method)?.resolve();
      return;
    }
    const call = this.calls.get(id);
    this.calls.delete(id);
    if (error) call?.reject(new Error(`${call.method}: ${message}`));
    else call?.resolve(result);
  }

  /** Calls a method of the protocol. @returns {Promise<any>} */
  async call(method, params = {}) {
    const messages = await this.messages;
    this.last += 1;
    const id = this.last;
    messages.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve, reject) => { this.calls.set(id, { method, resolve, reject }); });
  }

  /** Opens a tab, in which `first` has run before anything else. */
  async tab(path = '/', first = '') {
    const { context } = await this.call('browsingContext.create', { type: 'tab' });
    if (first) {
      await this.call('script.addPreloadScript', { functionDeclaration: `() => { ${first} }`, contexts: [context] });
    }
    await this.call('browsingContext.navigate', { context, url: this.address + path, wait: 'complete' });
    return new Tab(this, context);
  }

  /** Ends it at once, and what waits for it fails. */
  kill() {
    this.child.kill('SIGKILL');
    for (const call of this.calls.values()) call.reject(new Error(`${call.method}: the browser was ended`));
  }

  async end() {
    if (this.child.exitCode !== null || this.child.signalCode) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}

class Tab {
  constructor(browser, context) { Object.assign(this, { browser, context }); }

  /** Runs the body of an asynchronous function. @returns {Promise<any>} What it returns, as JSON has it. */
  async run(body) {
    const { result } = await this.browser.call('script.evaluate', { awaitPromise: true, target: { context: this.context },
      expression: `(async () => { ${body} })().then((value) => JSON.stringify({ value }),
        (error) => JSON.stringify({ error: String(error?.stack ? \`\${error}\\n\${error.stack}\` : error) }))` });
    const { value, error } = JSON.parse(result.value);
    if (error === undefined) return value;
    throw new Error(error);
  }

  /** The page goes, and comes again, without its code. */
  async reload() { await this.browser.call('browsingContext.reload', { context: this.context, wait: 'complete' }); }

  /** It does nothing any more, and keeps what it has: a message stands before it. */
  async stop() {
    const { context, browser } = this;
    const opened = browser.event('browsingContext.userPromptOpened');
    await browser.call('session.subscribe', { events: ['browsingContext.userPromptOpened'] });
    browser.call('script.evaluate', { expression: 'alert()', target: { context }, awaitPromise: false }).catch(() => {});
    await opened;
  }
  goOn() { return this.browser.call('browsingContext.handleUserPrompt', { context: this.context }); }
  close() { return this.browser.call('browsingContext.close', { context: this.context }); }
}
