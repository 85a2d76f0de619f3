// SPDX-License-Identifier: Apache-2.0

/** A real server, and the command line of the Swift library, for tests. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDevice, openStore } from '../../src/node.js';

export const program = process.env.UBIQUITY_PROGRAM;
export const identifier = 'TEAM.example.js';
/** Only against hanging. */
const deadline = 300_000;

/** A test with a server, a folder, and stores that are closed in the end. */
export function serverTest(name, body, otherwise = false) {
  const skip = otherwise || (program ? false : 'UBIQUITY_PROGRAM does not name the program `ubiquity`');
  test(name, { skip, timeout: deadline }, async ({ signal }) => {
    const stage = new Stage();
    // What hangs never comes to its end, and its programs would keep this process for ever.
    signal.addEventListener('abort', () => { for (const one of stage.programs) one.kill('SIGKILL'); });
    try {
      await stage.server.start();
      await body(stage);
    } finally { await stage.end(); }
  });
}

/** Answers requests while the body runs, which gets the address. */
export async function served(answer, body) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try { return await body(`http://127.0.0.1:${server.address().port}`); } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Passes a request on to the server of a stage. Its answer comes after `isFree`. */
export function passOn(stage, incoming, answer, isFree = undefined) {
  const { host, ...headers } = incoming.headers;
  const passed = request(`${stage.server.url}${incoming.url}`, { method: incoming.method, headers },
    async (response) => {
      await isFree;
      answer.writeHead(response.statusCode, response.headers);
      response.on('close', () => { if (!response.complete) answer.destroy(); });
      response.pipe(answer);
    });
  passed.on('error', () => answer.destroy());
  answer.on('close', () => passed.destroy());
  incoming.pipe(passed);
}

/** A port below those that systems give, so that none takes it while its server is away. */
async function freePort() {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    const listener = createServer().listen(port, '127.0.0.1');
    try {
      await once(listener, 'listening');
    } catch {
      continue;
    }
    listener.close();
    return port;
  }
}

class Server {
  constructor(folder) {
    this.data = join(folder, 'server');
  }

  async start() {
    this.port ??= await freePort();
    this.process = spawn(program, ['serve', '--json', '--data', this.data, '--port', String(this.port),
      '--log-level', 'error'], { stdio: ['ignore', 'pipe', 'ignore'] });
    let text = '';
    for await (const more of this.process.stdout) {
      text += more;
      if (text.includes('\n')) break;
    }
    const { url, operatorCredential } = JSON.parse(text);
    Object.assign(this, { url, credential: readFileSync(operatorCredential, 'utf8').trim() });
  }

  async kill() {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode) return;
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await ended;
  }

  async operator(method, path, body = undefined) {
    const response = await fetch(`${this.url}/v1/${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.credential}`,
        ...(body ? { 'Content-Type': 'application/json' } : {}) },
      body: body && JSON.stringify(body),
    });
    return response.status === 204 ? null : response.json();
  }

  /** A sign-in code for an account, which is made if there is none. */
  async code(account, terms = undefined) {
    const made = terms ? {} : await this.operator('POST', 'accounts', { name: account });
    return (made.account && made.code)
      || (await this.operator('POST', `accounts/${account}/codes`, terms ?? {})).code;
  }
}

class Stage {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'ubiquity-js-'));
    this.server = new Server(this.folder);
    this.open = new Set();
    /** What must end if the test hangs. */
    this.programs = new Set([this.server]);
  }

  home(name) { return join(this.folder, name); }

  async openStore(name, options = {}) {
    const store = await openStore({ home: this.home(name), identifier, ...options });
    this.open.add(store);
    return store;
  }

  async openDevice(name) {
    const device = await openDevice({ home: this.home(name) });
    this.open.add(device);
    return device;
  }

  /** A store whose device is signed in and has completed its first sync. */
  async signedIn(name, { account = 'ann', terms = undefined, ...options } = {}) {
    const store = await this.openStore(name, options);
    const code = await this.server.code(account, terms);
    await store.device.signIn({ server: this.server.url, code, deviceName: name });
    await store.initialSync();
    return store;
  }

  /** The command line, as a device of its own. */
  command(name, ...words) {
    return new Promise((resolve, reject) => {
      execFile(program, words, { timeout: deadline, env: { ...process.env,
        UBIQUITY_HOME: this.home(name), UBIQUITY_KVSTORE_IDENTIFIER: identifier } },
      (error, output, errors) => (error ? reject(new Error(`${words.join(' ')}: ${errors}`))
        : resolve(output)));
    });
  }

  /** Starts a command that goes on, and waits for the first text on its output. */
  start(name, ...words) {
    const child = spawn(program, words, { env: { ...process.env, UBIQUITY_HOME: this.home(name) } });
    this.open.add({ close: () => child.kill('SIGKILL') });
    this.programs.add(child);
    return child;
  }

  async end() {
    for (const one of this.open) await one.close();
    await this.server.kill();
    this.programs.clear();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

/** Waits until a store is in some state. */
export function until(store, isSo) {
  if (isSo()) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => {
      if (!isSo()) return;
      store.removeEventListener('change', look);
      store.removeEventListener('status', look);
      resolve();
    };
    store.addEventListener('change', look);
    store.addEventListener('status', look);
  });
}
