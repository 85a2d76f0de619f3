// SPDX-License-Identifier: Apache-2.0

/**
 * The connections of a device: the streams of its stores, which share one when they are up to date, and a few
 * requests at a time. Which store is served by which stream is decided by an instance of the engine.
 */

import { Engine, clocks, pauseUntil } from './engine.js';
import { Requests } from './requests.js';
import { reasonOf } from './values.js';

const requestsMax = 2;
/** How long a stream waits for a place, before its store does without. */
const slotMilliseconds = 10_000;

/** So many at a time, in the order in which they came. */
export class Turns {
  waiting = [];

  /** @param {number} count */
  constructor(count) { this.free = count; }

  /** @returns {Promise<() => void>} A function that ends the turn. */
  async take() {
    if (this.free > 0) this.free -= 1;
    else await new Promise((resolve) => { this.waiting.push(resolve); });
    return () => {
      if (this.waiting.length) this.waiting.shift()();
      else this.free += 1;
    };
  }
}

/**
 * What the streams of a home in a browser take, so that all of its tabs together leave connections for requests: a
 * browser has six for a server.
 */
export class Slots {
  held = 0;
  /** Given back just now. The stream that takes the place of others is opened in the same turn. */
  spare = [];
  waiting = [];
  isFrozen = false;

  /** @param {() => Promise<(() => void) | null>} claim Takes a lock, if one is free. */
  constructor(claim) { this.claim = claim; }

  /** @returns {Promise<(() => void) | null>} A function that gives it back; null if there is none. */
  async take() {
    const slot = this.spare.pop() ?? await this.claimed() ?? await this.next();
    return slot && (() => {
      this.spare.push(slot);
      if (this.isFrozen) this.settle();
      else setTimeout(() => this.settle());
    });
  }

  async claimed() {
    const slot = await this.claim();
    if (slot) this.held += 1;
    return slot;
  }

  /** Of this tab's streams, those of stores that begin end soon. */
  next() {
    if (this.held === 0) return null;
    return new Promise((resolve) => {
      const waiting = (slot) => {
        clearTimeout(timer);
        resolve(slot);
      };
      const timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(waiting), 1);
        resolve(null);
      }, slotMilliseconds);
      this.waiting.push(waiting);
    });
  }

  /** The tab is about to stand still, with all timers: what is given back goes to the others at once. */
  freeze() {
    this.isFrozen = true;
    this.settle();
    // It runs when the tab goes on.
    setTimeout(() => { this.isFrozen = false; });
  }

  settle() {
    for (const slot of this.spare.splice(0)) {
      if (this.waiting.length) this.waiting.shift()(slot);
      else {
        this.held -= 1;
        slot();
      }
    }
  }
}

/** Takes one of the locks of these names, if one is free. @param {string[]} names */
export async function claimLock(names) {
  for (const name of names) {
    const free = await new Promise((resolve) => {
      navigator.locks.request(name, { ifAvailable: true }, (lock) => (lock
        ? new Promise((free) => { resolve(() => free(undefined)); }) : resolve(null))).catch(() => resolve(null));
    });
    if (free) return free;
  }
  return null;
}

export class Pool {
  turns = new Turns(requestsMax);
  /** @type {Map<string, Streams>} By server and credential. */
  accounts = new Map();

  /**
   * @param {WebAssembly.Module} module
   * @param {{take(): Promise<(() => void) | null>}} slots What a stream takes while it is open; null if there is none.
   */
  constructor(module, slots = new Turns(Infinity)) {
    this.module = module;
    this.slots = slots;
  }

  /**
   * Begins to listen, as an engine's step `request` says.
   * @param {any} step
   * @param {(event: {do: string, [field: string]: any}) => void} hear
   * @returns {() => void} A function that hangs up.
   */
  listen({ server, headers, stream }, hear) {
    const account = JSON.stringify([server, headers]);
    if (!this.accounts.has(account)) {
      for (const [other, { listeners }] of this.accounts) if (!listeners.size) this.accounts.delete(other);
      this.accounts.set(account, new Streams(this, { server, headers }, () => this.accounts.delete(account)));
    }
    return /** @type {Streams} */ (this.accounts.get(account)).listen(stream, hear);
  }
}

/** The streams of one account. */
class Streams {
  /** @type {Map<number, (event: {do: string, [field: string]: any}) => void>} */
  listeners = new Map();
  lastListener = 0;
  /** @type {{do: string, [field: string]: any}[]} What the engine is to be told. */
  events = [];
  isRunning = false;
  timer = undefined;

  /** @param {Pool} pool @param {{server: string, headers: object}} account @param {() => void} trapped */
  constructor({ module, slots }, account, trapped) {
    this.trapped = trapped;
    this.engine = new Engine(module);
    this.requests = new Requests((event) => this.report(event), slots);
    this.report({ do: 'pool', ...account });
  }

  listen(stream, hear) {
    this.lastListener += 1;
    const listener = this.lastListener;
    this.listeners.set(listener, hear);
    this.report({ do: 'listen', listener, ...stream });
    return () => {
      if (this.listeners.delete(listener)) this.report({ do: 'hangUp', listener, store: stream.store });
    };
  }

  /** @param {{do: string, [field: string]: any}} event */
  report(event) {
    this.events.push(event);
    if (this.isRunning) return;
    this.isRunning = true;
    let wake;
    for (let next; (next = this.events.shift());) {
      let answer;
      try { answer = this.engine.handle(next, clocks()); } catch (error) {
        this.fail(error);
        break;
      }
      wake = answer.wake;
      for (const step of answer.steps) this.perform(step, next);
    }
    this.isRunning = false;
    clearTimeout(this.timer);
    if (wake === undefined) return;
    this.timer = setTimeout(() => this.report({ do: 'wake' }), pauseUntil(wake));
  }

  /** @param {{do: string, [field: string]: any}} step @param {{do: string}} event What the engine was told. */
  perform(step, event) {
    switch (step.do) {
      case 'request': this.requests.send(step); break;
      case 'cancel': this.requests.cancel(step.id); break;
      case 'patience': this.requests.setPatience(step.id, step.milliseconds); break;
      case 'deliver': this.tell(this.listeners.get(step.listener), step.event ?? event); break;
      case 'end':
        this.tell(this.listeners.get(step.listener), step.event ?? event);
        this.listeners.delete(step.listener);
        break;
      default:
    }
  }

  /** What becomes of it in one store is nothing to the others. */
  tell(hear, event) { if (hear) queueMicrotask(() => hear(event)); }

  /** A trap ends all streams; the stores open them again, after a while, in another instance. */
  fail(error) {
    this.trapped();
    this.requests.close();
    const detail = `the engine of the streams has failed: ${reasonOf(error)}`;
    for (const hear of this.listeners.values()) this.tell(hear, { do: 'fail', why: 'unreachable', detail });
    this.listeners.clear();
    this.events = [];
  }
}
