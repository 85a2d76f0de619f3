// SPDX-License-Identifier: Apache-2.0

/** Small rules: pauses, the allowance, receipts, limits. */

import { bytesPerToken, ceiling, defaultLimits, partsMax } from './limits.js';
import { checkedNumber } from './records.js';
import { isTakenAway } from './merging.js';
import { UbiquityError, quotaBytes, textBytes } from './values.js';

/** Random numbers from a seed, so that a run can be repeated. */
export class Random {
  /** @param {string} seed Hexadecimal digits. */
  constructor(seed) { this.state = BigInt(`0x${seed}`); }

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
  constructor(allowance, now) {
    this.allowance = allowance;
    this.tokens = allowance.burst;
    this.countedAt = now;
  }

  /** Takes a token. @returns {number} The milliseconds until there is one; 0 if it was taken. */
  take(now) {
    this.adopt(this.allowance, now);
    if (this.tokens < 1) {
      const wait = Math.ceil((1 - this.tokens) / this.allowance.perSecond * 1_000);
      return Math.min(Math.max(1, wait), 3_600_000);
    }
    this.tokens -= 1;
    return 0;
  }

  /** The cost of a push beyond its token, which the next push waits for. */
  charge(bytes) { this.tokens -= Math.floor(bytes / bytesPerToken); }

  /** The tokens since the last count are those of the old allowance. */
  adopt(allowance, now) {
    const seconds = Math.max(0, now - this.countedAt) / 1_000;
    const tokens = Math.min(this.allowance.burst, this.tokens + seconds * this.allowance.perSecond);
    this.tokens = Math.min(tokens, allowance.burst);
    this.allowance = allowance;
    this.countedAt = Math.max(this.countedAt, now);
  }
}

/** Decides when the server is told up to which cursor everything is saved. */
export class Receipts {
  hasNews = false;
  saving = null;
  /** When changes by others were saved that it was not told. @type {number | null} */
  owedSince = null;
  notBefore = -Infinity;
  /** @param {string | null} saved The cursor on disk. */
  constructor(saved) { this.saved = saved; }

  received(isWhole, isByOthers) {
    if (isWhole) [this.saved, this.saving] = [null, null];
    this.hasNews ||= isWhole || isByOthers;
  }

  beginSave(cursor) {
    this.saving = { cursor, hasNews: this.hasNews };
    this.hasNews = false;
  }

  finishSave(now) {
    if (!this.saving) return;
    this.saved = this.saving.cursor;
    if (this.saving.hasNews) this.owedSince ??= now;
    this.saving = null;
  }

  undoSave() {
    this.hasNews ||= this.saving?.hasNews ?? false;
    this.saving = null;
  }

  /** The server has answered a request that named this cursor. @param {string | null} cursor */
  told(cursor) { if (cursor !== null && cursor === this.saved) this.owedSince = null; }

  /** When a request of its own is due: a second after a save, five at once, then one a minute. */
  get dueAt() {
    if (this.saved === null || this.owedSince === null) return Infinity;
    return Math.max(this.owedSince + 1_000, this.notBefore);
  }

  sending(now) { this.notBefore = Math.max(this.notBefore, now - 240_000) + 60_000; }
}

export function checkedConfig(json) {
  const number = (one) => checkedNumber(one, 2n ** 64n - 1n);
  const limits = Object.fromEntries(Object.entries(ceiling).map(([name, max]) =>
    [name, Math.min(number(json?.limits?.[name]), max)]));
  const perSecond = Number(json?.allowance?.perSecond);
  return {
    server: number(json?.serverMilliseconds), limits: /** @type {Limits} */ (limits),
    allowance: { burst: Math.max(1, number(json?.allowance?.burst)),
      perSecond: perSecond > 0 && Number.isFinite(perSecond) ? perSecond : 1 },
    keepAliveSeconds: number(json?.keepAliveSeconds),
  };
}

/** The bytes that an entry counts in its store. @param {Wire | null} value */
export const entryBytes = (value, part = '') =>
  (value ? quotaBytes(value) + (part ? textBytes(part) + 16 : 0) : 0);

export class Usage {
  bytes = 0;
  keys = 0;
  parts = 0;

  replace(old, value, part = '') {
    this.bytes += entryBytes(value, part) - entryBytes(old, part);
    this[part ? 'parts' : 'keys'] += (value ? 1 : 0) - (old ? 1 : 0);
  }
  copy() { return Object.assign(new Usage(), this); }
}

/** @returns {UbiquityError | null} What is exceeded, unless it was already and does not grow. */
function exceeded(from, to, limits, factor = 1) {
  for (const [name, max, words] of [['keys', limits.keysMax, 'keys'], ['parts', partsMax, 'parts of keys'],
    ['bytes', limits.storeBytesMax, 'bytes']]) {
    if (to[name] > max * factor && to[name] > from[name]) {
      return new UbiquityError(`quota-${name}`,
        `the store would have ${to[name]} ${words}, but may have at most ${max}`);
    }
  }
  return null;
}

export const fitsKey = (key, { keyUtf16Max, keyBytesMax }) =>
  (keyUtf16Max ? key.length <= keyUtf16Max : textBytes(key) <= keyBytesMax);

/**
 * Checks a transaction before anything is stored. What deletes or shrinks always passes.
 * @param {{key: string, part: string, value: Wire | null}[]} writes
 * @throws {UbiquityError}
 */
export function checkLimits(writes, from, to, limits) {
  for (const { key, value } of writes.filter((one) => one.value)) {
    if (!fitsKey(key, limits)) {
      const max = limits.keyUtf16Max ? `${limits.keyUtf16Max} UTF-16 units`
        : `${limits.keyBytesMax} bytes of UTF-8`;
      throw new UbiquityError('key-too-long', `a key may have at most ${max}`);
    }
    if (quotaBytes(value) > limits.valueBytesMax) {
      throw new UbiquityError('value-too-large',
        `the value has ${quotaBytes(value)} bytes, but may have at most ${limits.valueBytesMax}`);
    }
  }
  // The removal of a key with a policy writes removals of its parts.
  const onlyRemoves = writes.some(({ part }) => part) && writes.every(isTakenAway);
  const error = exceeded(from, to, limits, onlyRemoves ? 2 : 1);
  if (error) throw error;
}

/** Whether it is more than is accepted from a server: four times what a store may have. */
export function isTooMuch(from, to, limits) {
  const most = (name) =>
    Math.min(4 * Math.max(limits?.[name] ?? ceiling[name], defaultLimits[name]), ceiling[name]);
  const intake = { storeBytesMax: most('storeBytesMax'), keysMax: most('keysMax') };
  return to.parts > 4 * partsMax ? to.parts > from.parts
    : exceeded({ ...from, parts: 0 }, { ...to, parts: 0 }, intake) !== null;
}
