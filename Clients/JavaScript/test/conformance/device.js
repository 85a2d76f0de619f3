// SPDX-License-Identifier: Apache-2.0

/** A device of `ubiquity-conformance`: the engine in WebAssembly, and a shell without a network or a clock. */

import { readFileSync } from 'node:fs';
import { fromWire, toWire } from '../../src/exact.js';
import { Engine } from '../../src/engine.js';
import { Disk } from './disk.js';
import { compareValues } from './order.js';

const module = new WebAssembly.Module(readFileSync(new URL('../../src/engine.wasm', import.meta.url)));
const utf8 = { encoder: new TextEncoder(), decoder: new TextDecoder() };
const server = 'https://conformance.example';

/** The app's own rule: of two values, the one that is later in the order of values. */
const greater = (a, b) => (compareValues(toWire(a), toWire(b)) < 0 ? b : a);

const wireOf = ({ value, ...entry }) => (value === undefined ? entry : { ...entry, value: toWire(value) });

export class Device {
  disk = new Disk();
  /** @type {Map<number, Process>} */
  processes = new Map();

  constructor(ProcessClass = Process) { this.ProcessClass = ProcessClass; }

  take(command) {
    const { process = 0 } = command;
    if (!this.processes.has(process)) this.processes.set(process, new this.ProcessClass(this.disk));
    return this.processes.get(process).take(command);
  }
}

export class Process {
  events = [];

  /** @param {Disk} disk */
  constructor(disk) { this.disk = disk; }

  take(command) {
    this.said = {};
    this.now = command;
    this[command.do](command);
    if (!this.engine) return this.said;
    const { isNotifying, values, ...state } = this.engine.handle({ do: 'state' }, this.now);
    const shown = { ...state, records: state.records.map(wireOf),
      values: Object.entries(values).map(([key, value]) => wireOf({ key, value })) };
    const text = JSON.stringify(shown);
    if (text !== this.shown) this.said.state = shown;
    this.shown = text;
    return { ...this.said, isNotifying, wake: this.wakeAt ?? null };
  }

  // What happens

  start({ account, name, credential, store, seed, firstSync, policies, boot, keys }) {
    this.engine = new Engine(module);
    this.saving = null;
    this.shown = null;
    this.account = { folder: '1', folders: { [account]: '1' }, signedIn: {
      server, account, accountName: '', device: name, deviceName: '', credential } };
    this.takeKeys(keys);
    this.handle({ do: 'start', boot, seed, store, firstSync, policies, content: this.disk.changes(),
      device: this.account });
  }

  /** @param {Record<string, string>} [keys] */
  takeKeys(keys) { if (keys) this.account.keyrings = { [this.account.signedIn.account]: keys }; }

  unlock({ keys }) {
    this.takeKeys(keys);
    this.handle({ do: 'accountChanged' });
  }

  kill({ keepsSave }) {
    if (keepsSave && this.saving) this.keep();
    this.engine = null;
  }

  write({ writes }) {
    const changes = writes.map(({ key, value, policy, base }) => ({ key, policy,
      value: value && fromWire(value), base: base && fromWire(base) }));
    const { error } = this.engine.write(changes, this.now);
    if (error) this.said.error = error;
    this.wake();
  }

  /** Writes the save under way. @returns {boolean} Whether it is on the disk. */
  keep() {
    const isKept = this.disk.save(this.saving);
    if (!isKept) this.said.conflict = true;
    this.saving = null;
    return isKept;
  }

  saved() {
    const { expects } = this.saving;
    this.handle(this.keep() ? { do: 'saved', version: this.disk.version }
      : { do: 'conflict', content: this.disk.changes(expects) });
  }

  notSaved({ keepsSave }) {
    if (keepsSave) this.keep();
    this.saving = null;
    this.handle({ do: 'notSaved', why: 'the disk is full' });
  }

  read() {
    const isNew = this.disk.version > this.readsAfter;
    this.handle({ do: 'read', content: isNew ? this.disk.changes(this.readsAfter) : undefined });
  }

  notRead() { this.handle({ do: 'notRead', why: 'the disk is closed' }); }
  fileChanged() { this.handle({ do: 'fileChanged' }); }
  leading({ isLeading }) { this.handle({ do: 'leading', file: 0, isLeading }); }
  sync({ id }) { this.handle({ do: 'sync', id }); }
  wake() { this.handle({ do: 'wake' }); }
  end({ request }) { this.handle({ do: 'end', request }); }
  fail({ request, why }) { this.handle({ do: 'fail', request, why, detail: 'lost' }); }

  answer({ request, status, headers, body }) {
    this.handle({ do: 'answer', request, status, headers, body: utf8.encoder.encode(body) });
  }

  event({ request, name, data }) {
    this.handle({ do: 'event', request, name, data: utf8.encoder.encode(data) });
  }

  // What the engine does

  handle(event) {
    if (this.events.push(event) > 1) return;
    for (; this.events.length; this.events.shift()) {
      const { steps, wake } = this.engine.handle(this.events[0], this.now);
      this.wakeAt = wake;
      for (const step of steps) this.perform(step);
    }
  }

  say(field, element) { (this.said[field] ??= []).push(element); }

  perform(step) {
    switch (step.do) {
      case 'save':
        this.saving = step;
        this.said.saves = true;
        break;
      case 'notify':
        this.say('notices', { reason: step.reason, keys: step.keys });
        this.handle({ do: 'notified' });
        break;
      case 'synced':
        this.say('synced', { id: step.id, ...(step.error === undefined ? {} : { error: step.error }) });
        break;
      case 'request': {
        const { id, method, path, headers, body } = step;
        this.say('requests', { id, method, path, headers, body: body && utf8.decoder.decode(body) });
        break;
      }
      case 'cancel': this.say('cancelled', step.id); break;
      case 'read':
        this.readsAfter = step.after;
        this.said.reads = true;
        break;
      case 'readAccount': this.handle({ do: 'account', device: this.account }); break;
      case 'decide': {
        const values = step.values.map(({ value }) => value);
        this.handle({ do: 'decided', conflict: step.conflict, value: values.reduce(greater) });
        break;
      }
      default:
    }
  }
}
