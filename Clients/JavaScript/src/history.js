// SPDX-License-Identifier: Apache-2.0

/** The past of a key: the server's versions, replayed to the values that apps saw. */

import { stateOf } from './entries.js';
import { checkedNumber, checkedRow, deviceOf, idOf, milliseconds, pushBytes } from './records.js';
import { UbiquityError, WireError, checkedList, isSame } from './values.js';

const versionsMax = 100_000;
const bytesMax = 2 ** 28;
const pageMax = 1_000;

/** Reads pages; of a key with parts all of them, because each value is made of all parts. */
export async function readHistory(ask, key, limit) {
  const versions = [];
  let [before, bytes] = [undefined, 0];
  for (;;) {
    const page = await ask({ key, before, limit: Math.min(Math.max(limit, 100), pageMax) });
    const more = checkedList(page, 'versions').map(checkedVersion);
    versions.push(...more);
    before = page.next;
    const isEnough = versions.length >= limit && !versions.some(({ record }) => record.part);
    if (typeof before !== 'string' || before === '' || !more.length || isEnough) return versions;
    bytes += more.reduce((sum, { record }) => sum + pushBytes(record), 0);
    if (versions.length >= versionsMax || bytes >= bytesMax) {
      throw new UbiquityError('too-long', 'the history is too long');
    }
  }
}

/** @returns {StoredVersion} */
function checkedVersion(json) {
  const outcome = json?.current === true ? 'current' : json?.replaced ? 'replaced' : 'lost';
  if (outcome === 'lost' && !json?.lost) throw new WireError('a version has no outcome');
  const end = json.replaced ?? json.lost;
  return { record: checkedRow(json.record), outcome,
    revision: checkedNumber(json.revision), came: checkedNumber(json.cameMilliseconds),
    ended: checkedNumber(end?.revision), endedAt: checkedNumber(end?.milliseconds) };
}

/**
 * The values of a key, the last first; going back from the present, one revision at a time.
 * @param {StoredVersion[]} versions
 */
export function valuesOf(key, versions, limit, resolver) {
  const mine = versions.filter(({ record }) => record.key === key);
  const wasHeld = ({ outcome, revision, ended }) => outcome === 'current'
    || (outcome === 'replaced' && (ended !== revision || revision === 0));
  const held = mine.filter(wasHeld);
  const current = held.filter((one) => one.outcome === 'current');
  const rows = new Map(current.map(({ record }) => [idOf(record), record]));
  const value = () => stateOf([...rows.values()]).value(resolver);
  const result = mine.filter((one) => !wasHeld(one) && !one.record.part).map(({ record, ...one }) =>
    described(record.value, record.stamp, one.revision, one.came, one.outcome));
  let [wire, outcome] = [value(), 'current'];
  const revisions = new Set(held.flatMap((one) =>
    (one.outcome === 'replaced' ? [one.revision, one.ended] : [one.revision])));
  for (const revision of [...revisions].sort((a, b) => b - a)) {
    const came = held.filter((one) => one.revision === revision);
    const ended = held.filter((one) => one.outcome === 'replaced' && one.ended === revision);
    for (const { record } of came) rows.delete(idOf(record));
    for (const { record } of ended) rows.set(idOf(record), record);
    const earlier = value();
    const stamp = came.map(({ record }) => record.stamp).sort().at(-1);
    if (stamp && (came.some(({ record }) => !record.part) || !isSame(earlier, wire))) {
      const time = came[0].came || ended[0]?.endedAt || 0;
      result.push(described(wire, stamp, revision, time, outcome));
      outcome = 'replaced';
    }
    wire = earlier;
  }
  return result.sort((a, b) => b.revision - a.revision).slice(0, limit);
}

const described = (wire, stamp, revision, came, outcome) => ({
  wire, revision, outcome, device: deviceOf(stamp),
  date: new Date(came || milliseconds(stamp)), written: new Date(milliseconds(stamp)),
});
