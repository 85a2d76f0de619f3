// SPDX-License-Identifier: Apache-2.0

/**
 * Small rules: pauses, the allowance, receipts, limits.
 *
 * @typedef {import('./records.js').Row} Row
 * @typedef {import('./values.js').Wire} Wire
 * @typedef {{storeBytesMax: number, keysMax: number, valueBytesMax: number, keyBytesMax: number,
 *     keyUtf16Max: number, pushBytesMax: number}} Limits
 */

import {
  UbiquityError, checkedInteger, isObject, quotaBytes, textBytes,
} from './values.js';
import { isTakenAway } from './merging.js';

/** Random numbers from a seed, so that a run can be repeated. */
export class Random {
  /** @param {string} seed Hexadecimal digits. */
  constructor(seed) { this.state = BigInt(`0x${seed}`); }

  /** 64 random bits as hexadecimal digits. */
  next() {
    this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
    let z = this.state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return (z ^ (z >> 31n)).toString(16).padStart(16, '0');
  }

  /** A whole number from 0 up to, but not including, a maximum. */
  below(max) { return parseInt(this.next().slice(0, 12), 16) % max; }
}

/** Pauses that double up to a minute, with some randomness, in milliseconds. */
export class Backoff {
  attempts = 0;

  fail(random) {
    const delay = Math.min(250 * 2 ** Math.min(this.attempts, 10), 60_000);
    this.attempts += 1;
    return delay / 2 + random.below(delay / 2 + 1);
  }

  succeed() { this.attempts = 0; }
}

/** How often a device may push: a burst at once, and a rate in the long run. */
export class TokenBucket {
  constructor(allowance, now = 0) {
    this.allowance = allowance;
    this.tokens = allowance.burst;
    this.countedAt = now;
  }

  /** Takes a token. @returns {number} The milliseconds until there is one; 0 if it was taken. */
  take(now) {
    this.refill(now);
    if (this.tokens >= 1) {
      this.tokens -= 1;
      return 0;
    }
    const wait = Math.ceil((1 - this.tokens) / this.allowance.perSecond * 1_000);
    return Math.min(Math.max(1, wait), 3_600_000);
  }

  /** The cost of a push beyond its token, which the next push waits for. */
  charge(bytes) { this.tokens -= Math.floor(bytes / 8_192); }

  adopt(allowance, now) {
    this.refill(now);
    this.allowance = allowance;
    this.tokens = Math.min(this.tokens, allowance.burst);
  }

  refill(now) {
    const seconds = Math.max(0, now - this.countedAt) / 1_000;
    const { burst, perSecond } = this.allowance;
    this.tokens = Math.min(burst, this.tokens + seconds * perSecond);
    this.countedAt = Math.max(this.countedAt, now);
  }
}

/** Decides when the server is told up to which cursor everything is saved. */
export class Receipts {
  /** @param {string | null} saved The cursor on disk. */
  constructor(saved) {
    this.saved = saved;
    this.hasNews = false;
    this.downloads = 0;
    /** @type {number | null} When changes by others were saved that it was not told. */
    this.owedSince = null;
    this.notBefore = -Infinity;
  }

  received(isWhole = false, isByOthers = false) {
    if (isWhole) {
      this.saved = null;
      this.downloads += 1;
    }
    this.hasNews ||= isWhole || isByOthers;
  }

  /** @param {string | null} cursor */
  beginSave(cursor) {
    const saving = { cursor, hasNews: this.hasNews, downloads: this.downloads };
    this.hasNews = false;
    return saving;
  }

  finishSave(saving, now) {
    if (saving.downloads !== this.downloads) return;
    this.saved = saving.cursor;
    if (saving.hasNews) this.owedSince ??= now;
  }

  /** The server has answered a request that named this cursor. @param {string | null} cursor */
  told(cursor) { if (cursor !== null && cursor === this.saved) this.owedSince = null; }

  /** When a request of its own is due: a second after a save, five at once, then one a minute. */
  get dueAt() {
    if (this.saved === null || this.owedSince === null) return Infinity;
    return Math.max(this.owedSince + 1_000, this.notBefore);
  }

  sending(now) {
    this.notBefore = Math.max(this.notBefore, now - 240_000) + 60_000;
  }
}

/** @type {Limits} */
export const defaultLimits = {
  storeBytesMax: 1_048_576, keysMax: 1_024, valueBytesMax: 1_048_576, keyBytesMax: 64,
  keyUtf16Max: 0, pushBytesMax: 8_388_608,
};
/** The highest limits that are believed, whatever a server announces. @type {Limits} */
const ceiling = {
  storeBytesMax: 2 ** 26, keysMax: 65_536, valueBytesMax: 2 ** 26, keyBytesMax: 1_024,
  keyUtf16Max: 1_024, pushBytesMax: 2 ** 26,
};
export const partsMax = 16_384;
/** The most tombstones that are kept, if the server does not say up to when it forgot its own. */
export const tombstonesMax = 4 * 16_384;

/** Reads `Config`. @throws {import('./values.js').WireError} */
export function checkedConfig(json) {
  const number = (one) => Number(checkedInteger(one ?? 0, 0n, 2n ** 64n - 1n));
  const [announced, allowance] = [json?.limits ?? {}, json?.allowance ?? {}];
  const limits = { ...defaultLimits };
  for (const name of /** @type {(keyof Limits)[]} */ (Object.keys(limits))) {
    limits[name] = Math.min(number(isObject(announced) ? announced[name] : 0), ceiling[name]);
  }
  const perSecond = Number(allowance.perSecond);
  return {
    server: number(json?.serverMilliseconds), limits,
    allowance: {
      burst: Math.max(1, number(allowance.burst)),
      perSecond: perSecond > 0 && Number.isFinite(perSecond) ? perSecond : 1,
    },
    keepAliveSeconds: number(json?.keepAliveSeconds),
  };
}

/** What an entry counts towards the bytes of its store. @param {Wire | null} value */
export const entryBytes = (value, part = '') =>
  (value ? quotaBytes(value) + (part ? textBytes(part) + 16 : 0) : 0);

/** The space that values take. */
export class Usage {
  bytes = 0;
  keys = 0;
  parts = 0;

  /** @param {Wire | null} old @param {Wire | null} value */
  replace(old, value, part = '') {
    this.bytes += entryBytes(value, part) - entryBytes(old, part);
    this[part ? 'parts' : 'keys'] += (value ? 1 : 0) - (old ? 1 : 0);
  }

  copy() { return Object.assign(new Usage(), this); }
}

/** @returns {UbiquityError | null} What is exceeded, unless it was already and does not grow. */
function exceeded(from, to, limits, factor = 1) {
  const maxima = [['keys', limits.keysMax, 'keys'], ['parts', partsMax, 'parts of keys'],
    ['bytes', limits.storeBytesMax, 'bytes']];
  for (const [name, max, words] of maxima) {
    if (to[name] > max * factor && to[name] > from[name]) {
      return new UbiquityError(`quota-${name}`,
        `the store would have ${to[name]} ${words}, but may have at most ${max}`);
    }
  }
  return null;
}

/** Whether a key fits the limit. */
export const fitsKey = (key, limits) =>
  (limits.keyUtf16Max ? key.length <= limits.keyUtf16Max : textBytes(key) <= limits.keyBytesMax);

/**
 * Checks a transaction before anything is stored. What deletes or shrinks always passes.
 * @param {{key: string, part: string, value: Wire | null}[]} writes
 * @throws {UbiquityError}
 */
export function checkLimits(writes, from, to, limits) {
  for (const { key, value } of writes) {
    if (!value) continue;
    if (!fitsKey(key, limits)) {
      const max = limits.keyUtf16Max ? `${limits.keyUtf16Max} UTF-16 units`
        : `${limits.keyBytesMax} bytes of UTF-8`;
      throw new UbiquityError('key-too-long', `a key may have at most ${max}`);
    }
    const bytes = quotaBytes(value);
    if (bytes > limits.valueBytesMax) {
      throw new UbiquityError('value-too-large',
        `the value has ${bytes} bytes, but may have at most ${limits.valueBytesMax}`);
    }
  }
  const error = exceeded(from, to, limits);
  if (!error) return;
  // The removal of a key with a policy writes removals of its parts.
  const onlyRemoves = writes.some(({ part }) => part) && writes.every(isTakenAway);
  const worse = onlyRemoves ? exceeded(from, to, limits, 2) : error;
  if (worse) throw worse;
}

/** What is accepted from a server: four times what a store may have. */
export function isTooMuch(from, to, limits) {
  const most = (name) =>
    Math.min(4 * Math.max(limits?.[name] ?? ceiling[name], defaultLimits[name]), ceiling[name]);
  const intake = { ...ceiling, storeBytesMax: most('storeBytesMax'), keysMax: most('keysMax') };
  return to.parts > 4 * partsMax ? to.parts > from.parts
    : exceeded({ ...from, parts: 0 }, { ...to, parts: 0 }, intake) !== null;
}
