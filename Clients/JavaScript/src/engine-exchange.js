// SPDX-License-Identifier: Apache-2.0

/** The second layer of the engine: what is sent and received, whatever carries it. */

import { DeviceClock, isAhead, isBetter, measured } from './clock.js';
import { WritingEngine } from './engine-writing.js';
import { drop, dropIfBeaten, merge } from './entries.js';
import { isEmpty } from './merging.js';
import { failure } from './messages.js';
import {
  deviceOf, idOf, isOfServer, isSameRow, keyAndPart, later, pushBytes, timeOf, timestamp, wins, wireRow,
  withoutDigest, zero,
} from './records.js';
import { tombstonesMax } from './limits.js';
import { Backoff, Usage, isTooMuch } from './rules.js';
import { compare } from './values.js';

const pushBytesMin = 1_024;
const tooLargeRetryMilliseconds = 3_600_000;
const refusedRetryMilliseconds = 60_000;
const unauthorizedRetryMilliseconds = 300_000;
const older = 'older-than-forgotten';
export const isBusy = ({ kind }) => kind === 'busy' || kind === 'tooManyStreams';

/** How long to wait after a failure; null if pauses that grow are right. @param {Failure} why */
export const pauseAfter = (why) => (why.kind === 'unauthorized' ? unauthorizedRetryMilliseconds
  : isBusy(why) ? why.wait ?? 5_000
    : why.kind === 'refused' || why.kind === 'tooLarge' ? refusedRetryMilliseconds : null);

export class ExchangeEngine extends WritingEngine {
  isSignedIn = false;
  /** @type {Link} */
  link = { kind: 'idle' };
  /** Polls in place of a stream. @type {Retry & {pauses: Backoff, isWorking: boolean} | null} */
  polling = null;
  /** Streams and pulls, and the last of them that brought all the server had. */
  fetchesStarted = 0;
  fetchesFinished = 0;
  /** Why the whole store is needed. @type {'firstSync' | 'compacted' | 'otherHistory' | null} */
  snapshotReason = null;
  /** When the server last said its limits. */
  configuredAt = -Infinity;
  horizon = zero;
  /** A push, and a pull, that is not answered. */
  push = null;
  pull = null;
  pushesSent = 0;
  /** The last fetch before a push without an answer, which the server may have taken. */
  unknownPush = null;
  /** The cursors that the stream has reached since a request was sent. */
  passed = new Set();
  pushBackoff = new Backoff();
  /** @type {Retry | null} */
  pushRetry = null;
  /** The bytes of a push that the connection lets through in time. */
  pushBytesMax = Infinity;
  /** A transaction that was too large alone. @type {{bytes: number, retry: Retry | null} | null} */
  tooLarge = null;
  /** The server is at a cursor that the stream has not reached. */
  lag = null;
  /** Requests for round trips, and the last push that answered each entry. @type {SyncRequest[]} */
  requests = [];
  requestsMade = 0;
  answers = new Map();
  /** The next effects, in order. @type {Effect[]} */
  effects = [];
  lastError = null;
  /** When the stream last gave a sign of life. */
  heardAt = 0;
  get isLive() { return this.link.kind === 'live'; }
  /** Whether the server answers, so that pushes may be sent. */
  get isReached() { return this.isLive || (this.polling?.isWorking ?? false); }

  // The third layer has these.
  closeLink() {}
  waitAfter(_why, _now) {}
  pollSoon(_now) {}

  // Time

  /** Measures the clock by the server's time, and finalises waiting stamps. */
  measure(server, sentAt, heardAt, now) {
    const correction = measured(server, sentAt, heardAt);
    if (server > 0 && isBetter(correction, this.clock.correction)) {
      this.clock.adopt(correction, now);
      this.meta.correction = correction;
      this.isMetaUnsaved = true;
    }
    const waiting = [...this.entries.waiting].map((id) => this.entries.pending(id));
    const provisional = new Map(waiting.filter((pending) => pending.provisional)
      .map((pending) => [pending.record.stamp, pending.provisional]));
    if (provisional.size) this.restamp(this.clock.finalize(provisional, now));
  }

  /** Gives new stamps to writes that the server refused as too far ahead. It never took them. */
  correctAhead(server, now) {
    const stampOf = (id) => this.entries.pending(id).record.stamp;
    const refused = new Set([...this.entries.waiting].filter((id) => isAhead(stampOf(id), server)));
    this.clock = new DeviceClock(this.clock.correction);
    for (const [id, { confirmed, pending }] of this.entries.all) {
      this.observe(confirmed, refused.has(id) ? null : pending, now);
    }
    for (const { held } of this.entries.acknowledged.values()) this.clock.observe(timeOf(held.stamp));
    const stamps = [...new Set([...refused].map(stampOf))].sort();
    this.restamp(new Map(stamps.map((stamp) => [stamp, this.clock.issue(now).time])));
  }

  // Receiving

  /** Why changes are not accepted: the store would have more than a store may have. */
  refusal(records, isWhole = false) {
    const from = isWhole ? new Usage() : this.entries.agreed;
    const to = from.copy();
    for (const [id, { value, part }] of new Map(records.map((record) => [idOf(record), record]))) {
      to.replace(isWhole ? null : this.entries.get(id)?.confirmed?.value ?? null, value, part);
    }
    const isKnown = this.meta.cursor !== null || this.configuredAt !== -Infinity;
    return isTooMuch(from, to, isKnown ? this.meta.limits : null)
      ? failure('unreachable', 'the server sent more than a store may have') : null;
  }

  /** Applies what the server sent, as one. @param {Changes} changes */
  receive({ records, cursor, isWhole, horizon }, now) {
    const isFirst = isWhole && !this.meta.hasCompletedFirstSync;
    if (isWhole) this.takeStore(records);
    else this.change(records, (entry, record) => merge(entry, record, true));
    this.dropTombstones(horizon);
    Object.assign(this.meta, { cursor, lastSync: this.clock.now(now) });
    this.isMetaUnsaved = true;
    this.receipts.received(isWhole, records.some(({ stamp }) => deviceOf(stamp) !== this.device));
    this.pass(cursor);
    this.tell(isFirst ? 'initialSyncChange' : 'serverChange');
  }

  /** @param {(entry: Entry, record: Row) => void} body */
  change(records, body) {
    for (const record of records) {
      this.clock.observe(timeOf(record.stamp));
      this.entries.update(idOf(record), (entry) => body(entry, record));
    }
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
    this.change(records, (entry, record) => dropIfBeaten(Object.assign(entry, { confirmed: record })));
    this.forgetAgreed([...this.entries.all].filter(([id, { confirmed }]) => confirmed && !listed.has(id)));
  }

  /** The first sync. Keys with a policy lose nothing. @param {Row[]} records */
  takeFirst(records) {
    this.meta.hasCompletedFirstSync = true;
    const keys = new Set(records.map(({ key }) => key));
    const merged = new Set([...keys].filter((key) => this.policies.has(key) || this.entries.hasParts(key)));
    const discards = this.settings.firstSync !== 'timestamps';
    this.change(records, (entry, record) => {
      const mine = entry.pending?.record;
      // The own value of a key with parts: its writer may not have known those of others.
      const isPlaceholder = mine && mine.part === '' && (!mine.value || isEmpty(mine.value));
      if (merged.has(record.key) ? isPlaceholder : discards) drop(entry);
      merge(entry, record);
    });
    // A plain write of a key of which the server has only parts.
    for (const key of discards ? keys : []) {
      if (!merged.has(key) && this.entries.pending(key)) this.entries.update(key, drop);
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
        if (isOffered) entry.pending ??= { record: mine, transaction, provisional: null, had: null };
        dropIfBeaten(entry);
      });
    }
  }

  forgetAgreed(entries) {
    for (const [id] of entries) this.entries.update(id, (entry) => { entry.confirmed = null; });
  }

  /** Tombstones are kept to tell a restored server of them, unless it has forgotten them itself. */
  dropTombstones(horizon) {
    const agreed = () => [...this.entries.all].filter(([, { confirmed, pending }]) =>
      confirmed && !confirmed.value && !pending);
    if (horizon > timestamp(0) && horizon !== this.horizon) {
      this.horizon = horizon;
      this.forgetAgreed(agreed().filter(([, { confirmed }]) => timeOf(confirmed.stamp) < horizon));
    }
    if (this.entries.tombstones <= tombstonesMax) return;
    this.forgetAgreed(agreed().sort(([, a], [, b]) => compare(a.confirmed.stamp, b.confirmed.stamp))
      .slice(0, this.entries.tombstones - tombstonesMax / 2));
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

  /** Expects the stream at the answer's cursor for a deletion, which it may never bring. */
  noteLag(now) {
    if (!this.isLive || this.lag) return;
    const next = [...this.entries.acknowledged.values()].find(({ held }) => !held.value);
    if (next) this.lag = { fetch: 0, cursor: next.cursor, noticedAt: now };
  }

  /** All that was committed before an answer is here: its writes give way to what is held. */
  finishAcknowledged(cursor) {
    for (const [id, one] of [...this.entries.acknowledged]) {
      if (one.cursor !== cursor) continue;
      const isShown = this.entries.isAcknowledged(id);
      this.entries.acknowledge(id, null);
      if (isShown) this.entries.update(id, (entry) => merge(drop(entry), one.held));
    }
  }

  /** Sends writes again that were acknowledged before a fetch that did not bring them. */
  unacknowledge(before = Infinity) {
    for (const [id, { fetch }] of [...this.entries.acknowledged]) {
      if (fetch >= before) continue;
      this.entries.acknowledge(id, null);
      this.answers.delete(id);
    }
  }

  // Pushing

  /**
   * The transactions for the next push, oldest first. What is sent later must be later, or a server that has
   * forgotten deletions would take it for a repeat: so transactions that overlap in time go together, up to
   * four times what the connection bears.
   */
  sendable() {
    const all = new Map();
    for (const id of this.entries.waiting) {
      const { confirmed, pending: { record, transaction, provisional, had } } = this.entries.get(id);
      const one = all.get(transaction)
        ?? { writes: [], had: new Map(), bytes: 0, oldest: 'g', newest: '', isHeld: false };
      all.set(transaction, one);
      one.writes.push(record);
      one.bytes += pushBytes(record);
      one.newest = later(one.newest, timeOf(record.stamp));
      const times = provisional ? [] : [timeOf(record.stamp)];
      if (had) {
        one.had.set(id, had);
        const isAgreed = confirmed && had === withoutDigest(confirmed.stamp);
        if (deviceOf(had) === deviceOf(record.stamp) && !isAgreed) times.push(timeOf(had));
      }
      [one.oldest] = [one.oldest, ...times].sort();
      // Only what is on disk with its final stamp may be sent.
      one.isHeld ||= provisional !== null || !this.entries.isSaved(id);
    }
    // Nor anything later than what must wait for that.
    const transactions = [...all.values()].sort((a, b) => compare(a.oldest, b.oldest));
    const bound = transactions.find(({ isHeld }) => isHeld)?.oldest ?? 'g';
    const ready = transactions.filter(({ isHeld, newest }) => !isHeld && newest < bound);
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

  nextPush(now) {
    if (!this.canPush || now.uptime < this.pushRetry?.at) return null;
    this.pushRetry = null;
    if (this.tooLarge?.retry?.at <= now.uptime) this.tooLarge.retry = null;
    const transactions = this.sendable();
    const wait = transactions.length ? this.bucket.take(now.uptime) : 0;
    if (wait) this.pushRetry = { at: now.uptime + wait, notBefore: now.uptime + wait };
    if (wait || !transactions.length) return null;
    this.bucket.charge(bytesOf(transactions));
    this.pushesSent += 1;
    const { pushesSent: number, receipts: { saved }, settings: { unkept = [] } } = this;
    this.push = { number, transactions, saved, sentAt: now, fetch: this.fetchesStarted };
    return { type: 'push', number, body: {
      transactions: transactions.map(({ writes, had }) => ({ writes: writes.map((row) =>
        wireRow(row, this.device, had.get(idOf(row)), unkept.includes(row.key))) })),
      tellsHad: true, ...(saved ? { saved } : {}),
      deviceMilliseconds: String(Math.max(0, Math.trunc(now.wall))),
    } };
  }

  get canPush() { return this.isReached && !this.push && this.entries.waiting.size > 0; }
  get pushAt() { return (this.canPush ? this.pushRetry?.at ?? this.tooLarge?.retry?.at : null) ?? Infinity; }

  pushAnswered({ number, answer }, now) {
    const { push } = this;
    if (push?.number !== number) return;
    const superseding = supersedingIn(answer, push.transactions);
    const held = [...this.entries.acknowledged.values()].map((one) => one.held);
    const why = !superseding ? failure('refused', "the server's answer does not match")
      : superseding.length ? this.refusal([...held, ...superseding]) : null;
    if (why) return this.pushFailed({ number, failure: why }, now);
    this.push = null;
    this.receipts.told(push.saved);
    if (this.tooLarge && bytesOf(push.transactions) >= this.tooLarge.bytes) this.tooLarge = null;
    this.pushBackoff.succeed();
    this.pushBytesMax *= 1.25;
    this.pollSoon(now);
    this.meta.lastSync = this.clock.now(now);
    this.measure(answer.server, push.sentAt, now, now);
    this.tell('serverChange');
    const withdrawn = new Set();
    push.transactions.forEach(({ writes, had }, i) => writes.forEach((write, j) => {
      const result = answer.results[i];
      const refusal = !Array.isArray(result) ? result : result[j] === 'none' && write.value
        ? { code: older, detail: 'the key may have been deleted after this write' } : null;
      const id = idOf(write);
      const transaction = this.entries.pending(id)?.transaction;
      if (refusal) {
        if (this.withdraw(write, refusal, had.get(id) ?? null)) withdrawn.add(write.key);
      } else if (transaction) {
        const [held, { cursor }] = [typeof result[j] === 'object' ? result[j] : write, answer];
        this.entries.acknowledge(id, { write, transaction, held, cursor, fetch: this.fetchesStarted });
      }
      this.noteAnswered(id, refusal, number);
    }));
    this.tell('serverChange', withdrawn);
    this.post('quotaViolation', withdrawn);
    if (this.passed.has(answer.cursor)) {
      this.finishAcknowledged(answer.cursor);
      this.tell('serverChange');
    }
    this.noteLag(now.uptime);
    // A stream that went live since may come from a server restored after the answer.
    if (this.isLive && push.fetch < this.link.stream) this.unacknowledge();
  }

  /**
   * Shows the value last agreed on in place of a refused write, and keeps that. Returns whether the app is to
   * be told that a limit was exceeded.
   */
  withdraw(write, { code, detail }, had) {
    const id = idOf(write);
    const pending = this.entries.pending(id);
    if (!pending) return false;
    if (!isSameRow(pending.record, write)) {
      // The server never had it: what replaced it replaced nothing.
      if (code === older || pending.had !== withoutDigest(write.stamp)) return false;
      this.entries.update(id, (entry) => { entry.pending = { ...pending, had }; });
      return false;
    }
    const known = this.entries.acknowledged.get(id);
    this.entries.update(id, (entry) => {
      drop(entry);
      // The previous write is at the server, and the stream has not brought it.
      if (!known || isSameRow(known.write, write)) return;
      const { write: record, transaction } = known;
      entry.pending = { record, transaction, provisional: null, had: null };
      dropIfBeaten(entry);
    });
    this.refuse(write, code, detail);
    return code !== older;
  }

  pushFailed({ number, failure: why }, now) {
    const { push } = this;
    if (push?.number !== number) return;
    this.push = null;
    let { kind, detail } = why;
    const bytes = bytesOf(push.transactions);
    const isAlone = push.transactions.length === 1;
    if (kind === 'timedOut' || (kind === 'tooLarge' && !isAlone)) {
      this.pushBytesMax = Math.max(pushBytesMin, Math.floor(Math.min(this.pushBytesMax, bytes) / 2));
    }
    if (kind === 'unauthorized') {
      this.closeLink();
      this.waitAfter(why, now);
    } else if (kind === 'clockAhead' && this.unknownPush !== null) {
      // The server may have taken what a lost answer was about: ask before restamping.
      this.closeLink();
    } else if (kind === 'tooLarge' && isAlone) {
      this.tooLarge = { bytes: Math.min(bytes, this.tooLarge?.bytes ?? Infinity), retry: {
        at: now.uptime + tooLargeRetryMilliseconds, notBefore: now.uptime + refusedRetryMilliseconds } };
      detail = `the transaction with "${push.transactions[0].writes[0].key}", ${bytes} bytes, is larger than `
        + 'the server, or a proxy in front of it, accepts';
    } else {
      const pause = kind === 'tooLarge' ? null : pauseAfter(why);
      if (kind === 'clockAhead') {
        this.measure(why.server ?? 0, push.sentAt, now, now);
        this.correctAhead(why.server ?? 0, now);
        this.tell('serverChange');
      } else if (pause === null && kind !== 'tooLarge') this.unknownPush = this.fetchesStarted;
      const wait = pause ?? this.pushBackoff.fail(this.random);
      this.pushRetry = { at: now.uptime + wait, notBefore: now.uptime + (isBusy(why) ? wait : 0) };
    }
    this.lastError = detail;
    this.finishRequests({ ...why, detail });
  }

  // Requests for a round trip

  /** @returns {number} The ID of the effect `finishSync`. */
  requestSync() {
    this.requestsMade += 1;
    const id = this.requestsMade;
    const underWay = new Map(this.push?.transactions.flatMap(({ writes }) =>
      writes.map((write) => [idOf(write), write])));
    const writes = new Map();
    for (const one of [...this.entries.waiting, ...this.entries.acknowledged.keys()]) {
      const [sent, pending] = [underWay.get(one), this.entries.pending(one)];
      writes.set(one, this.pushesSent + (sent && pending && isSameRow(sent, pending.record) ? 0 : 1));
    }
    this.requests.push({ id, writes, fetch: this.fetchesStarted + 1, refused: new Set(), refusal: null });
    if (!this.isSignedIn) this.finishRequests(failure('unauthorized', 'this device is not signed in'));
    return id;
  }

  noteAnswered(id, refusal, push) {
    // What replaced a refused write still waits.
    if (refusal && this.entries.waiting.has(id)) return;
    for (const request of refusal ? this.requests : []) {
      const least = request.writes.get(id);
      if (!(least <= push) || this.answers.get(id) >= least) continue;
      request.refused.add(id);
      request.refusal ??= refusal;
    }
    this.answers.set(id, push);
  }

  /** Finishes the requests that are done; after a failure all of them. @param {Failure | null} why */
  finishRequests(why = null) {
    // The server holds a later write than the acknowledged one.
    const isBehind = [...this.entries.acknowledged].some(([id, { held, write }]) =>
      !isSameRow(held, write) && this.entries.isAcknowledged(id));
    const waits = ([id, push]) => this.entries.waiting.has(id) && !(this.answers.get(id) >= push);
    const isDone = ({ writes, fetch }) =>
      why || (!isBehind && fetch <= this.fetchesFinished && ![...writes].some(waits));
    this.requests = this.requests.filter((request) => {
      if (!isDone(request)) return true;
      const keys = [...new Set([...request.refused].map((id) => keyAndPart(id)[0]))];
      const refusal = keys.length ? { ...failure('refused'), ...request.refusal, keys } : null;
      this.effects.push({ type: 'finishSync', id: request.id, failure: refusal ?? why });
      return false;
    });
    if (!this.requests.length) this.answers.clear();
  }
}

const bytesOf = (transactions) => transactions.reduce((sum, { bytes }) => sum + bytes, 0);

/** The later records in an answer; null if it does not answer each write. */
function supersedingIn({ results }, sent) {
  const fits = results.length === sent.length && results.every((result, i) => !Array.isArray(result)
    || (result.length === sent[i].writes.length && result.every((held, j) =>
      typeof held !== 'object' || idOf(held) === idOf(sent[i].writes[j]))));
  return fits ? results.filter(Array.isArray).flat().filter((held) => typeof held === 'object') : null;
}
