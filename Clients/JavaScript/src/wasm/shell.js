// SPDX-License-Identifier: Apache-2.0

/**
 * The shell around an engine, one store in one process: it tells the engine what happens and when, and carries
 * out its steps. All rules are the engine's.
 */

import { RequestError } from '../http.js';
import { failure } from '../messages.js';
import { UbiquityError } from '../values.js';
import { Disk } from './disk.js';
import { Engine } from './engine.js';
import { Link } from './link.js';

const timerMax = 2 ** 30;
const randomText = () => crypto.getRandomValues(new BigUint64Array(1))[0].toString(16);

/** @typedef {{do: string, [field: string]: any}} Word */

/**
 * What the shell calls. `heard`: the engine has heard of something, and what it shows may be different now.
 * `notice` returns when the app's observers have. `decide` makes one value of those of a conflict.
 *
 * @typedef {object} App
 * @property {() => void} heard
 * @property {(reason: string, keys: string[]) => void} notice
 * @property {(key: string, values: {value: any, milliseconds: number}[]) => any} decide
 * @property {(detail: string) => void} problem
 */

export class Shell {
  isClosed = false;
  /** @type {Word[]} What the engine is to be told. */
  events = [];
  isRunning = false;
  isPlanned = false;
  file = 0;
  trips = new Map();
  tripsMade = 0;
  waiters = [];
  /** How far the wall clock is ahead of the other. */
  gap = NaN;
  stopLeading = () => {};
  timer = undefined;

  /**
   * @param {import('../device.js').Device} device @param {string} identifier
   * @param {{firstSync?: 'serverWins' | 'timestamps', historyExcluded?: Iterable<string>}} options
   * @param {WebAssembly.Module} module @param {App} app
   */
  constructor(device, identifier, options, module, app) {
    this.device = device;
    this.identifier = identifier;
    this.options = options;
    this.app = app;
    this.engine = new Engine(module);
    this.link = new Link((event) => this.report(event), /** @type {any} */ (device).pool);
  }

  /** What the engine is to know of the device's sign-in. */
  get account() {
    const { signedIn, folders, ...state } = this.device.state;
    return { ...state, signedIn: signedIn ?? undefined, folders: Object.fromEntries(folders) };
  }

  open(folder) { return Disk.open(this.device.folder, Disk.document(folder, this.identifier)); }

  async start() {
    this.disk = await this.open(this.device.state.folder);
    const { firstSync = 'serverWins', historyExcluded = [] } = this.options;
    const [wall, uptime] = [Date.now(), performance.now()];
    this.gap = wall - uptime;
    const event = { do: 'start', boot: randomText(), seed: randomText(), store: this.identifier, firstSync,
      unkept: [...historyExcluded], content: this.disk.load(), device: this.account };
    this.report(event);
    this.lead();
  }

  lead() {
    const { file } = this;
    this.stopLeading();
    this.stopLeading = this.device.folder.lead(this.identifier,
      () => this.report({ do: 'leading', file, isLeading: true }));
  }

  // What happens

  /** Reads the clocks. If the wall clock jumps, the machine slept or it was set. */
  now() {
    const [wall, uptime] = [Date.now(), performance.now()];
    if (Math.abs(wall - uptime - this.gap) > 1_500) {
      this.gap = wall - uptime;
      this.engine.handle({ do: 'boot', boot: randomText() }, { wall, uptime });
    }
    return { wall, uptime };
  }

  /** @param {Word} event */
  report(event) {
    this.events.push(event);
    if (this.isRunning) return;
    this.isRunning = true;
    let wake;
    try {
      for (let next; (next = this.events.shift());) {
        const answer = this.engine.handle(next, this.now());
        this.app.heard();
        wake = answer.wake;
        for (const step of answer.steps) this.perform(step);
      }
    } finally { this.isRunning = false; }
    clearTimeout(this.timer);
    if (wake === undefined || this.isClosed) return;
    const pause = Math.min(Math.max(Math.ceil(wake - performance.now()), 0), timerMax);
    this.timer = setTimeout(() => this.report({ do: 'wake' }), pause);
  }

  // What to do

  /** @param {Word} step */
  perform(step) {
    switch (step.do) {
      case 'save':
        this.answer(this.disk.save(step), (version) => ({ do: 'saved', version }), 'notSaved');
        break;
      case 'read': this.report({ do: 'read' }); break;
      case 'readAccount': this.report({ do: 'account', device: this.account }); break;
      case 'open':
        this.answer(this.open(step.folder), (disk) => {
          this.opened = disk;
          return { do: 'opened', content: disk.load() };
        }, 'notOpened');
        break;
      case 'release': this.opened = undefined; break;
      case 'use':
        [this.file, this.disk, this.opened] = [step.file, this.opened ?? this.disk, undefined];
        this.lead();
        break;
      case 'request': this.link.send(/** @type {any} */ (step)); break;
      case 'cancel': this.link.cancel(step.id); break;
      case 'patience': this.link.setPatience(step.id, step.milliseconds); break;
      case 'notify':
        this.app.notice(step.reason, step.keys);
        this.report({ do: 'notified' });
        break;
      case 'decide':
        this.report({ do: 'decided', conflict: step.conflict, value: this.app.decide(step.key, step.values) });
        break;
      case 'synced': {
        const trip = this.trips.get(step.id);
        this.trips.delete(step.id);
        if (step.error === undefined) trip?.resolve();
        else trip?.reject(new RequestError(failure('unreachable', step.error)));
        break;
      }
      case 'synchronized': for (const resolve of this.waiters.splice(0)) resolve(step.isSaved); break;
      case 'report': this.app.problem(step.detail); break;
      case 'close': this.ended?.(); break;
      default:
    }
  }

  /** Reports what becomes of something that takes time. */
  answer(promise, done, failed) {
    promise.then(done, (error) => ({ do: failed, why: String(error?.message ?? error) }))
      .then((event) => this.report(event));
  }

  // What the app wants

  value(key) { return this.engine.value(key); }

  /** The answer to a question. */
  ask(question) { return this.engine.handle(question, this.now()); }

  /** Writes as one transaction. @returns {{error?: string, detail?: string}} Why it was refused, if it was. */
  write(writes) {
    if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
    const refusal = this.engine.write(writes, this.now());
    // A hundred writes are one save.
    if (!refusal.error && !this.isPlanned) {
      this.isPlanned = true;
      queueMicrotask(() => {
        this.isPlanned = false;
        if (!this.isClosed) this.report({ do: 'wake' });
      });
    }
    return refusal;
  }

  /** Saves, and wakes the sync; true if all before is on disk. */
  synchronize() {
    if (this.isClosed) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.waiters.push(resolve);
      this.report({ do: 'synchronize' });
    });
  }

  /** Makes a round trip: what was written before is at the server, and what it has is here. */
  synchronizeNow() {
    return new Promise((resolve, reject) => {
      if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
      this.tripsMade += 1;
      this.trips.set(this.tripsMade, { resolve, reject });
      this.report({ do: 'sync', id: this.tripsMade });
    });
  }

  /** Follows a sign-in or sign-out of the device. */
  async followAccount() {
    this.report({ do: 'accountChanged' });
    // The engine says so when it has followed.
    await this.synchronize();
  }

  /** Saves, and ends everything under way: nothing of the store keeps a program running. */
  async close() {
    if (this.isClosed) return;
    const ended = new Promise((resolve) => { this.ended = () => resolve(undefined); });
    this.report({ do: 'close' });
    await ended;
    this.isClosed = true;
    clearTimeout(this.timer);
    this.link.close();
    this.stopLeading();
    for (const { reject } of this.trips.values()) reject(new UbiquityError('closed', 'the store is closed'));
    for (const resolve of this.waiters.splice(0)) resolve(false);
  }
}
