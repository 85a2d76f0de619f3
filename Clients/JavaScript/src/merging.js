// SPDX-License-Identifier: Apache-2.0

/**
 * Keys with a conflict policy: the value that their parts make, and the parts that a write makes.
 * docs/PROTOCOL.md, "Parts".
 */

import {
  compare, compareText, compareValues, isSame, textBytes, wireArray, wireDictionary, wireReal,
} from './values.js';

// Numbers and other values that policies add up or compare. An integer is a BigInt, a real a number.

const [min, max] = [-(2n ** 63n), 2n ** 63n - 1n];

/** The number of a value; null if it is not one. A Boolean is not one. @returns {bigint | number | null} */
export function sumOf(wire) {
  if (wire?.integer !== undefined) return BigInt(wire.integer);
  const number = wire?.unsigned ?? wire?.real;
  return number === undefined ? null : Number(number);
}

/** Adds. Integers stay integers, and become the nearest one of 64 bits. @returns {bigint | number} */
export function add(a, b) {
  if (typeof a === 'number' || typeof b === 'number') return Number(a) + Number(b);
  return a + b < min ? min : a + b > max ? max : a + b;
}
/** @returns {bigint | number} */
const subtract = (a, b) => add(a, -b);

/** @returns {Wire} */
export const wireSum = (sum) =>
  (typeof sum === 'bigint' ? { integer: String(sum) } : { real: wireReal(sum) });

/** A run's count: how many times it has counted, and its total; null if it is not one. */
export function countOf(wire) {
  const values = wire?.array?.values;
  if (values?.length !== 2 || values[0].integer === undefined) return null;
  const total = sumOf(values[1]);
  return total === null ? null : { times: BigInt(values[0].integer), total };
}

/** @returns {Wire} */
const wireCount = (times, total) => wireArray([{ integer: String(times) }, wireSum(total)]);

/** The form of a value that can be compared in its class: a number, a date or a string; otherwise null. */
export function comparable(value) {
  if (!value) return null;
  const [kind, content] = Object.entries(value)[0];
  const place = { integer: 0, unsigned: 0, real: 0, date: 1, string: 2 }[kind];
  if (place === undefined) return null;
  const size = kind === 'string' ? 0 : Number(content);
  return { class: place, size: Number.isNaN(size) ? -Infinity : size, value };
}

/** The value up to which a part says that it is removed; null if it says none. */
export const comparableRemoved = (value) =>
  (value.array?.values?.length === 1 ? comparable(value.array.values[0]) : null);

/** A total order, in which the same number of different types has different places. */
export function isLess(a, b) {
  if (a.class !== b.class) return a.class < b.class;
  return a.size !== b.size ? a.size < b.size : compareValues(a.value, b.value) < 0;
}

/** The letter of each policy, with which its parts begin. @type {Record<string, string>} */
export const policies = {
  counter: 'c', maximum: 'x', minimum: 'n', unionOfArrays: 'a', unionOfDictionaries: 'd', custom: 'r',
};
const letters = new Set(Object.values(policies));
/** The most parts of a maximum or minimum that a raise leaves. */
const reachedPartsMax = 16;
const kindOf = (part) => (letters.has(part[0]) ? part[0] : null);
const removalID = (part) => `c-${part.slice(1)}`;
const isRemoval = (part) => part.startsWith('c-');
export const isReached = (policy) => policy === 'x' || policy === 'n';

/** Whether a policy can merge a value. */
export function fits(policy, value) {
  switch (policy) {
    case 'c': return sumOf(value) !== null;
    case 'x': case 'n': return comparable(value) !== null;
    case 'a': return value.array !== undefined;
    case 'd': return value.dictionary !== undefined
      && (value.dictionary.entries ?? []).every(({ key }) => textBytes(key) < 1_024);
    default: return true;
  }
}

/** Whether a value is the empty collection that a key with parts has as its own. */
export const isEmpty = (value) => isSame(value, { array: {} }) || isSame(value, { dictionary: {} });

/** Whether a write only takes away: a deletion, or how far a part is removed. */
export const isTakenAway = ({ part, value }) => !value || (part === '' ? isEmpty(value)
  : isRemoval(part) || (isReached(part[0]) && comparableRemoved(value) !== null));

// The elements of an array, by their texts, and the entries of a dictionary.

const text = (value) => JSON.stringify(value);
/** @returns {Map<string, Wire>} */
const itemsOf = (policy, value) => new Map(policy === 'a'
  ? (value?.array?.values ?? []).map((one) => [text(one), one])
  : (value?.dictionary?.entries ?? []).map((entry) => [entry.key, entry.value]));
const itemName = ({ part, value }) => (part[0] === 'a' ? text(value) : part.slice(1));
const collection = (policy, items) => (policy === 'a' ? wireArray([...items.values()])
  : wireDictionary([...items].map(([key, value]) => ({ key, value }))));

/** Everything stored for one key. */
export class MergeState {
  /** @param {Part | null} own @param {Part[]} parts Without deletions. */
  constructor(own, parts) {
    this.own = own;
    /** In the order in which they were written. */
    this.all = [...parts].sort((a, b) => compare(a.stamp, b.stamp) || compareText(a.part, b.part));
    this.removals = new Map(this.all.filter(({ part }) => isRemoval(part))
      .map(({ part, value }) => [part, countOf(value)]));
    /** The parts that are not removed. */
    this.parts = this.all.filter(({ part, value }) => {
      if (isReached(part[0])) return comparableRemoved(value) === null;
      if (part[0] !== 'c') return true;
      const count = isRemoval(part) ? null : countOf(value);
      const removed = this.removals.get(removalID(part));
      return count !== null && (!removed || count.times > removed.times);
    });
    /** The letter of the last part's policy. @type {string | null} */
    this.policy = this.parts.length ? kindOf(this.parts.at(-1).part) : null;
  }

  of(kind) { return this.parts.filter(({ part }) => part[0] === kind); }
  /** The value of a part, removed or not. */
  content(id) { return this.all.find(({ part }) => part === id)?.value ?? null; }
  /** The writes that remove all parts that are seen here, and nothing added to them later. */
  removal() { return new Map(this.parts.map(removalOf)); }

  /** The value that the app sees; null if there is none. @returns {Wire | null} */
  value(resolver) {
    const { policy, own } = this;
    if (!policy) return this.parts.at(-1)?.value ?? own?.value ?? null;
    const parts = this.of(policy);
    switch (policy) {
      case 'c': return this.sum(parts);
      case 'x': case 'n': return this.reached(parts);
      case 'a': case 'd': {
        const items = itemsOf(policy, own?.value);
        for (const part of parts) items.set(itemName(part), part.value);
        return collection(policy, items);
      }
      default: {
        const all = [...parts, ...(own ? [own] : [])]
          .sort((a, b) => compare(a.stamp, b.stamp) || compareValues(a.value, b.value));
        if (!resolver) return all.at(-1).value;
        return all.reduce((earlier, later) => (isSame(earlier.value, later.value) ? later
          : { ...later, value: resolver(earlier, later) })).value;
      }
    }
  }

  /** In the order of the names, because it matters for reals. @param {Part[]} parts */
  sum(parts) {
    let sum = sumOf(this.own?.value) ?? 0n;
    for (const { part, value } of [...parts].sort((a, b) => compareText(a.part, b.part))) {
      sum = add(sum, add(countOf(value).total, this.removals.get(removalID(part))?.total ?? 0n));
    }
    return wireSum(sum);
  }

  /** The greatest, or the least, of the last part's class. @param {Part[]} parts */
  reached(parts) {
    const all = [this.own, ...parts].map((one) => comparable(one?.value)).filter((one) => one !== null);
    const alike = all.filter((one) => one.class === all.at(-1).class);
    const isLast = isFurther(this.policy);
    return alike.length ? alike.reduce((a, b) => (isLast(b, a) ? b : a)).value : parts.at(-1)?.value ?? null;
  }
}

/** @returns {(a: any, b: any) => boolean} Whether one value is further along than another. */
const isFurther = (policy) => (a, b) => (policy === 'x' ? isLess(b, a) : isLess(a, b));

/** @returns {[string, Wire | null]} */
function removalOf({ part, value }) {
  const count = part[0] === 'c' ? countOf(value) : null;
  if (count) return [removalID(part), wireCount(count.times, subtract(0n, count.total))];
  return [part, isReached(part[0]) && comparable(value) ? wireArray([value]) : null];
}

/** Names for parts that no other run of any app ever uses. */
export class PartNames {
  /** @param {string} run 16 random hexadecimal digits. */
  constructor(run) {
    this.run = run;
    this.count = 0;
    /** The part, and its value, that this run changes in place, by the key. */
    this.own = new Map();
  }

  copy() { return Object.assign(new PartNames(this.run), { count: this.count, own: new Map(this.own) }); }

  /** The part that this run continues: one that is as it left it. */
  continued(policy, key, state) {
    const own = this.own.get(key);
    const isUsable = own && own.part[0] === policy && !state.removals.has(removalID(own.part))
      && isSame(state.content(own.part), own.value);
    return isUsable ? own : null;
  }

  begin(policy, key) { return this.own.has(key) ? this.next(policy) : policy + this.run; }

  /** A name that sorts after those before. */
  next(policy) {
    this.count += 1;
    return `${policy}${this.run}.${this.count.toString(36).padStart(7, '0')}`;
  }
}

/**
 * The writes that an operation makes: the new value, or null to delete, of each part; '' is the key itself.
 * The key's own value is never turned into parts: two devices that continue from it would count it twice.
 * @param {Operation} operation @param {string} key @param {MergeState} state
 * @param {Resolver | undefined} resolver @param {PartNames} names
 */
export function partChanges({ policy, old, value }, key, state, resolver, names) {
  /** @type {Map<string, Wire | null>} */
  const writes = value === null ? state.removal() : new Map();
  if (value === null) return state.own ? writes.set('', null) : writes;
  const own = () => (writes.has('') ? writes.get('') : state.own?.value) ?? null;
  const kept = () => state.of(policy).filter(({ part }) => !writes.has(part));
  const remove = (part) => writes.set(...removalOf(part));
  const visible = state.value(resolver);
  if (state.parts.length && state.policy !== policy) {
    // Another version of the app wrote with another policy.
    writes.set('', visible && fits(policy, visible) ? visible : null);
    for (const part of state.parts) remove(part);
  } else {
    if (own() && !fits(policy, own())) writes.set('', null);
    for (const part of state.parts) if (part.part[0] !== policy) remove(part);
  }
  /** Changes in place what this run has, or begins it. */
  const leave = (content, id = names.begin(policy, key)) => {
    writes.set(id, content);
    names.own.set(key, { part: id, value: content });
    return id;
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
      const isOther = (one) => comparable(one)?.class !== raised.class;
      if ([own(), ...kept().map((part) => part.value)].some((one) =>
        !isOther(one) && !isFurther(policy)(raised, comparable(one)))) break;
      if (own() && isOther(own())) writes.set('', null);
      for (const part of kept()) if (isOther(part.value)) remove(part);
      const mine = names.continued(policy, key, state);
      const id = leave(value, mine && !isOther(mine.value) ? mine.part : undefined);
      const others = state.all.filter(({ part }) => part[0] === policy && part !== id);
      for (const { part } of others.slice(0, Math.max(0, others.length - reachedPartsMax + 1))) {
        writes.set(part, null);
      }
      break;
    }
    case 'a': case 'd': {
      const [before, after] = [itemsOf(policy, old), itemsOf(policy, value)];
      const removed = new Set([...before.keys()].filter((name) => !after.has(name)));
      for (const part of kept()) if (removed.has(itemName(part))) remove(part);
      if (!own() && (removed.size || !after.size)) writes.set('', collection(policy, new Map()));
      const plain = itemsOf(policy, own());
      const rest = new Map([...plain].filter(([name]) => !removed.has(name)));
      if (rest.size < plain.size) writes.set('', collection(policy, rest));
      const known = new Set([...kept().map(itemName), ...rest.keys(), ...before.keys()]);
      for (const [name, content] of after) {
        const part = policy + name;
        if (policy === 'a') {
          if (!known.has(name)) writes.set(names.next(policy), content);
        } else if (!isSame(before.get(name) ?? null, content)
          && (writes.has(part) || !isSame(state.content(part), content))) writes.set(part, content);
      }
      break;
    }
    default: {
      if (isSame(value, visible)) break;
      const isKnown = (one) => isSame(old, visible) || isSame(one, old);
      for (const part of kept()) if (isKnown(part.value)) remove(part);
      if (own() && isKnown(own())) writes.set('', null);
      writes.set(names.next(policy), value);
    }
  }
  return writes;
}
