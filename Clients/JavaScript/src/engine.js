// SPDX-License-Identifier: Apache-2.0

/** The engine: UbiquityCore as a WebAssembly module. An instance is one store in one process. */

import { UbiquityError, reasonOf } from './values.js';
import { decode, encode } from './plist.js';

/** Of 64 bits. */
export const randomText = () => crypto.getRandomValues(new BigUint64Array(1))[0].toString(16);

/** The clock that may be set, and the one that nobody sets. */
export const clocks = () => ({ wall: Date.now(), uptime: performance.now() });

const timerMax = 2 ** 30;
/** The milliseconds until an engine is to be woken. */
export const pauseUntil = (wake) => Math.min(Math.max(Math.ceil(wake - performance.now()), 0), timerMax);

const utf8 = { encoder: new TextEncoder(), decoder: new TextDecoder() };

/** The module, which is compiled once and shared by all stores. @type {Promise<WebAssembly.Module> | null} */
let compiled = null;

/**
 * Begins to load the module, or goes on with it.
 * @param {() => Promise<WebAssembly.Module>} compile
 * @returns {Promise<WebAssembly.Module>} It fails if the module is not there.
 * @throws {UbiquityError} At once, where there is no WebAssembly.
 */
export function engineModule(compile) {
  if (typeof WebAssembly === 'undefined') {
    throw new UbiquityError('engine', 'WebAssembly, which a store needs, is switched off here: a device in Lockdown '
      + 'Mode does that, and lets a person allow it for a site');
  }
  compiled ??= compile().catch((error) => {
    // It may be there at the next attempt.
    compiled = null;
    throw new UbiquityError('engine', `the engine of the store cannot be loaded: ${reasonOf(error)}`);
  });
  return compiled;
}

/** What the engine did not understand: an event of a shell, or what a disk had. The engine goes on. */
export class EventError extends UbiquityError {
  constructor(message) { super('storage', message); }
}

export class Engine {
  /** An engine that shows what a disk has, and does nothing else. */
  static showing(module, store, content) {
    const engine = new Engine(module);
    engine.handle({ do: 'start', boot: '', seed: '0', store, content }, clocks());
    return engine;
  }

  /** @param {WebAssembly.Module} module */
  constructor(module) {
    const shell = {
      random: (at, count) => { crypto.getRandomValues(new Uint8Array(this.memory.buffer, at, count)); },
      number: (at, count) => Number(utf8.decoder.decode(new Uint8Array(this.memory.buffer, at, count))),
    };
    this.functions = /** @type {any} */ (new WebAssembly.Instance(module, { shell }).exports);
    this.memory = this.functions.memory;
  }

  /** As the engine reads it. What cannot be said has not touched the engine. */
  said(word) {
    try { return encode(word); } catch (error) {
      throw new EventError(`the engine cannot be told of it: ${reasonOf(error)}`);
    }
  }

  /** Puts bytes where the engine reads them. @param {Uint8Array} bytes @returns {number} Their number. */
  put(bytes) {
    const at = this.functions.buffer(bytes.length);
    new Uint8Array(this.memory.buffer).set(bytes, at);
    return bytes.length;
  }

  take(count) { return decode(new Uint8Array(this.memory.buffer, this.functions.buffer(0), count)); }

  /**
   * Tells the engine what has happened.
   * @param {{do: string, [field: string]: any}} event @param {{wall: number, uptime: number}} now
   * @returns {any} What to do, in `steps`, and when to wake it, in `wake`; or the answer to a question.
   */
  handle(event, { wall, uptime }) {
    const answer = this.take(this.functions.handle(this.put(this.said(event)), wall, uptime));
    if (answer.error) throw new EventError(`the engine does not understand "${event.do}": ${answer.detail}`);
    return answer;
  }

  /**
   * Writes as one transaction. What follows are the steps of the next event.
   * @param {{how?: 'parts' | 'revert'}} [more]
   * @returns {{error?: string, detail?: string, changed?: string[], entries?: any[]}} Why it was refused, or what has
   *     changed; and what to redo if this instance ends before a save has it.
   */
  write(writes, { wall, uptime }, more = {}) {
    return this.take(this.functions.write(this.put(this.said({ writes, ...more })), wall, uptime));
  }

  /** The value of a key as a property list; undefined if there is none. */
  value(key) {
    const count = this.functions.value(this.put(utf8.encoder.encode(key)));
    return count ? new Uint8Array(this.memory.buffer, this.functions.buffer(0), count).slice() : undefined;
  }
}
