// SPDX-License-Identifier: Apache-2.0

/** A home in memory, which several tabs of a test open, and which can fail, stand still and forget. */

import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openDeviceIn } from '../../src/device.js';

export const file = new URL('../../src/engine.wasm', import.meta.url);
export const skip = existsSync(file) ? false : '`make engine` was not run';
export const unreachable = 'http://127.0.0.1:9';
export const account = (server, more = {}) => ({ folder: '1', folders: { a: '1' }, signedIn: { server, account: 'a',
  accountName: 'ann', device: '1'.repeat(16), deviceName: 'x', credential: 'c' }, ...more });

export const soon = () => new Promise((go) => { setTimeout(go, 5); });
export async function until(isSo) { while (!isSo()) await soon(); }

let compiled = null;
export const compile = () => { compiled ??= new WebAssembly.Module(readFileSync(file)); return compiled; };
const hex = (bytes) => Buffer.from(bytes).toString('hex');

export class Home {
  account = null;
  /** The stores: version, leader, meta, and entries by their keys. */
  documents = new Map();
  tabs = new Set();
  /** The tabs that wait for a lease, the first of which has it. */
  leases = new Map();

  openDevice(tab = new Tab(this), load = async () => compile()) { return openDeviceIn(tab, load); }

  async openTab(identifier = 'T.example') {
    const tab = new Tab(this);
    const device = await this.openDevice(tab);
    return { tab, device, store: await device.openStore(identifier) };
  }

  grant(name) {
    const [first] = this.leases.get(name) ?? [];
    if (first && !first.isHeld) {
      first.isHeld = true;
      first.tell(true);
    }
  }
}

/** What a device needs of its platform. `fails` says why something fails; `waits` is awaited before it. */
class Tab {
  listeners = new Set();
  wakes = new Set();
  fails = {};
  waits = {};
  saves = 0;

  constructor(home) {
    this.home = home;
    home.tabs.add(this);
  }

  async begin(what) {
    await this.waits[what];
    await new Promise(setImmediate);
    if (this.fails[what]) throw new Error(this.fails[what]);
  }

  disk(folder, identifier) {
    const { documents } = this.home;
    const document = `${folder}/${identifier}`;
    const row = () => documents.get(document) ?? { version: 0, entries: new Map() };
    const content = (after) => {
      const { version, meta, entries } = row();
      const wanted = [...entries.values()].filter((one) => (after === null ? one.entry : one.version > after));
      return { version, meta, entries: wanted.map(({ key, entry }) => ({ key, entry })) };
    };
    return {
      document, close() {},
      load: () => this.begin('load').then(() => content(null)),
      changedAfter: (after) => this.begin('read').then(() => (after === row().version ? undefined : content(after))),
      save: (step) => this.begin('save').then(() => {
        const old = row();
        if (step.expects !== old.version) return { content: content(step.expects) };
        const version = old.version + 1;
        const entries = new Map(old.entries);
        for (const { key, entry } of step.entries) entries.set(hex(key), { key, entry, version });
        documents.set(document, { ...old, version, meta: step.meta ?? old.meta, entries });
        this.saves += 1;
        return { version };
      }),
    };
  }

  readAccount() { return this.begin('account').then(() => structuredClone(this.home.account)); }
  changeAccount(change) {
    return this.begin('account').then(() => {
      this.home.account = change(structuredClone(this.home.account));
      return structuredClone(this.home.account);
    });
  }
  async removeUnowned() {}

  post(message) {
    for (const tab of this.home.tabs) if (tab !== this) setImmediate(() => tab.receive(message));
  }
  receive(message) { for (const listener of this.listeners) listener(message); }
  onMessage(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  onWake(wake) {
    this.wakes.add(wake);
    return () => this.wakes.delete(wake);
  }
  onFreeze() { return () => {}; }

  lead(name, tell) {
    const { leases } = this.home;
    const lease = { isHeld: false, tell };
    const remove = () => leases.set(name, (leases.get(name) ?? []).filter((one) => one !== lease));
    const go = (first) => {
      remove();
      leases.set(name, first ? [lease, ...leases.get(name)] : [...leases.get(name), lease]);
      setImmediate(() => this.home.grant(name));
    };
    const release = () => {
      remove();
      lease.isHeld = false;
      setImmediate(() => this.home.grant(name));
    };
    go(false);
    return {
      release,
      seize: () => {
        const [old] = leases.get(name);
        if (old === lease) return;
        if (old?.isHeld) {
          old.isHeld = false;
          setImmediate(() => old.tell(false));
        }
        go(true);
      },
      yields: async () => {
        if (leases.get(name).length < 2) return false;
        release();
        return true;
      },
    };
  }

  /** The tab ends, and says nothing. */
  crash() {
    this.home.tabs.delete(this);
    this.fails = { save: 'gone', read: 'gone', load: 'gone', account: 'gone' };
    for (const [name, all] of this.home.leases) this.home.leases.set(name, all.filter((one) => one.tab !== this));
  }

  async close() { this.home.tabs.delete(this); }
  async erase() { this.home.documents.clear(); }
}

/** A test with a home, whose tabs are closed in the end. */
export function homeTest(name, body) {
  test(name, { skip, timeout: 300_000 }, async () => {
    const home = new Home();
    const open = [];
    const openTab = async () => {
      const tab = await home.openTab();
      tab.problems = [];
      tab.store.addEventListener('problem', ({ detail }) => tab.problems.push(detail));
      open.push(tab);
      return tab;
    };
    try { await body(openTab, home); } finally {
      for (const { tab, device } of open) {
        Object.assign(tab, { fails: {}, waits: {} });
        if (!device.isClosed) await device.close();
      }
    }
  });
}

/** A module whose only function traps. */
const trapping = () => new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array([
  0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 0x74, 0, 0,
  0x0a, 5, 1, 3, 0, 0, 0x0b]))).exports;

/** The next call of the engine traps. */
export function trap(store, name, times = 1) {
  const { functions } = store.shell.engine;
  let left = times;
  store.shell.engine.functions = { ...functions, [name]: (...words) => {
    left -= 1;
    return left < 0 ? functions[name](...words) : /** @type {any} */ (trapping()).t();
  } };
}

/** The engine traps when it is told this. */
export function trapAt(store, word) {
  const { engine } = store.shell;
  const { handle } = engine;
  engine.handle = (event, now) => (event.do === word ? /** @type {any} */ (trapping()).t()
    : handle.call(engine, event, now));
}
