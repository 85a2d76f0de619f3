// SPDX-License-Identifier: Apache-2.0

/**
 * The shell around an engine, one store in one process: it tells the engine what happens and when, and carries
 * out its steps. All rules are the engine's. An engine that traps is replaced: recovery.js.
 */

import { UbiquityError } from './values.js';
import { Engine, EventError } from './engine.js';
import { Link } from './link.js';
import { Recovery } from './recovery.js';

const timerMax = 2 ** 30;
/** As many transactions are written again if the engine traps while the disk fails. */
const unsavedMax = 4_096;
const randomText = () => crypto.getRandomValues(new BigUint64Array(1))[0].toString(16);
const closed = () => new UbiquityError('closed', 'the store is closed');

/** What an account's file is that cannot be opened: nothing is saved to it. */
const noDisk = { document: '', close() {}, ...Object.fromEntries(['claim', 'changedAfter', 'save', 'refused']
  .map((name) => [name, async () => { throw new UbiquityError('storage', 'the store is not open'); }])) };

/** What is said of a disk whose content the engine does not understand. */
const unread = { read: 'notRead', conflict: 'notSaved', opened: 'notOpened', account: 'noAccount' };

/** @typedef {{do: string, [field: string]: any}} Word */

/**
 * What the shell calls. `heard`: the engine has heard of something, and what it shows may be different now.
 * `notice` returns when the app's observers have. `decide` makes one value of those of a conflict.
 *
 * @typedef {object} App
 * @property {() => void} heard
 * @property {(reason: string, keys: string[]) => void} notice
 * @property {(key: string, values: {value: any, milliseconds: number}[]) => any} decide
 * @property {(answer: {id: number, [field: string]: any}) => void} answered
 * @property {(detail: string) => void} problem
 */

export class Shell {
  isClosing = false;
  isClosed = false;
  /** @type {Engine | null} */
  engine = null;
  /** @type {Word[]} What the engine is to be told. */
  events = [];
  /** @type {Word[]} What it wants. */
  steps = [];
  isRunning = false;
  isPlanned = false;
  wakeAt = undefined;
  timer = undefined;
  /** How far the wall clock is ahead of the other. */
  gap = NaN;

  /** @type {any} */
  disk = noDisk;
  /** @type {any} What was opened last, if it is not in use yet. */
  opened = null;
  file = 0;
  /** What the disk does at the moment. */
  work = Promise.resolve();
  /** What was written and is not on the disk; of it, so many are being saved. @type {{writes: any[], more: object}[]} */
  unsaved = [];
  saving = 0;
  /** @type {any} */
  lease = null;
  /** This process, while it leads. @type {string | null} */
  leader = null;
  /** Counts what has become of the lease. */
  turn = 0;

  trips = new Map();
  tripsMade = 0;
  waiters = [];
  firstSyncs = [];
  /** The policies that the app has declared, by key. */
  policies = {};
  stops = [];

  /**
   * @param {import('./device.js').Device} device @param {string} identifier
   * @param {{firstSync?: 'serverWins' | 'timestamps', historyExcluded?: Iterable<string>}} options
   * @param {WebAssembly.Module} module @param {App} app
   */
  constructor(device, identifier, options, module, app) {
    this.device = device;
    this.identifier = identifier;
    this.options = options;
    this.module = module;
    this.app = app;
    this.link = new Link((event) => this.report(event), device.pool);
    this.recovery = new Recovery(this);
  }

  get folder() { return this.device.folder; }

  /** What the engine is to know of the device's sign-in. */
  get account() {
    const { signedIn, ...state } = this.device.state;
    return { ...state, signedIn: signedIn ?? undefined };
  }

  async start() {
    this.stops.push(this.folder.onMessage((message) => this.hint(message)), this.folder.onWake(() => this.rouse()));
    try { await this.begin(); } catch (error) {
      this.isClosed = true;
      this.end();
      throw error;
    }
  }

  /** Begins with what is on the disk. @param {{writes: any[], more: object}[]} writes What is not there. */
  async begin(writes = []) {
    await this.device.read();
    const disk = this.folder.disk(this.device.state.folder, this.identifier);
    const content = await disk.load();
    const { firstSync = 'serverWins', historyExcluded = [] } = this.options;
    Object.assign(this, { disk, file: 0, events: [], steps: [], opened: null, engine: new Engine(this.module) });
    const clock = { wall: Date.now(), uptime: performance.now() };
    this.gap = clock.wall - clock.uptime;
    const event = { do: 'start', boot: randomText(), seed: randomText(), store: this.identifier, firstSync,
      ownWrites: true, unkept: [...historyExcluded], policies: this.policies, content, device: this.account };
    let answer;
    try { answer = this.engine.handle(event, clock); } catch (error) {
      this.engine = null;
      throw error instanceof EventError
        ? new UbiquityError('storage', `the values of ${this.identifier} cannot be read: ${error.message}`) : error;
    }
    for (const one of writes) this.engine.write(one.writes, clock, one.more);
    this.unsaved = [...writes];
    this.take(answer);
    this.lead();
    this.report({ do: 'wake' });
  }

  // Leading

  lead() {
    const { file, disk } = this;
    this.follow();
    if (disk === noDisk) return;
    this.lease = this.folder.lead(disk.document, async (isHeld) => {
      this.leader = null;
      this.turn += 1;
      const { turn } = this;
      if (!isHeld) return this.report({ do: 'leading', file, isLeading: false });
      const leader = randomText();
      try {
        // A leader that stood still, and does not know yet that it does not lead, finds this when it saves.
        await disk.claim(leader);
        if (turn !== this.turn) return undefined;
        this.leader = leader;
        return this.report({ do: 'leading', file, isLeading: true });
      } catch {
        if (turn !== this.turn) return undefined;
        this.follow();
        return this.report({ do: 'fileChanged' });
      }
    });
  }

  follow() {
    this.turn += 1;
    this.lease?.release();
    this.lease = null;
    this.leader = null;
  }

  /** Another process can lead while this one's disk fails. */
  async diskFailed() {
    const { lease, file } = this;
    if (!await lease?.yields() || lease !== this.lease) return;
    this.follow();
    this.report({ do: 'leading', file, isLeading: false });
  }

  diskWorked() { if (!this.lease && this.disk !== noDisk && !this.status.diskError) this.lead(); }

  // What happens

  /** What another process says: it is only a reason to look. */
  hint(message) {
    if (message === 'account') this.report({ do: 'accountChanged' });
    else if (message === 'files' || message === this.disk.document) this.report({ do: 'fileChanged' });
  }

  /** The network is back, or somebody looks: messages may have been missed, and nothing waits any longer. */
  rouse() {
    this.report({ do: 'accountChanged' });
    this.report({ do: 'fileChanged' });
    this.report({ do: 'hurry' });
  }

  /** Reads the clocks. If the wall clock jumps, the machine slept or it was set. */
  now() {
    const clock = { wall: Date.now(), uptime: performance.now() };
    if (this.engine && Math.abs(clock.wall - clock.uptime - this.gap) > 1_500) {
      this.gap = clock.wall - clock.uptime;
      this.take(this.engine.handle({ do: 'boot', boot: randomText() }, clock));
      this.plan();
    }
    return clock;
  }

  take({ steps, wake }) {
    this.steps.push(...steps);
    this.wakeAt = wake;
  }

  /** @param {Word} event */
  report(event) {
    if (!this.engine || this.isClosed) return;
    this.events.push(event);
    if (this.isRunning) return;
    this.isRunning = true;
    try {
      while (this.engine && (this.steps.length || this.events.length)) {
        const step = this.steps.shift();
        if (step) this.perform(step);
        else this.tell(this.events.shift());
      }
    } finally { this.isRunning = false; }
    this.setTimer();
    if (this.firstSyncs.length) this.lookForFirstSync();
  }

  tell(event) {
    try { this.take(this.engine.handle(event, this.now())); } catch (error) {
      if (!(error instanceof EventError)) return this.recovery.trapped(error);
      if (event.do === 'opened') this.opened = null;
      if (!unread[event.do]) this.app.problem(error.message);
      else this.events.unshift({ do: unread[event.do], why: error.message });
    }
    return this.app.heard();
  }

  setTimer() {
    clearTimeout(this.timer);
    if (this.wakeAt === undefined || this.isClosed || !this.engine) return;
    const pause = Math.min(Math.max(Math.ceil(this.wakeAt - performance.now()), 0), timerMax);
    this.timer = setTimeout(() => this.report({ do: 'wake' }), pause);
  }

  // What to do

  /** @param {any} step */
  perform(step) {
    switch (step.do) {
      case 'save': this.save(step); break;
      case 'read':
        this.answer(this.disk.changedAfter(step.after), (content) => ({ do: 'read', content }), 'notRead');
        break;
      case 'readAccount':
        this.answer(this.device.read(), () => ({ do: 'account', device: this.account }), 'noAccount');
        break;
      case 'open':
        this.opened = this.folder.disk(step.folder, this.identifier);
        this.answer(this.opened.load().catch((error) => {
          this.opened = null;
          throw error;
        }), (content) => ({ do: 'opened', content }), 'notOpened');
        break;
      case 'release':
        this.opened?.close();
        this.opened = null;
        break;
      case 'use': this.use(step.file); break;
      case 'seize': this.lease?.seize(); break;
      case 'request': this.link.send(/** @type {any} */ (step)); break;
      case 'cancel': this.link.cancel(step.id); break;
      case 'patience': this.link.setPatience(step.id, step.milliseconds); break;
      case 'notify':
        try { this.app.notice(step.reason, step.keys); } catch (error) { this.app.problem(String(error)); }
        this.report({ do: 'notified' });
        break;
      case 'decide': this.report({ do: 'decided', conflict: step.conflict, value: this.decide(step) }); break;
      case 'synced': this.endTrip(step); break;
      case 'synchronized': for (const resolve of this.waiters.splice(0)) resolve(step.isSaved); break;
      case 'answered': this.app.answered(step); break;
      case 'report': this.app.problem(step.detail); break;
      case 'close': this.isEnded = true; this.ended?.(); break;
      default:
    }
  }

  /** A rule of the app that fails leaves the later value. */
  decide({ key, values }) {
    try { return this.app.decide(key, values) ?? values.at(-1).value; } catch { return values.at(-1).value; }
  }

  save(step) {
    const { disk } = this;
    this.saving = this.unsaved.length;
    this.answer(disk.save(step, this.leader), ({ version, content, isDeposed }) => {
      if (version !== undefined) {
        this.unsaved.splice(0, this.saving);
        this.folder.post(disk.document);
        return { do: 'saved', version };
      }
      if (isDeposed) {
        this.leader = null;
        this.report({ do: 'leading', file: this.file, isLeading: false });
      }
      return { do: 'conflict', content };
    }, 'notSaved');
  }

  /** Reports what becomes of something that takes time, if the engine is still there that wants to know. */
  answer(promise, done, failed) {
    const { engine } = this;
    const isOfFile = ['notSaved', 'notRead'].includes(failed);
    this.work = promise.then(done, (error) => ({ do: failed, why: String(error?.message ?? error) })).then((event) => {
      this.saving = 0;
      if (this.engine !== engine) return;
      this.report(event);
      if (!isOfFile || this.isClosed || !this.engine) return;
      if (event.do === failed) this.diskFailed();
      else this.diskWorked();
    });
  }

  use(file) {
    this.disk.close();
    [this.file, this.disk, this.opened] = [file, this.opened ?? noDisk, null];
    this.lead();
  }

  endTrip({ id, error, code, refused = [] }) {
    const trip = this.trips.get(id);
    this.trips.delete(id);
    if (error === undefined) trip?.resolve();
    else trip?.reject(Object.assign(new UbiquityError(code, error), { keys: refused }));
  }

  // What the app wants

  /** The refused writes that the disk has, the newest first. @returns {Promise<Uint8Array[]>} */
  async refused() { return this.disk.refused(); }

  /** Removes these of them. @param {Uint8Array[]} rows */
  forgetRefused(rows) { return this.disk.forget(rows); }

  value(key) { return this.recovery.reading((engine) => engine.value(key)); }

  /** The answer to a question. */
  ask(question) { return this.recovery.reading((engine) => engine.handle(question, this.now())); }

  get status() { return this.ask({ do: 'status' }); }

  /**
   * Writes as one transaction, unless `more` says another `how`.
   * @returns {{error?: string, detail?: string, changed?: string[]}} Why it was refused, or what has changed.
   */
  write(writes, more = {}) {
    if (this.isClosing) throw closed();
    const refusal = this.recovery.writing((engine) => engine.write(writes, this.now(), more));
    if (refusal.error) return refusal;
    this.unsaved.push({ writes, more });
    if (this.unsaved.length > unsavedMax) {
      this.unsaved.shift();
      this.saving = Math.max(0, this.saving - 1);
    }
    this.plan();
    return refusal;
  }

  /** A hundred writes are one save. */
  plan() {
    if (this.isPlanned) return;
    this.isPlanned = true;
    queueMicrotask(() => {
      this.isPlanned = false;
      this.report({ do: 'wake' });
    });
  }

  /** Declares how a key is merged. @param {string} key @param {string} [policy] A letter, or nothing. */
  setPolicy(key, policy) {
    if (policy) this.policies[key] = policy;
    else delete this.policies[key];
    this.report({ do: 'policy', key, policy });
  }

  /** Saves, and wakes the sync; true if all before is on disk. */
  synchronize() {
    if (this.isClosing || this.recovery.isOver) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.waiters.push(resolve);
      this.report({ do: 'synchronize' });
    });
  }

  /** Makes a round trip: what was written before is at the server, and what it has is here. */
  synchronizeNow() {
    return new Promise((resolve, reject) => {
      if (this.isClosing) throw closed();
      if (this.recovery.isOver) throw this.recovery.error;
      this.tripsMade += 1;
      this.trips.set(this.tripsMade, { resolve, reject });
      this.report({ do: 'sync', id: this.tripsMade });
    });
  }

  /** Waits until the store has the values of the account; of the next one, if nobody is signed in. */
  initialSync() {
    return new Promise((resolve, reject) => {
      if (this.isClosing) throw closed();
      if (this.recovery.isOver) throw this.recovery.error;
      this.firstSyncs.push({ resolve, reject, account: undefined });
      this.lookForFirstSync();
    });
  }

  lookForFirstSync() {
    if (!this.engine) return;
    const { isInitialSyncComplete } = this.status;
    const account = this.device.state.signedIn?.account;
    this.firstSyncs = this.firstSyncs.filter((one) => {
      one.account ??= account;
      if (one.account !== account) {
        one.reject(new UbiquityError('unauthorized', 'this device is not signed in to that account any more'));
      } else if (isInitialSyncComplete) one.resolve();
      return one.account === account && !isInitialSyncComplete;
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
    if (this.isClosing) return;
    this.isClosing = true;
    await this.recovery.work;
    if (this.engine && !this.isEnded) {
      await new Promise((resolve) => {
        this.ended = () => resolve(undefined);
        this.report({ do: 'close' });
      });
    }
    this.isClosed = true;
    this.end();
    this.fail(closed());
  }

  /** Tells all who wait that it is over. */
  fail(error) {
    for (const { reject } of [...this.trips.values(), ...this.firstSyncs.splice(0)]) reject(error);
    this.trips.clear();
    for (const resolve of this.waiters.splice(0)) resolve(false);
  }

  end() {
    clearTimeout(this.timer);
    this.link.close();
    this.follow();
    for (const stop of this.stops.splice(0)) stop();
    this.disk.close();
    this.opened?.close();
  }
}
