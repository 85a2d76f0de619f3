// SPDX-License-Identifier: Apache-2.0

/**
 * The shell around an engine, one store in one process: it tells the engine what happens and when, and carries
 * out its steps. All rules are the engine's. An engine that traps is replaced: recovery.js.
 */

import { Engine, EventError, clocks, pauseUntil, randomText } from './engine.js';
import { Leading } from './leading.js';
import { Link } from './link.js';
import { Recovery } from './recovery.js';
import { Storage } from './storage.js';
import { UbiquityError } from './values.js';
import { Waiting, closed } from './waiting.js';

/** What is said of a disk whose content the engine does not understand. */
const unread = { read: 'notRead', conflict: 'notSaved', opened: 'notOpened', account: 'noAccount' };

/** What a server has said. */
const ofServer = ['answer', 'event', 'progress', 'end', 'fail'];

/** @typedef {{do: string, [field: string]: any}} Word */

/** What this process wrote, as one log; what others did is still in theirs. @param {Redo[]} unsaved @returns {Redo[]} */
function redoOf(unsaved) {
  const own = unsaved.filter(({ tab }) => !tab);
  const all = (name) => own.flatMap((write) => write[name] ?? []);
  return own.length ? [{ do: 'redo', entries: all('entries'), keys: all('keys'), number: own.at(-1)?.number }] : [];
}

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
  isClosing = false;
  /** @type {Promise<void> | null} */
  closing = null;
  isEnded = false;
  ended = () => {};
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
    this.storage = new Storage(this);
    this.leading = new Leading(this);
    this.waiting = new Waiting(this);
    this.recovery = new Recovery(this);
  }

  get folder() { return this.device.folder; }

  /** What the engine is to know of the device's sign-in. */
  get account() {
    const { signedIn, ...state } = this.device.state;
    return { ...state, signedIn: signedIn ?? undefined };
  }

  async start() {
    const { folder } = this;
    this.stops.push(folder.onMessage((message) => this.hint(message)), folder.onWake(() => this.rouse()),
      folder.onFreeze(() => this.leading.resign()));
    try { await this.begin(); } catch (error) {
      this.isClosed = true;
      this.end();
      throw error;
    }
  }

  /** Begins with what is on the disk. @param {Redo[]} unsaved What is not there. */
  async begin(unsaved = []) {
    const { content, logs } = await this.storage.begin();
    if (this.isClosed) throw closed();
    const { firstSync = 'serverWins', historyExcluded = [] } = this.options;
    [this.events, this.steps, this.engine] = [[], [], new Engine(this.module)];
    const clock = clocks();
    this.gap = clock.wall - clock.uptime;
    const event = { do: 'start', boot: randomText(), seed: randomText(), store: this.identifier, firstSync,
      ownWrites: true, redoLog: true, unkept: [...historyExcluded], policies: this.policies, content,
      device: this.account };
    let answer;
    try { answer = this.engine.handle(event, clock); } catch (error) {
      this.engine = null;
      throw error instanceof EventError
        ? new UbiquityError('storage', `the values of ${this.identifier} cannot be read: ${error.message}`) : error;
    }
    this.storage.unsaved = [];
    this.take(answer);
    this.storage.unsaved = [...redoOf(unsaved), ...logs];
    this.events.push(...this.storage.unsaved);
    this.leading.lead();
    this.report({ do: 'wake' });
  }

  // What happens

  /** What another process says: it is only a reason to look. */
  hint(message) {
    if (message === 'account') this.report({ do: 'accountChanged' });
    else if (message === `${this.storage.disk.document} log`) this.storage.inherit();
    else if (message === 'files' || message === this.storage.disk.document) this.report({ do: 'fileChanged' });
  }

  /** The network is back, or somebody looks: messages may have been missed, and nothing waits any longer. */
  rouse() {
    this.report({ do: 'accountChanged' });
    this.report({ do: 'fileChanged' });
    this.report({ do: 'hurry' });
    this.storage.inherit();
  }

  /** Reads the clocks. If the wall clock jumps, the machine slept or it was set. */
  now() {
    const clock = clocks();
    if (this.engine && Math.abs(clock.wall - clock.uptime - this.gap) > 1_500) {
      this.gap = clock.wall - clock.uptime;
      this.take(this.engine.handle({ do: 'boot', boot: randomText() }, clock));
      this.plan();
    }
    return clock;
  }

  take({ steps, wake }) {
    this.steps.push(...steps);
    // A save has what was written until now, and nothing that an observer writes before it begins.
    if (steps.some((step) => step.do === 'save')) this.storage.saving = this.storage.unsaved.length;
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
    this.waiting.lookForFirstSync();
  }

  tell(event) {
    try {
      const clock = this.now();
      if (this.steps.length) return this.events.unshift(event);
      if (event.do === 'synchronize') this.waiting.tell();
      if (event.do === 'redo') this.storage.wrote(/** @type {any} */ (event));
      this.take(this.engine.handle(event, clock));
    } catch (error) {
      if (!(error instanceof EventError)) return this.recovery.trapped(error, ofServer.includes(event.do));
      if (event.do === 'opened') this.storage.notOpened(error);
      if (!unread[event.do]) this.app.problem(error.message);
      else this.events.unshift({ do: unread[event.do], why: error.message });
    }
    return this.app.heard();
  }

  setTimer() {
    clearTimeout(this.timer);
    if (this.wakeAt === undefined || this.isClosed || !this.engine) return;
    this.timer = setTimeout(() => this.report({ do: 'wake' }), pauseUntil(this.wakeAt));
  }

  // What to do

  /** @param {any} step */
  perform(step) {
    switch (step.do) {
      case 'save': case 'read': case 'readAccount': case 'noteSealed': case 'open': case 'release': case 'use':
        this.storage[step.do](step);
        break;
      case 'seize': this.leading.seize(); break;
      case 'request': this.link.send(/** @type {any} */ (step)); break;
      case 'cancel': this.link.cancel(step.id); break;
      case 'patience': this.link.setPatience(step.id, step.milliseconds); break;
      case 'notify':
        try { this.app.notice(step.reason, step.keys); } catch (error) { this.app.problem(String(error)); }
        this.report({ do: 'notified' });
        break;
      case 'decide': this.report({ do: 'decided', conflict: step.conflict, value: this.decide(step) }); break;
      case 'synced': this.waiting.endTrip(step); break;
      case 'answered': this.waiting.answered(step); break;
      case 'synchronized': this.waiting.saved(step.isSaved); break;
      case 'report': this.app.problem(step.detail); break;
      case 'close': this.isEnded = true; this.ended(); break;
      default:
    }
  }

  /** A rule of the app that fails leaves the later value. */
  decide({ key, values }) {
    try { return this.app.decide(key, values) ?? values.at(-1).value; } catch (error) {
      queueMicrotask(() => this.app.problem(`${key}: the later value stands, because the others cannot be read: ${error}`));
      return values.at(-1).value;
    }
  }

  // What the app wants

  /** The value of a key, as a property list. @returns {Uint8Array | undefined} */
  value(key) { return this.recovery.reading((engine) => engine.value(key)); }

  /** The answer to a question. */
  ask(question) { return this.recovery.reading((engine) => engine.handle(question, this.now())); }

  get status() { return this.ask({ do: 'status' }); }

  /** The status, for the shell itself; null while there is no engine. */
  get seen() {
    if (!this.engine) return null;
    try { return this.status; } catch { return null; }
  }

  /**
   * Writes as one transaction, unless `more` says another `how`.
   * @returns {{error?: string, detail?: string, changed?: string[], entries?: any[]}} Why it was refused, or what has
   *     changed.
   */
  write(writes, more = {}) {
    if (this.isClosing) throw closed();
    const outcome = this.recovery.writing((engine) => engine.write(writes, this.now(), more));
    if (!outcome.entries) return outcome;
    this.storage.wrote({ do: 'redo', entries: outcome.entries, keys: writes.map(({ key }) => key) });
    this.plan();
    return outcome;
  }

  /** A hundred writes are one save. */
  plan() {
    if (this.isPlanned) return;
    this.isPlanned = true;
    queueMicrotask(() => {
      this.isPlanned = false;
      this.storage.log();
      this.report({ do: 'wake' });
    });
  }

  /** Declares how a key is merged. @param {string} key @param {string} [policy] A letter, or nothing. */
  setPolicy(key, policy) {
    if (policy) this.policies[key] = policy;
    else delete this.policies[key];
    this.report({ do: 'policy', key, policy });
  }

  /** Saves, and wakes the sync; true if all before is on disk. @returns {Promise<boolean>} */
  synchronize() { return this.waiting.synchronize(); }

  /** Asks the server what a key or the store was. @returns {Promise<any>} */
  askServer(question) { return this.waiting.ask(question); }

  /** Makes a round trip: what was written before is at the server, and what it has is here. */
  synchronizeNow() { return this.waiting.synchronizeNow(); }

  /**
   * Waits until the store has the values of the account; of the next one, if nobody is signed in. A sign-out
   * ends that.
   */
  initialSync() { return this.waiting.initialSync(); }

  /** Follows a sign-in or sign-out of the device. */
  async followAccount() {
    this.report({ do: 'accountChanged' });
    // The engine says so when it has followed.
    await this.synchronize();
  }

  /**
   * Saves, and ends everything under way: nothing of the store keeps a program running.
   * @throws {UbiquityError} In the end, if something that was written is not on the disk.
   */
  close() {
    this.closing ??= this.finish();
    return this.closing;
  }

  async finish() {
    this.isClosing = true;
    // Of what was written last, the engine has still to hear.
    do await this.recovery.work; while (this.recovery.work);
    const isSaved = this.engine && !this.isEnded && await this.waiting.saving();
    while (this.recovery.work) await this.recovery.work;
    if (this.engine && !this.isEnded) {
      await new Promise((resolve) => {
        this.ended = () => resolve(undefined);
        this.report({ do: 'close' });
      });
    }
    this.isClosed = true;
    this.end();
    this.waiting.fail(closed());
    if (!isSaved && this.storage.unsaved.length) {
      throw new UbiquityError('storage', `${this.identifier} is closed, and what was written last is not on the disk`);
    }
  }

  end() {
    clearTimeout(this.timer);
    this.link.close();
    this.leading.follow();
    for (const stop of this.stops.splice(0)) stop();
    this.storage.close();
  }
}
