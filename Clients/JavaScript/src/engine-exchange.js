// SPDX-License-Identifier: Apache-2.0

/**
 * The second layer of the engine: what is sent and received, whatever carries it.
 *
 * @typedef {import('./values.js').Wire} Wire
 * @typedef {import('./records.js').Row} Row
 * @typedef {import('./clock.js').Reading} Reading
 * @typedef {import('./entries.js').Pending} Pending
 * @typedef {import('./messages.js').Changes} Changes
 * @typedef {import('./messages.js').PushAnswer} PushAnswer
 * @typedef {import('./messages.js').Failure} Failure
 * @typedef {import('./messages.js').Refusal} Refusal
 * @typedef {{writes: Row[], had: Map<string, string>, bytes: number, oldest: string,
 *     newest: string, first: string}} Outgoing A transaction to be sent.
 * @typedef {{write: Row, transaction: string, held: Row, cursor: string,
 *     fetch: number}} Acknowledged
 *     A write that the server has acknowledged, while the stream has not brought what it holds.
 *     `cursor`: the server's at the answer; `fetch`: the last one begun before it.
 * @typedef {{id: number, waiting: Set<string>, push: number, sent: Set<string>,
 *     acknowledging: Set<string>, refused: Set<string>,
 *     refusal: Refusal | null, fetch: number}} SyncRequest
 *     A request for a round trip: the entries whose answer is awaited, the last push before it,
 *     what was under way then, what was acknowledged, and the fetch that must have finished.
 */

import { WritingEngine } from './engine-writing.js';
import { drop, dropIfBeaten, merge } from './entries.js';
import { DeviceClock, isAhead, isBetter, measured } from './clock.js';
import { Backoff, Usage, isTooMuch, tombstonesMax } from './rules.js';
import {
  deviceOf, idOf, isOfServer, isSameRow, keyAndPart, later, pushBytes, timeOf, timestamp,
  wins, wireRow, withoutDigest, zero,
} from './records.js';
import { isSame } from './values.js';

const pushBytesMin = 1_024;
const tooLargeRetryMilliseconds = 3_600_000;
export const refusedRetryMilliseconds = 60_000;
const older = 'older-than-forgotten';

export class ExchangeEngine extends WritingEngine {
  /** @param {ConstructorParameters<typeof WritingEngine>[1]} options */
  constructor(rows, options) {
    super(rows, options);
    /** Streams and polls, and the last of them that brought all the server had. */
    this.fetchesStarted = 0;
    this.fetchesFinished = 0;
    this.streamsOpened = 0;
    /** Why the whole store is needed. @type {'firstSync' | 'compacted' | 'otherHistory' | null} */
    this.snapshotReason = null;
    /** When the server last said its limits. @type {number | null} */
    this.configuredAt = null;
    this.horizon = zero;
    this.push = null;
    this.pushesSent = 0;
    /** The last fetch before a push without an answer, which the server may have taken. */
    this.unknownPush = null;
    this.acknowledged = new Map();
    /** The cursors that the stream has reached since a request was sent. @type {Set<string>} */
    this.passed = new Set();
    this.pushBackoff = new Backoff();
    this.pushRetry = null;
    /** What the connection bears. */
    this.pushBytesMax = Infinity;
    /** A transaction that was too large alone: its bytes, and the next attempt. */
    this.tooLarge = null;
    /** The server is at a cursor that the stream has not reached. */
    this.lag = null;
    this.requests = [];
    this.requestsMade = 0;
    /** A pull that is not answered. */
    this.pull = null;
    this.finished = [];
    this.lastError = null;
    /** When the stream last gave a sign of life. */
    this.heardAt = 0;
  }

  // Time

  /** Measures the clock by the server's time, and finalises waiting stamps. */
  measure(server, sentAt, heardAt, now) {
    if (server > 0) {
      const correction = measured(server, sentAt, heardAt);
      if (isBetter(correction, this.clock.correction)) {
        this.clock.adopt(correction, now);
        this.meta.correction = correction;
        this.isMetaUnsaved = true;
      }
    }
    this.finalize(now);
  }

  finalize(now) {
    const provisional = new Map();
    const ids = [...this.entries.waiting].filter((id) => {
      const pending = this.entries.get(id)?.pending;
      if (pending?.provisional) provisional.set(pending.record.stamp, pending.provisional);
      return pending?.provisional;
    });
    if (ids.length) this.restamp(ids, this.clock.finalize(provisional, now));
  }

  /** Gives new stamps to writes that the server refused as too far ahead. It never took them. */
  correctAhead(server, now) {
    const isRefused = (pending) => pending != null && isAhead(pending.record.stamp, server);
    const ids = [...this.entries.waiting].filter((id) => isRefused(this.entries.get(id)?.pending));
    const refused = new Set(ids);
    this.clock = new DeviceClock(this.clock.correction);
    for (const [id, { confirmed, pending }] of this.entries.all) {
      this.observe(confirmed, refused.has(id) ? null : pending, now);
    }
    for (const { held } of this.acknowledged.values()) this.clock.observe(timeOf(held.stamp));
    const times = new Map();
    const stamps = new Set(ids.map((id) => this.entries.get(id)?.pending?.record.stamp ?? ''));
    for (const stamp of [...stamps].sort()) times.set(stamp, this.clock.issue(now).time);
    this.restamp(ids, times);
  }

  // Receiving

  /** Why changes are not accepted: the store would have more than a store may have. */
  refusal(records, isWhole = false) {
    const from = isWhole ? new Usage() : this.entries.agreed;
    const to = from.copy();
    const latest = new Map();
    for (const record of records) {
      const id = idOf(record);
      const before = latest.get(id) ?? (isWhole ? null : this.entries.get(id)?.confirmed);
      to.replace(before?.value ?? null, record.value, record.part);
      latest.set(id, record);
    }
    const isKnown = this.meta.cursor !== null || this.configuredAt !== null;
    return isTooMuch(from, to, isKnown ? this.meta.limits : null)
      ? failure('unreachable', 'the server sent more than a store may have') : null;
  }

  /** Applies what the server sent, as one. */
  receive(changes, now) {
    const isFirst = changes.isWhole && !this.meta.hasCompletedFirstSync;
    if (changes.isWhole) this.takeStore(changes.records);
    else this.change(changes.records, (entry, record) => merge(entry, record, true));
    this.dropTombstones(changes.horizon);
    this.meta.cursor = changes.cursor;
    const isByOthers = changes.records.some(({ stamp }) => deviceOf(stamp) !== this.device);
    this.receipts.received(changes.isWhole, isByOthers);
    this.meta.lastSync = this.clock.now(now);
    this.isMetaUnsaved = true;
    this.pass(changes.cursor);
    this.tell(isFirst ? 'initialSyncChange' : 'serverChange');
  }

  /** @param {(entry: import('./entries.js').Entry, record: Row) => void} body */
  change(records, body) {
    for (const record of records) {
      const id = idOf(record);
      this.clock.observe(timeOf(record.stamp));
      const write = this.entries.waiting.has(id) ? this.entries.get(id)?.pending?.record : null;
      this.entries.update(id, (entry) => body(entry, record));
      if (write) this.noteSuperseded(write);
    }
  }

  /** Keeps a write that nobody will send any more, because a later one was there already. */
  noteSuperseded(write) {
    const confirmed = this.entries.get(idOf(write))?.confirmed;
    if (this.entries.waiting.has(idOf(write)) || write.part || this.entries.hasParts(write.key)
      || this.settings.unkept?.includes(write.key) || !confirmed
      || isSame(confirmed.value, write.value)) return;
    this.refuse(write, 'superseded', 'a value that was written later was there already');
  }

  takeStore(records) {
    const reason = this.snapshotReason ?? 'compacted';
    this.snapshotReason = null;
    this.unacknowledge();
    if (reason === 'firstSync') return this.takeFirst(records);
    const listed = new Map(records.map((record) => [idOf(record), record]));
    if (reason === 'otherHistory') {
      // An answer still under way belongs to the old history.
      this.push = null;
      this.passed.clear();
      this.offer(listed);
      return this.change(records, (entry, record) => merge(entry, record));
    }
    this.change(records, (entry, record) => {
      entry.confirmed = record;
      dropIfBeaten(entry);
    });
    for (const [id, { confirmed }] of [...this.entries.all]) {
      if (confirmed && !listed.has(id)) {
        this.entries.update(id, (entry) => { entry.confirmed = null; });
      }
    }
  }

  /** The first sync. Keys with a policy lose nothing. @param {Row[]} records */
  takeFirst(records) {
    this.meta.hasCompletedFirstSync = true;
    const keys = new Set(records.map(({ key }) => key));
    const merged = new Set([...keys].filter((key) =>
      this.policies.has(key) || this.entries.hasParts(key)));
    const discards = this.settings.firstSync !== 'timestamps';
    this.change(records, (entry, record) => {
      const mine = entry.pending?.record;
      if (merged.has(record.key)) {
        if (mine && isPlaceholder(mine.value)) drop(entry);
      } else if (discards) drop(entry);
      merge(entry, record);
    });
    // A plain write of a key of which the server has only parts.
    for (const key of discards ? keys : []) {
      if (!merged.has(key) && this.entries.get(key)?.pending) this.entries.update(key, drop);
    }
  }

  /** Queues all that a restored server lacks. Records of one stamp were one transaction. */
  offer(listed) {
    const transactions = new Map();
    for (const [id, { confirmed: mine }] of [...this.entries.all]) {
      if (!mine) continue;
      const theirs = listed.get(id) ?? null;
      const isOffered = !isOfServer(mine) && (!theirs || wins(mine, theirs));
      const transaction = transactions.get(mine.stamp) ?? this.random.next();
      transactions.set(mine.stamp, transaction);
      this.entries.update(id, (entry) => {
        entry.confirmed = theirs;
        if (isOffered) {
          entry.pending ??= { record: mine, transaction, provisional: null, had: null };
        }
        dropIfBeaten(entry);
      });
    }
  }

  /** Tombstones are kept to tell a restored server of them, unless it has forgotten them itself. */
  dropTombstones(horizon) {
    const agreed = () => [...this.entries.all].filter(([, { confirmed, pending }]) =>
      confirmed && !confirmed.value && !pending);
    const forget = (id) =>
      this.entries.update(id, (entry) => { entry.confirmed = null; });
    if (horizon > timestamp(0) && horizon !== this.horizon) {
      this.horizon = horizon;
      for (const [id, { confirmed }] of agreed()) {
        if (confirmed && timeOf(confirmed.stamp) < horizon) forget(id);
      }
    }
    if (this.entries.tombstones <= tombstonesMax) return;
    const stamp = ([, entry]) => entry.confirmed?.stamp ?? '';
    const all = agreed().sort((a, b) => (stamp(a) < stamp(b) ? -1 : 1));
    for (const [id] of all.slice(0, this.entries.tombstones - tombstonesMax / 2)) forget(id);
  }

  /** The stream has come to a cursor. */
  pass(cursor) {
    if (!this.push && !this.pull) this.passed.clear();
    this.passed.add(cursor);
    if (this.lag?.cursor === cursor) {
      this.fetchesFinished = Math.max(this.fetchesFinished, this.lag.fetch);
      this.lag = null;
    }
    this.finishAcknowledged(cursor);
    this.noteLag(this.heardAt);
  }

  get isLive() { return false; }

  /** Expects the stream at the answer's cursor for a deletion, which it may never bring. */
  noteLag(now) {
    if (!this.isLive || this.lag) return;
    const next = [...this.acknowledged].filter(([, { held }]) => !held.value)
      .sort(([a], [b]) => (a < b ? -1 : 1))[0];
    if (next) this.lag = { fetch: 0, cursor: next[1].cursor, noticedAt: now };
  }

  /** All that was committed before an answer is here: its writes give way to what is held. */
  finishAcknowledged(cursor) {
    for (const [id, one] of [...this.acknowledged]) {
      if (one.cursor !== cursor) continue;
      this.acknowledged.delete(id);
      const entry = this.entries.get(id);
      if (!entry?.isAcknowledged || !entry.pending
        || !isSameRow(entry.pending.record, one.write)) continue;
      this.entries.update(id, (changed) => {
        drop(changed);
        merge(changed, one.held);
      });
    }
  }

  /** Sends writes again that were acknowledged before a fetch that did not bring them. */
  unacknowledge(before = Infinity) {
    for (const [id, { fetch }] of [...this.acknowledged]) {
      if (fetch >= before) continue;
      this.acknowledged.delete(id);
      if (!this.entries.get(id)?.isAcknowledged) continue;
      this.entries.update(id, (entry) => { entry.isAcknowledged = false; }, false);
      for (const request of this.requests) {
        if (request.acknowledging.delete(id)) request.waiting.add(id);
      }
    }
  }

  // Pushing

  /**
   * The transactions for the next push, oldest first. What is sent later must be later, or a
   * server that has forgotten deletions would take it for a repeat: so transactions that overlap
   * in time go together, up to four times what the connection bears.
   */
  sendable() {
    const all = new Map();
    const held = new Set();
    for (const id of this.entries.waiting) {
      const entry = this.entries.get(id);
      if (!entry?.pending) continue;
      const { record, transaction, provisional, had } = entry.pending;
      const one = all.get(transaction) ?? { writes: [], had: new Map(), bytes: 0,
        oldest: 'g', newest: '', first: id };
      all.set(transaction, one);
      one.writes.push(record);
      one.bytes += pushBytes(record);
      one.first = id < one.first ? id : one.first;
      if (!provisional && timeOf(record.stamp) < one.oldest) one.oldest = timeOf(record.stamp);
      one.newest = later(one.newest, timeOf(record.stamp));
      if (had) {
        one.had.set(id, had);
        const agreed = entry.confirmed && withoutDigest(entry.confirmed.stamp);
        const isMine = deviceOf(had) === deviceOf(record.stamp) && had !== agreed;
        if (isMine && timeOf(had) < one.oldest) one.oldest = timeOf(had);
      }
      // Only what is on disk with its final stamp may be sent.
      if (provisional || !this.entries.isSaved(id)) held.add(transaction);
    }
    // Nor anything later than what must wait for that.
    const bound = [...held].map((name) => all.get(name)?.oldest ?? 'g').sort()[0] ?? 'g';
    const ready = [...all].filter(([name, { newest }]) => !held.has(name) && newest < bound)
      .map(([, one]) => one)
      .sort((a, b) => (a.oldest < b.oldest || (a.oldest === b.oldest && a.first < b.first)
        ? -1 : 1));
    const max = this.meta.limits.pushBytesMax;
    const soft = Math.min(max, this.pushBytesMax);
    const hard = Math.min(max, soft * (this.pushBytesMax > pushBytesMin ? 4 : 1));
    const result = [];
    let [bytes, newest] = [0, ''];
    for (const one of ready) {
      if (one.bytes >= (this.tooLarge?.bytes ?? Infinity)) continue;
      bytes += one.bytes;
      if (result.length && bytes > (newest < one.oldest ? soft : hard)) break;
      newest = later(newest, one.newest);
      result.push(one);
    }
    return result.length || this.tooLarge?.retry ? result : ready.slice(0, 1);
  }

  get isReached() { return false; }

  /** The next push; null if there is none. */
  nextPush(now) {
    if (!this.isReached || this.push || !this.entries.waiting.size
      || (this.pushRetry && now.uptime < this.pushRetry.at)) return null;
    this.pushRetry = null;
    if (this.tooLarge?.retry && this.tooLarge.retry.at <= now.uptime) this.tooLarge.retry = null;
    const transactions = this.sendable();
    if (!transactions.length) return null;
    const wait = this.bucket.take(now.uptime);
    if (wait) {
      this.pushRetry = { at: now.uptime + wait, notBefore: now.uptime + wait };
      return null;
    }
    this.bucket.charge(bytesOf(transactions));
    this.pushesSent += 1;
    const [number, { saved }] = [this.pushesSent, this.receipts];
    this.push = { number, transactions, saved, sentAt: now, streamsOpened: this.streamsOpened };
    const unkept = this.settings.unkept ?? [];
    return {
      number,
      body: {
        transactions: transactions.map(({ writes, had }) => ({
          writes: writes.map((row) => wireRow(
            row, this.device, had.get(idOf(row)), unkept.includes(row.key))),
        })),
        tellsHad: true, ...(saved ? { saved } : {}),
        deviceMilliseconds: String(Math.max(0, Math.trunc(now.wall))),
      },
    };
  }

  get pushAt() {
    if (!this.isReached || this.push || !this.entries.waiting.size) return Infinity;
    return this.pushRetry?.at ?? this.tooLarge?.retry?.at ?? Infinity;
  }

  pushAnswered(number, answer, now) {
    const { push } = this;
    if (push?.number !== number) return;
    const superseding = doesFit(answer, push.transactions);
    if (!superseding) {
      this.pushFailed(number, failure('refused', "the server's answer does not match"), now);
      return;
    }
    const tooMuch = superseding.length ? this.refusal(
      [...[...this.acknowledged.values()].map(({ held }) => held), ...superseding]) : null;
    if (tooMuch) {
      this.pushFailed(number, tooMuch, now);
      return;
    }
    this.push = null;
    this.receipts.told(push.saved);
    const bytes = bytesOf(push.transactions);
    if (this.tooLarge && bytes >= this.tooLarge.bytes) this.tooLarge = null;
    this.pushBackoff.succeed();
    this.pushBytesMax *= 1.25;
    this.pushWorked(now);
    this.meta.lastSync = this.clock.now(now);
    this.measure(answer.server, push.sentAt, now, now);
    this.tell('serverChange');
    const withdrawn = new Set();
    const refused = new Map();
    push.transactions.forEach((transaction, i) => {
      const result = answer.results[i];
      transaction.writes.forEach((write, j) => {
        const had = transaction.had.get(idOf(write)) ?? null;
        const refusal = Array.isArray(result)
          ? this.take(result[j].held, write, answer.cursor) : result;
        if (!refusal) return;
        refused.set(idOf(write), refusal);
        if (refusal.code !== older) this.neverHad(write, had);
        if (this.withdraw(write, refusal) && refusal.code !== older) withdrawn.add(write.key);
      });
    });
    this.noteAnswered(push.transactions.flatMap(({ writes }) => writes.map(idOf)), refused, number);
    this.tell('serverChange', withdrawn);
    this.post('quotaViolation', withdrawn);
    if (this.passed.has(answer.cursor)) {
      this.finishAcknowledged(answer.cursor);
      this.tell('serverChange');
    }
    this.noteLag(now.uptime);
    // A stream that went live since may come from a server restored after the answer.
    if (this.isLive && push.streamsOpened < this.streamsOpened) this.unacknowledge();
  }

  /** @returns {Refusal | null} */
  take(held, write, cursor = '') {
    if (held === 'none' && write.value) {
      return { code: older, detail: 'the key may have been deleted after this write' };
    }
    const id = idOf(write);
    const pending = this.entries.get(id)?.pending;
    if (!pending) return null;
    if (isSameRow(pending.record, write)) {
      this.entries.update(id, (entry) => { entry.isAcknowledged = true; }, false);
    }
    this.acknowledged.set(id, {
      write, transaction: pending.transaction, held: typeof held === 'object' ? held : write,
      cursor, fetch: this.fetchesStarted,
    });
    return null;
  }

  /** The server never had a refused write: what replaced it replaced nothing. */
  neverHad(write, had) {
    const pending = this.entries.get(idOf(write))?.pending;
    if (!pending || isSameRow(pending.record, write)
      || pending.had !== withoutDigest(write.stamp)) return;
    this.entries.update(idOf(write), (entry) => { entry.pending = { ...pending, had }; });
  }

  /** Shows the value last agreed on, and keeps the refused write. Whether it was still there. */
  withdraw(write, { code, detail }) {
    const id = idOf(write);
    const pending = this.entries.get(id)?.pending;
    if (!pending || !isSameRow(pending.record, write)) return false;
    const known = this.acknowledged.get(id);
    this.entries.update(id, (entry) => {
      drop(entry);
      // The previous write is at the server, and the stream has not brought it.
      if (!known || isSameRow(known.write, write)) return;
      entry.pending = { record: known.write, transaction: known.transaction,
        provisional: null, had: null };
      entry.isAcknowledged = true;
      dropIfBeaten(entry);
    });
    this.refuse(write, code, detail);
    return true;
  }

  pushFailed(number, why, now) {
    const { push } = this;
    if (push?.number !== number) return;
    this.push = null;
    let { detail } = why;
    const bytes = bytesOf(push.transactions);
    const shrink = () => {
      const half = Math.min(this.pushBytesMax, bytes) / 2;
      this.pushBytesMax = Math.max(pushBytesMin, Math.floor(half));
    };
    const retry = (wait = this.pushBackoff.fail(this.random), isOrdered = false) => {
      const at = now.uptime + wait;
      this.pushRetry = { at, notBefore: isOrdered ? at : now.uptime };
    };
    switch (why.kind) {
      case 'unauthorized':
        this.closeLink();
        this.waitAfter(why, now);
        break;
      case 'clockAhead':
        // The server may have taken what a lost answer was about: ask before restamping.
        if (this.unknownPush !== null) this.closeLink();
        else {
          this.measure(why.server ?? 0, push.sentAt, now, now);
          this.correctAhead(why.server ?? 0, now);
          this.tell('serverChange');
          retry();
        }
        break;
      case 'busy': case 'tooManyStreams': retry(why.wait, true); break;
      case 'refused': retry(refusedRetryMilliseconds); break;
      case 'tooLarge':
        if (push.transactions.length > 1) {
          shrink();
          retry();
          break;
        }
        this.tooLarge = {
          bytes: Math.min(bytes, this.tooLarge?.bytes ?? Infinity),
          retry: { at: now.uptime + tooLargeRetryMilliseconds,
            notBefore: now.uptime + refusedRetryMilliseconds },
        };
        detail = `the transaction with "${push.transactions[0].writes[0].key}", ${bytes} `
          + 'bytes, is larger than the server, or a proxy in front of it, accepts';
        break;
      case 'timedOut': shrink();
      // falls through
      default:
        this.unknownPush = this.fetchesStarted;
        retry();
    }
    this.lastError = detail;
    this.failRequests({ ...why, detail });
  }

  // What the third layer knows.

  closeLink() {}
  waitAfter(_why, _now) {}
  pushWorked(_now) {}

  // Requests for a round trip

  /** @returns {number} The ID of the effect `finishSync`. */
  requestSync(isSignedIn = true) {
    this.requestsMade += 1;
    const id = this.requestsMade;
    if (!isSignedIn) {
      this.finished.push({ id, failure: failure('unauthorized', 'this device is not signed in') });
      return id;
    }
    const underWay = this.push?.transactions.flatMap(({ writes }) => writes) ?? [];
    const sent = underWay.filter((write) => {
      const pending = this.entries.get(idOf(write))?.pending;
      return pending && isSameRow(pending.record, write);
    });
    this.requests.push({
      id, waiting: new Set(this.entries.waiting), push: this.pushesSent,
      sent: new Set(sent.map(idOf)), refused: new Set(), refusal: null,
      acknowledging: new Set([...this.acknowledged.keys()].filter((one) =>
        this.entries.get(one)?.isAcknowledged)),
      fetch: this.fetchesStarted + 1,
    });
    return id;
  }

  /** Whether the server holds a later write than the acknowledged one. */
  hasLost(id) {
    const one = this.acknowledged.get(id);
    return one !== undefined && this.entries.get(id)?.isAcknowledged === true
      && !isSameRow(one.held, one.write);
  }

  /** @param {string[]} ids @param {Map<string, Refusal>} refused @param {number} push */
  noteAnswered(ids, refused, push) {
    const replaced = new Set([...refused.keys()].filter((id) => this.entries.waiting.has(id)));
    const acknowledged = new Set(ids.filter((id) => this.entries.get(id)?.isAcknowledged));
    for (const request of this.requests) {
      const isLater = push > request.push;
      for (const id of ids) {
        if (acknowledged.has(id) && this.hasLost(id)) request.acknowledging.add(id);
        if (!request.waiting.has(id) || replaced.has(id)
          || !(isLater || request.sent.has(id))) continue;
        request.waiting.delete(id);
        if (acknowledged.has(id)) request.acknowledging.add(id);
        const refusal = refused.get(id);
        if (!refusal) continue;
        request.refused.add(id);
        request.refusal ??= refusal;
      }
    }
  }

  /** Finishes the requests that are done. */
  checkRequests() {
    this.finishRequests((request) => request.fetch <= this.fetchesFinished
      && ![...request.waiting].some((id) => this.entries.waiting.has(id))
      && ![...request.acknowledging].some((id) => this.hasLost(id)), null);
  }

  failRequests(why) { this.finishRequests(() => true, why); }

  /** @param {(request: SyncRequest) => boolean} isDone @param {Failure | null} why */
  finishRequests(isDone, why) {
    this.requests = this.requests.filter((request) => {
      if (!isDone(request)) return true;
      const keys = [...new Set([...request.refused].map((id) => keyAndPart(id)[0]))];
      const refusal = keys.length ? { ...failure('refused'), ...request.refusal, keys } : null;
      this.finished.push({ id: request.id, failure: refusal ?? why });
      return false;
    });
  }
}

/** @param {Failure['kind']} kind @returns {Failure} */
export const failure = (kind, detail = '') => ({ kind, detail });

const bytesOf = (transactions) => transactions.reduce((sum, { bytes }) => sum + bytes, 0);

/** The own value of a key with parts: its writer may not have known those of others. */
const isPlaceholder = (value) =>
  !value || isSame(value, { array: {} }) || isSame(value, { dictionary: {} });

/** The later records in an answer; null if it does not answer each write. */
function doesFit({ results }, sent) {
  if (results.length !== sent.length) return null;
  const superseding = [];
  for (const [i, { writes }] of sent.entries()) {
    const result = results[i];
    if (!Array.isArray(result)) continue;
    if (result.length !== writes.length) return null;
    for (const [j, { held }] of result.entries()) {
      if (typeof held !== 'object') continue;
      if (idOf(held) !== idOf(writes[j])) return null;
      superseding.push(held);
    }
  }
  return superseding;
}
