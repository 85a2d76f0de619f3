// SPDX-License-Identifier: Apache-2.0

/** The hybrid logical clock of a device, and how it is corrected by the server's. */

import { later, milliseconds, next, timeOf, timestamp, zero } from './records.js';
import { compare } from './values.js';

const doubtMax = 30_000;
const driftDivisor = 2_000;
/** How far ahead of the server's clock a write may be, in milliseconds. */
const aheadMax = 60_000;
export const isAhead = (stamp, server) => milliseconds(stamp) > server + aheadMax;

/** The server read its clock between request and answer: the middle is taken. @returns {Correction} */
export function measured(server, sentAt, heardAt) {
  if (sentAt.boot !== heardAt.boot || sentAt.uptime > heardAt.uptime) {
    return { reading: heardAt, server, doubt: doubtMax };
  }
  const half = (heardAt.uptime - sentAt.uptime) / 2;
  const { wall, uptime, boot } = heardAt;
  return { reading: { wall: wall - half, uptime: uptime - half, boot }, server, doubt: half };
}

const isExact = (correction, at) => correction?.reading.boot === at.boot;

/** The server's time at a reading; in another boot as if the clock's error were the same. */
function corrected(correction, at) {
  if (!correction) return at.wall;
  const { reading, server } = correction;
  return server + (isExact(correction, at) ? at.uptime - reading.uptime : at.wall - reading.wall);
}

/** Whether a correction is more precise than another: faster, or the server's clock was set. */
export function isBetter(one, other) {
  if (!other || !isExact(other, one.reading)) return true;
  const doubts = other.doubt + Math.abs(one.reading.uptime - other.reading.uptime) / driftDivisor;
  const difference = Math.abs(one.server - corrected(other, one.reading));
  return one.doubt <= doubts || difference > one.doubt + doubts + 2;
}

export class DeviceClock {
  /** The greatest timestamp that will not change any more, and that of all, provisional ones included. */
  latestFinal = zero;
  latest = zero;
  /** @param {Correction | null} correction */
  constructor(correction) { this.correction = correction; }

  /** Later writes will be later than this timestamp. */
  observe(time, isFinal = true) {
    if (isFinal) this.latestFinal = later(this.latestFinal, time);
    this.latest = later(this.latest, time);
  }

  now(at) { return corrected(this.correction, at); }
  isExact(at) { return isExact(this.correction, at); }

  /** The timestamp of a write made now. @returns {{time: string, provisional: Provisional | null}} */
  issue(at) {
    const time = later(timestamp(this.now(at)), next(this.latest));
    const provisional = this.isExact(at) ? null : { madeAt: at, seen: this.latestFinal };
    this.observe(time, !provisional);
    return { time, provisional };
  }

  /** Adopts the measured error, and forgets what the wrong clock made. */
  adopt(correction, at) {
    this.correction = correction;
    if (this.isExact(at)) this.latest = this.latestFinal;
  }

  /** By the server's clock and no later than now, but later than all that the author had seen. */
  made({ madeAt, seen }, at) {
    return later(timestamp(Math.min(this.now(madeAt), this.now(at))), next(seen));
  }

  /**
   * The final timestamp for each provisional stamp, in the order in which they were made; empty while the
   * clock's error is unknown.
   * @param {Map<string, Provisional>} provisional
   */
  finalize(provisional, at) {
    const result = new Map();
    if (!this.isExact(at)) return result;
    // A boot stamps later than everything on disk.
    const greatest = new Map();
    for (const [stamp, { madeAt: { boot } }] of provisional) {
      greatest.set(boot, later(greatest.get(boot) ?? '', stamp));
    }
    const order = ([one, { madeAt: a }], [other, { madeAt: b }]) =>
      compare(greatest.get(a.boot), greatest.get(b.boot)) || a.uptime - b.uptime || compare(one, other);
    let previous = zero;
    for (const [stamp, one] of [...provisional].sort(order)) {
      previous = later(this.made(one, at), next(previous));
      result.set(stamp, previous);
    }
    this.latestFinal = later(this.latestFinal, previous);
    this.latest = this.latestFinal;
    return result;
  }

  /** The time of a waiting write, by its final stamp if that is known. */
  time({ record, provisional }, at) {
    return provisional && this.isExact(at) ? this.made(provisional, at) : timeOf(record.stamp);
  }
}
