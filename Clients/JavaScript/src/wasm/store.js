// SPDX-License-Identifier: Apache-2.0

/**
 * A store around the engine in WebAssembly: it tells the engine what happens and when, and carries out its
 * steps. All rules are the engine's.
 */

import { RequestError } from '../http.js';
import { failure } from '../messages.js';
import { UbiquityError, isText, toWire } from '../values.js';
import { Disk } from './disk.js';
import { Engine } from './engine.js';
import { Link } from './link.js';

const timerMax = 2 ** 30;
const randomText = () => crypto.getRandomValues(new BigUint64Array(1))[0].toString(16);

function checkedKey(key) {
  if (isText(key) && key !== '') return key;
  throw new UbiquityError('key', 'a key is a string that is not empty');
}

/** @typedef {{do: string, [field: string]: any}} Word */

export class EngineStore extends EventTarget {
  ownsDevice = false;
  isClosed = false;
  /** The values that were read since the engine last heard of something. */
  values = new Map();
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
   * @param {WebAssembly.Module} module
   */
  constructor(device, identifier, options, module) {
    super();
    this.device = device;
    this.identifier = identifier;
    this.options = options;
    this.engine = new Engine(module);
    this.link = new Link((event) => this.report(event));
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
        this.values.clear();
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
        this.dispatchEvent(Object.assign(new Event('change'), { reason: step.reason, keys: step.keys }));
        this.report({ do: 'notified' });
        break;
      case 'synced': {
        const trip = this.trips.get(step.id);
        this.trips.delete(step.id);
        if (step.error === undefined) trip?.resolve();
        else trip?.reject(new RequestError(failure('unreachable', step.error)));
        break;
      }
      case 'synchronized': for (const resolve of this.waiters.splice(0)) resolve(step.isSaved); break;
      case 'report': this.dispatchEvent(Object.assign(new Event('problem'), { detail: step.detail })); break;
      case 'close': this.ended?.(); break;
      default:
    }
  }

  /** Reports what becomes of something that takes time. */
  answer(promise, done, failed) {
    promise.then(done, (error) => ({ do: failed, why: String(error?.message ?? error) }))
      .then((event) => this.report(event));
  }

  // The app

  get(key) {
    if (this.values.has(key)) return this.values.get(key);
    const value = this.engine.value(checkedKey(key));
    this.values.set(key, value);
    return value;
  }

  /** Null and undefined, or no value, are a removal. */
  set(key, value) {
    // Refuses what no store can hold, and says where it is.
    if (value !== null && value !== undefined) toWire(value, key);
    if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
    const refusal = this.engine.write([{ key: checkedKey(key), value: value ?? undefined }], this.now());
    if (refusal.error) {
      throw Object.assign(new UbiquityError(refusal.error, `${key}: ${refusal.detail}`), { keys: [key] });
    }
    this.values.delete(key);
    // A hundred writes are one save.
    if (this.isPlanned) return;
    this.isPlanned = true;
    queueMicrotask(() => {
      this.isPlanned = false;
      if (!this.isClosed) this.report({ do: 'wake' });
    });
  }

  delete(key) { this.set(key, undefined); }

  entries() { return new Map(Object.entries(this.engine.handle({ do: 'values' }, this.now()).values)); }

  get status() { return this.engine.handle({ do: 'status' }, this.now()); }

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
    this.device.openStores.delete(this);
    if (this.ownsDevice) await this.device.close();
  }
}
