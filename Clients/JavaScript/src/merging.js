// SPDX-License-Identifier: Apache-2.0

/**
 * Keys with a conflict policy: the value that their parts make, and the parts that a write makes.
 * docs/PROTOCOL.md, "Parts".
 *
 * @typedef {import('./values.js').Wire} Wire
 * @typedef {{part: string, value: Wire, stamp: string}} Part A part with a value.
 * @typedef {{value: Wire, stamp: string}} Own The key's own value.
 * @typedef {(earlier: Own, later: Own) => Wire} Resolver An app's own rule.
 * @typedef {{policy: string, old: Wire | null, value: Wire | null}} Operation
 *     A write from the value that the app knew to the one that it wants; null for none.
 * @typedef {Map<string, {part: string, value: Wire}>} OwnParts
 */

import {
  compareText, compareValues, isSame, textBytes, wireArray, wireDictionary,
} from './values.js';
import {
  add, comparable, comparableRemoved, countOf, isLess, subtract, sumOf, wireCount, wireSum,
} from './numbers.js';

/** The letter of each policy, with which its parts begin. @type {Record<string, string>} */
export const policies = {
  counter: 'c', maximum: 'x', minimum: 'n', unionOfArrays: 'a', unionOfDictionaries: 'd',
  custom: 'r',
};
const letters = new Set(Object.values(policies));
/** The most parts of a maximum or minimum that a raise leaves. */
const reachedPartsMax = 16;

const kindOf = (part) => (letters.has(part[0]) ? part[0] : null);
const nameOf = (part) => part.slice(1);
const removalID = (part) => `c-${part.slice(1)}`;
const isRemoval = (part) => part.startsWith('c-');

/** Whether a policy can merge a value. */
export function fits(policy, value) {
  switch (policy) {
    case 'c': return sumOf(value) !== null;
    case 'x': case 'n': return comparable(value) !== null;
    case 'a': return value.array !== undefined;
    case 'd': return value.dictionary !== undefined && entriesOf(value)
      .every(([key]) => textBytes(key) < 1_024);
    default: return true;
  }
}

/** Whether a write only takes away: a deletion, or how far a part is removed. */
export function isTakenAway({ part, value }) {
  if (!value) return true;
  if (part === '') {
    return isSame(value, { array: {} }) || isSame(value, { dictionary: {} });
  }
  return isRemoval(part) || ('xn'.includes(part[0]) && comparableRemoved(value) !== null);
}

const valuesOf = (value) => value?.array?.values ?? [];
/** @returns {[string, Wire][]} */
const entriesOf = (value) =>
  (value?.dictionary?.entries ?? []).map(({ key, value: one }) => [key, one]);
const text = (value) => JSON.stringify(value);

/** Everything stored for one key. */
export class MergeState {
  /** @param {Own | null} own @param {Part[]} parts Without deletions. */
  constructor(own, parts) {
    this.own = own;
    /** In the order in which they were written. */
    this.all = [...parts].sort((a, b) =>
      (a.stamp < b.stamp ? -1 : a.stamp > b.stamp ? 1 : compareText(a.part, b.part)));
    this.removals = new Map(this.all.filter(({ part }) => isRemoval(part))
      .map(({ part, value }) => [part, countOf(value)]));
    /** Those that are not removed. */
    this.parts = this.all.filter(({ part, value }) => {
      switch (part[0]) {
        case 'c': {
          const count = isRemoval(part) ? null : countOf(value);
          const removed = this.removals.get(removalID(part));
          return count !== null && (!removed || count.times > removed.times);
        }
        case 'x': case 'n': return comparableRemoved(value) === null;
        default: return true;
      }
    });
    const last = this.parts.at(-1);
    /** The letter of the last part's policy. @type {string | null} */
    this.policy = last ? kindOf(last.part) : null;
  }

  of(kind) { return this.parts.filter(({ part }) => part[0] === kind); }

  /** The value of a part, removed or not. */
  content(id) {
    return this.all.find(({ part }) => part === id)?.value ?? null;
  }

  /** The writes that remove all parts that are seen here, and nothing added to them later. */
  removal() { return new Map(this.parts.map(removalOf)); }

  /** The value that the app sees; null if there is none. @returns {Wire | null} */
  value(resolver) {
    if (!this.policy) return this.parts.at(-1)?.value ?? this.own?.value ?? null;
    const parts = this.of(this.policy);
    switch (this.policy) {
      case 'c': return this.sum(parts);
      case 'x': return this.greatest(parts, isLess);
      case 'n': return this.greatest(parts, (a, b) => isLess(b, a));
      case 'a': {
        const all = [...valuesOf(this.own?.value), ...parts.map(({ value }) => value)];
        return wireArray([...new Map(all.map((one) => [text(one), one])).values()]);
      }
      case 'd': {
        const entries = new Map(entriesOf(this.own?.value));
        for (const { part, value } of parts) entries.set(nameOf(part), value);
        return wireDictionary([...entries].map(([key, value]) => ({ key, value })));
      }
      default: return this.resolved(parts, resolver);
    }
  }

  /** In the order of the names, because it matters for reals. @param {Part[]} parts */
  sum(parts) {
    let sum = sumOf(this.own?.value ?? null) ?? 0n;
    for (const { part, value } of [...parts].sort((a, b) => compareText(a.part, b.part))) {
      const count = countOf(value);
      const removed = this.removals.get(removalID(part))?.total ?? 0n;
      if (count) sum = add(sum, add(count.total, removed));
    }
    return wireSum(sum);
  }

  /**
   * @param {Part[]} parts
   * @param {typeof isLess} less
   */
  greatest(parts, less) {
    const all = [this.own?.value, ...parts.map(({ value }) => value)].map(comparable)
      .filter((one) => one !== null);
    const last = all.at(-1)?.class;
    if (last === undefined) return parts.at(-1)?.value ?? null;
    return all.filter((one) => one?.class === last)
      .reduce((a, b) => (a && b && less(a, b) ? b : a))?.value ?? null;
  }

  /** @param {Part[]} parts @param {Resolver | undefined} resolver */
  resolved(parts, resolver) {
    const all = [...parts, ...(this.own ? [this.own] : [])].sort((a, b) =>
      (a.stamp < b.stamp ? -1 : a.stamp > b.stamp ? 1 : compareValues(a.value, b.value)));
    if (!resolver) return all.at(-1)?.value ?? null;
    return all.reduce((earlier, later) => (isSame(earlier.value, later.value) ? later
      : { ...later, value: resolver(earlier, later) }))?.value ?? null;
  }
}

/** @returns {[string, Wire | null]} */
function removalOf({ part, value }) {
  const count = part[0] === 'c' ? countOf(value) : null;
  if (count) return [removalID(part), wireCount(count.times, subtract(0n, count.total))];
  if ('xn'.includes(part[0]) && comparable(value)) return [part, { array: { values: [value] } }];
  return [part, null];
}

/** Names for parts that no other run of any app ever uses. */
export class PartNames {
  /** @param {string} run 16 random hexadecimal digits. */
  constructor(run) {
    this.run = run;
    this.count = 0;
    /** The part that this run changes in place, by the key. @type {OwnParts} */
    this.own = new Map();
  }

  /** The part that this run continues: one that is as it left it. */
  continued(policy, key, state) {
    const own = this.own.get(key);
    const isUsable = own && own.part[0] === policy && !state.removals.has(removalID(own.part))
      && isSame(state.content(own.part), own.value);
    return isUsable ? own : null;
  }

  begin(policy, key) {
    return this.own.has(key) ? this.next(policy) : policy + this.run;
  }

  /** A name that sorts after those before. */
  next(policy) {
    this.count += 1;
    return `${policy}${this.run}.${this.count.toString(36).padStart(7, '0')}`;
  }
}

/**
 * The writes that an operation makes: the new value, or null to delete, of each part; '' is the
 * key itself. The key's own value is never turned into parts: two devices that continue from it
 * would count it twice.
 * @param {Operation} operation @param {string} key @param {MergeState} state
 * @param {Resolver | undefined} resolver @param {PartNames} names
 */
export function partChanges({ policy, old, value }, key, state, resolver, names) {
  const writes = new Map();
  if (value === null) {
    if (state.own) writes.set('', null);
    for (const [part, content] of state.removal()) writes.set(part, content);
    return writes;
  }
  const own = () => (writes.has('') ? writes.get('') ?? null : state.own?.value ?? null);
  const kept = () => state.of(policy).filter(({ part }) => !writes.has(part));
  const remove = (part) => writes.set(...removalOf(part));
  const visible = state.value(resolver);
  const last = state.parts.at(-1);
  if (last && kindOf(last.part) !== policy) {
    // Another version of the app wrote with another policy.
    writes.set('', visible && fits(policy, visible) ? visible : null);
    for (const [part, content] of state.removal()) writes.set(part, content);
  } else {
    const plain = own();
    if (plain && !fits(policy, plain)) writes.set('', null);
    for (const part of state.parts) if (part.part[0] !== policy) remove(part);
  }
  /** Changes in place what this run has, or begins it. */
  const leave = (content, id) => {
    const part = id ?? names.begin(policy, key);
    writes.set(part, content);
    names.own.set(key, { part, value: content });
    return part;
  };
  switch (policy) {
    case 'c': {
      const difference = subtract(sumOf(value) ?? 0n, sumOf(old) ?? 0n);
      // A counter that was set but never counted must exist, as zero.
      if (Number(difference) === 0 && visible) break;
      const mine = names.continued(policy, key, state);
      const counted = countOf(mine?.value) ?? { times: 0n, total: 0n };
      leave(wireCount(counted.times + 1n, add(counted.total, difference)), mine?.part);
      break;
    }
    case 'x': case 'n': {
      const raised = comparable(value);
      const isBeaten = [own(), ...kept().map((part) => part.value)].some((one) => {
        const present = comparable(one);
        return raised && present?.class === raised.class
          && !(policy === 'x' ? isLess(present, raised) : isLess(raised, present));
      });
      if (!raised || isBeaten) break;
      const plain = own();
      if (plain && comparable(plain)?.class !== raised.class) writes.set('', null);
      for (const part of kept()) {
        if (comparable(part.value)?.class !== raised.class) remove(part);
      }
      const mine = names.continued(policy, key, state);
      const isMine = comparable(mine?.value)?.class === raised.class;
      const id = leave(value, isMine ? mine?.part : undefined);
      const others = state.all.filter(({ part }) => part[0] === policy && part !== id);
      for (const { part } of others.slice(0, Math.max(0, others.length - reachedPartsMax + 1))) {
        writes.set(part, null);
      }
      break;
    }
    case 'a': {
      const wanted = new Set(valuesOf(value).map(text));
      const removed = new Set(valuesOf(old).map(text).filter((one) => !wanted.has(one)));
      for (const part of kept()) if (removed.has(text(part.value))) remove(part);
      if (!own() && (removed.size || !wanted.size)) writes.set('', { array: {} });
      const plain = valuesOf(own());
      const rest = plain.filter((one) => !removed.has(text(one)));
      if (rest.length < plain.length) {
        writes.set('', wireArray(rest));
      }
      const known = new Set([...kept().map((part) => part.value), ...rest, ...valuesOf(old)]
        .map(text));
      for (const element of valuesOf(value)) {
        if (!known.has(text(element))) writes.set(names.next(policy), element);
        known.add(text(element));
      }
      break;
    }
    case 'd': {
      const [before, after] = [new Map(entriesOf(old)), new Map(entriesOf(value))];
      const removed = new Set([...before.keys()].filter((one) => !after.has(one)));
      for (const part of kept()) if (removed.has(nameOf(part.part))) remove(part);
      if (!own() && (removed.size || !after.size)) writes.set('', { dictionary: {} });
      const plain = entriesOf(own());
      const rest = plain.filter(([one]) => !removed.has(one));
      if (rest.length < plain.length) {
        writes.set('', wireDictionary(rest.map(([one, content]) => (
          { key: one, value: content }))));
      }
      for (const [name, content] of after) {
        if (isSame(before.get(name) ?? null, content)) continue;
        const part = policy + name;
        if (writes.has(part) || !isSame(state.content(part), content)) {
          writes.set(part, content);
        }
      }
      break;
    }
    default: {
      if (isSame(value, visible)) break;
      const hasSeenAll = isSame(old, visible);
      for (const part of kept()) if (hasSeenAll || isSame(part.value, old)) remove(part);
      const plain = own();
      if (plain && (hasSeenAll || isSame(plain, old))) writes.set('', null);
      writes.set(names.next(policy), value);
    }
  }
  return writes;
}
