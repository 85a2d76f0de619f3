// SPDX-License-Identifier: Apache-2.0

/** A device of `ubiquity-conformance`: the shells of its processes, with the network, the clock and the disk of the harness. */

import { Clock, become, settled } from './clock.js';
import { Files, Memory } from './disk.js';
import { readFileSync } from 'node:fs';
import { withSealed } from '../../src/account.js';
import { fromWire, toWire } from '../../src/exact.js';
import { Engine } from '../../src/engine.js';
import { Shell } from '../../src/shell.js';
import { compareValues } from './order.js';

const module = new WebAssembly.Module(readFileSync(new URL('../../src/engine.wasm', import.meta.url)));
const utf8 = { encoder: new TextEncoder(), decoder: new TextDecoder() };
const server = 'https://conformance.example';

/** The app's own rule: of two values, the one that is later in the order of values. */
const greater = (a, b) => (compareValues(toWire(a), toWire(b)) < 0 ? b : a);

const wireOf = ({ value, ...entry }) => (value === undefined ? entry : { ...entry, value: toWire(value) });

/** The process that is told something. @type {Process | null} */
let current = null;

const { handle } = Engine.prototype;
Engine.prototype.handle = function (event, now) {
  const told = current?.hears(event) ?? event;
  // All processes of a device know its clock that nobody sets. A shell of Node or of a browser knows it for itself only.
  return handle.call(this, told.boot === undefined ? told : { ...told, boot: current.boot }, now);
};

export class Device {
  /** @type {Map<number, Process>} */
  processes = new Map();

  constructor(ProcessClass, hasProcesses) {
    this.ProcessClass = ProcessClass;
    this.disk = hasProcesses ? new Memory() : new Files();
  }

  take(command) {
    const { process = 0 } = command;
    if (!this.processes.has(process)) this.processes.set(process, new this.ProcessClass(this.disk));
    return this.processes.get(process).take(command);
  }

  remove() { return this.disk.remove(); }
}

class HarnessShell extends Shell {
  perform(step) { if (!current?.performs(step)) super.perform(step); }
}

/** A process of a device. What shells with a fault do otherwise are its methods. */
export class Process {
  clock = new Clock();
  /** @type {Shell | null} */
  shell = null;

  /** @param {Files | Memory} home */
  constructor(home) { this.home = home; }

  async take(command) {
    this.said = {};
    become(this.clock);
    this.clock.set(command);
    current = this;
    await this[command.do](command);
    await settled();
    const { shell } = this;
    if (!shell?.engine) return this.said;
    const { isNotifying, values, ...state } = shell.ask({ do: 'state' });
    this.show(state, Object.entries(values));
    return { ...this.said, isNotifying, wake: this.clock.next };
  }

  /** Says what the app sees, if it is something else. */
  show(state, values) {
    const shown = new Map(values.map(([key, value]) => [key, JSON.stringify(wireOf({ key, value }))]));
    const unchanged = [...shown].filter(([key, text]) => this.values.get(key) === text).map(([key]) => key);
    const changed = [...shown].filter(([key, text]) => this.values.get(key) !== text);
    const rest = { ...state, records: state.records.map(wireOf), diskError: this.diskError };
    const text = JSON.stringify(rest);
    if (text !== this.shown || changed.length || shown.size < this.values.size) {
      this.said.state = { ...rest, unchanged, values: changed.map(([, wire]) => JSON.parse(wire)) };
    }
    [this.values, this.shown] = [shown, text];
  }

  get diskError() { return this.shell.status.diskError; }

  // What happens

  async start({ boot, account, name, credential, store, seed, firstSync, keys, policies }) {
    this.clock.seed(seed);
    this.boot = boot;
    [this.values, this.shown, this.saving, this.reading, this.lease] = [new Map(), null, null, null, null];
    this.account = { folder: '1', folders: { [account]: '1' }, signedIn: {
      server, account, accountName: '', device: name, deviceName: '', credential } };
    this.takeKeys(keys);
    await this.home.open();
    this.disk = this.home.disk('1', store);
    const nothing = () => () => {};
    const folder = { disk: () => this.gate, lead: (_, tell) => this.lead(tell), post() {}, onMessage: nothing,
      onWake: nothing, onFreeze: nothing };
    const device = { folder, state: this.account, read: async () => this.account, pool: {},
      noteSealed: async (/** @type {string} */ name) => { Object.assign(this.account, withSealed(this.account, name)); } };
    const shell = new HarnessShell(/** @type {any} */ (device), store, { firstSync }, module, {
      heard() {}, problem() {},
      // What its own app wrote, the harness knows.
      notice: (reason, changed) => { if (reason !== 'ownWrite') this.say('notices', { reason, keys: changed }); },
      decide: (_, values) => values.map(({ value }) => value).reduce(greater),
    });
    shell.link = /** @type {any} */ ({ send: (step) => this.send(step), cancel: (id) => this.say('cancelled', id),
      setPatience() {}, close() {} });
    shell.policies = policies;
    this.shell = shell;
    await shell.start();
  }

  /** @param {Record<string, string>} [keys] */
  takeKeys(keys) { if (keys) this.account.keyrings = { [this.account.signedIn.account]: keys }; }

  unlock({ keys }) {
    this.takeKeys(keys);
    this.handle({ do: 'accountChanged' });
  }

  async kill({ keepsSave }) {
    const { shell } = this;
    this.shell = null;
    if (shell) shell.isClosed = true;
    this.clock.timers.clear();
    if (this.saving) await (keepsSave ? this.keep() : this.home.tear(this.disk, this.saving.step));
    await this.home.close();
  }

  write({ writes }) {
    const changes = writes.map(({ key, value, policy, base }) => ({ key, policy,
      value: value && fromWire(value), base: base && fromWire(base) }));
    const { error } = this.shell.write(changes);
    if (error) this.said.error = error;
  }

  /** Carries out the save under way. @returns {Promise<any>} What becomes of it. */
  async keep(how = null) {
    const { step } = this.saving;
    const result = await (how === null ? this.disk.save(step) : this.home.fail(how, this.disk, step));
    if (result.version === undefined) this.said.conflict = true;
    return result;
  }

  saved() { return this.endSave(this.keep()); }

  notSaved({ how }) { return this.endSave(this.keep(how)); }

  /** Tells the shell what becomes of its save. */
  async endSave(result) {
    const { resolve, reject } = this.saving;
    await result.then(resolve, reject).finally(() => { this.saving = null; });
  }

  async read() { this.reading.resolve(await this.disk.changedAfter(this.reading.after)); }

  notRead() { this.reading.reject(new Error('the disk is closed')); }

  sync({ id }) {
    return this.promised(this.shell.synchronizeNow().then(() => ({ id }), (error) => ({ id, error: error.message })),
      'synced');
  }

  synchronize({ id }) {
    return this.promised(this.shell.synchronize().then((isSaved) => ({ id, isSaved })), 'synchronized');
  }

  promised(promise, field) { promise.then((element) => this.say(field, element)); }

  fileChanged() { this.handle({ do: 'fileChanged' }); }
  leading({ isLeading }) { this.lease?.(isLeading); }
  wake() { this.clock.wake(); }
  end({ request }) { this.handle({ do: 'end', request }); }
  fail({ request, why }) { this.handle({ do: 'fail', request, why, detail: 'lost' }); }

  answer({ request, status, headers, body }) {
    this.handle({ do: 'answer', request, status, headers, body: utf8.encoder.encode(body) });
  }

  event({ request, name, data }) {
    this.handle({ do: 'event', request, name, data: utf8.encoder.encode(data) });
  }

  handle(event) { this.shell.report(event); }

  // What the shell does

  /** The engine is told of an event. @returns {object} What it is told. */
  hears(event) { return event; }

  /** The shell is about to carry out a step. @returns {boolean} Whether it is not to do that. */
  performs(_step) { return false; }

  say(field, element) { (this.said[field] ??= []).push(element); }

  /** What the shell takes for its disk: each save and read waits for the harness. */
  get gate() {
    return {
      document: this.disk.document, load: () => this.disk.load(), refused: () => this.disk.refused(),
      forget: (rows) => this.disk.forget(rows), close() {},
      save: (step) => new Promise((resolve, reject) => {
        this.saving = { step, resolve, reject };
        this.said.saves = true;
      }),
      changedAfter: (after) => new Promise((resolve, reject) => {
        this.reading = { after, resolve, reject };
        this.said.reads = true;
      }),
    };
  }

  lead(tell) {
    this.lease = tell;
    return { release() {}, seize() {}, yields: async () => false };
  }

  send({ id, method, path, headers, body }) {
    this.say('requests', { id, method, path, headers, body: body && utf8.decoder.decode(body) });
  }
}
