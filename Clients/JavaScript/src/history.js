// SPDX-License-Identifier: Apache-2.0

/**
 * What a key was: the server's versions, replayed to the values that apps saw.
 *
 * @typedef {import('./records.js').Row} Row
 * @typedef {{record: Row, revision: number, came: number, outcome: 'current' | 'replaced' | 'lost',
 *     ended: number, endedAt: number}} Version
 *     A write, with the store's revision and the time at which it came, and of its end.
 */

import { MergeState } from './merging.js';
import {
  checkedMilliseconds, checkedRow, deviceOf, idOf, milliseconds, pushBytes,
} from './records.js';
import { UbiquityError, WireError, checkedList, isSame } from './values.js';

const versionsMax = 100_000;
const bytesMax = 2 ** 28;
const pageMax = 1_000;

/** Reads pages; of a key with parts all of them, because each value is made of all parts. */
export async function readHistory(ask, key, limit) {
  const versions = [];
  let before;
  let bytes = 0;
  for (;;) {
    const page = await ask({ key, before, limit: Math.min(Math.max(limit, 100), pageMax) });
    const more = checkedList(page, 'versions').map(checkedVersion);
    versions.push(...more);
    before = page.next;
    const isEnough = versions.length >= limit && !versions.some(({ record }) => record.part);
    if (typeof before !== 'string' || before === '' || !more.length || isEnough) return versions;
    bytes += more.reduce((sum, { record }) => sum + pushBytes(record), 0);
    if (versions.length < versionsMax && bytes < bytesMax) continue;
    throw new UbiquityError('too-long', 'the history is too long');
  }
}

/** @returns {Version} */
function checkedVersion(json) {
  const outcome = json?.current === true ? 'current' : json?.replaced ? 'replaced' : 'lost';
  if (outcome === 'lost' && !json?.lost) throw new WireError('a version has no outcome');
  const end = json.replaced ?? json.lost;
  return {
    record: checkedRow(json.record), outcome,
    revision: checkedMilliseconds(json.revision), came: checkedMilliseconds(json.cameMilliseconds),
    ended: checkedMilliseconds(end?.revision), endedAt: checkedMilliseconds(end?.milliseconds),
  };
}

export class KeyHistory {
  /** @param {string} key @param {Version[]} versions */
  constructor(key, versions) {
    const mine = versions.filter(({ record }) => record.key === key);
    const wasHeld = ({ outcome, revision, ended }) => outcome !== 'lost'
      && (outcome === 'current' || ended !== revision || revision === 0);
    this.held = mine.filter(wasHeld);
    this.neverHeld = mine.filter((one) => !wasHeld(one) && !one.record.part);
  }

  /** The values, the last first; going back from the present, one revision at a time. */
  values(limit, resolver) {
    const state = new Map();
    for (const { record, outcome } of this.held) {
      if (outcome === 'current') state.set(idOf(record), record);
    }
    const revisions = [...new Set(this.held.flatMap(({ revision, ended, outcome }) =>
      (outcome === 'replaced' ? [revision, ended] : [revision])))].sort((a, b) => b - a);
    let [wire, outcome] = [valueOf(state, resolver), 'current'];
    const result = this.neverHeld.map(({ record, revision, came, outcome: end }) =>
      described(record.value, record.stamp, revision, came, end));
    for (const revision of revisions) {
      const came = this.held.filter((one) => one.revision === revision);
      const ended = this.held.filter((one) => one.outcome === 'replaced' && one.ended === revision);
      for (const { record } of came) state.delete(idOf(record));
      for (const { record } of ended) state.set(idOf(record), record);
      const earlier = valueOf(state, resolver);
      const stamp = came.map(({ record }) => record.stamp).sort().at(-1);
      if (stamp && (came.some(({ record }) => !record.part) || !isSame(earlier, wire))) {
        const time = came[0]?.came || ended[0]?.endedAt || 0;
        result.push(described(wire, stamp, revision, time, outcome));
        outcome = 'replaced';
      }
      wire = earlier;
    }
    return result.sort((a, b) => b.revision - a.revision).slice(0, limit);
  }
}

const described = (wire, stamp, revision, came, outcome) => ({ wire, revision, outcome,
  date: new Date(came || milliseconds(stamp)), written: new Date(milliseconds(stamp)),
  device: deviceOf(stamp) });

/** @param {Map<string, Row>} state */
function valueOf(state, resolver) {
  const rows = /** @type {any[]} */ ([...state.values()].filter(({ value }) => value));
  return new MergeState(rows.find(({ part }) => !part) ?? null,
    rows.filter(({ part }) => part)).value(resolver);
}
