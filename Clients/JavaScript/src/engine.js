// SPDX-License-Identifier: Apache-2.0

/**
 * The sync rules of a device: takes writes of the app and news of disk and server, and decides what to do. It
 * has no clock, disk or network: report what happened with `handle` and `write`, then ask `nextEffect` for
 * actions until it returns null, and again at `nextWake`.
 */

import { ExchangeEngine, isBusy, pauseAfter } from './engine-exchange.js';
import { failure } from './messages.js';
import { Backoff } from './rules.js';

const hurryMilliseconds = 1_000;
/** How long a stream may be silent before polls begin, and a live one may lag behind in silence. */
const streamPatienceMilliseconds = 10_000;
const lagMilliseconds = 2_000;
/** The attempts to open a stream before polls begin, if polls may fail for the same reason. */
const attemptsMax = 3;
const configMilliseconds = 3_600_000;

export class Engine extends ExchangeEngine {
  backoff = new Backoff();
  streamsFailed = 0;

  /**
   * Takes news, whose type is the name of the method for it: `saved`, `saveFailed`, `signedIn`, `signedOut`,
   * `streamReceived`, `streamEnded`, `pushAnswered`, `pushFailed`, `pulled`, `pullFailed`, `hurry`.
   * @param {{type: string, [more: string]: any}} event @param {Reading} now
   */
  handle(event, now) { this[event.type](event, now); }

  /** The next action; null until the next event or `nextWake`. @returns {Effect | null} */
  nextEffect(now) {
    this.finishRequests();
    for (const [reason, keys] of this.notices) {
      this.notices.delete(reason);
      return { type: 'notify', reason, keys: [...keys] };
    }
    if (this.effects.length) return this.effects.shift();
    const rows = this.nextSave(now);
    if (rows) return { type: 'save', rows };
    return this.nextLinkEffect(now) ?? this.nextPush(now) ?? this.nextPull(now);
  }

  /** The uptime at which time alone makes something possible; `Infinity` means never. */
  get nextWake() {
    const { link, saveRetryAt, pushAt, pollAt, receiptAt, lagEndsAt } = this;
    const linkAt = !this.isSignedIn ? Infinity : link.kind === 'waiting' ? link.at
      : link.kind === 'connecting' && !this.polling ? this.heardAt + streamPatienceMilliseconds : Infinity;
    return Math.min(saveRetryAt, linkAt, pushAt, pollAt, receiptAt, lagEndsAt);
  }

  get status() {
    const { entries, link, meta, isSignedIn } = this;
    const connection = !isSignedIn ? 'signedOut' : this.isLive ? 'connected'
      : link.isUnauthorized ? 'unauthorized' : this.isReached ? 'polling'
        : link.kind === 'waiting' ? 'waiting' : 'connecting';
    return {
      connection, lastError: isSignedIn ? this.lastError : null,
      nextRetry: connection === 'waiting' ? link.wall : null, lastSync: meta.lastSync,
      pendingKeys: [...new Set([...entries.waiting].map((id) => entries.get(id).key))].sort(),
      isInitialSyncComplete: meta.hasCompletedFirstSync, diskError: this.diskFailure,
      usage: { bytes: entries.usage.bytes, keys: entries.values().size }, limits: meta.limits,
    };
  }

  // The account

  /** All here belongs to one account, and must never reach another. */
  signedIn({ account, device }) {
    if (this.meta.account !== null && this.meta.account !== account) {
      throw new Error('this store belongs to another account');
    }
    this.isMetaUnsaved ||= this.meta.account !== account;
    this.meta.account = account;
    this.device = device;
    this.isSignedIn = true;
    this.closeLink();
  }

  /** The values stay, and new writes wait for the same account. */
  signedOut() {
    if (!this.isSignedIn) return;
    this.isSignedIn = false;
    this.closeLink();
    this.push = null;
    this.finishRequests(failure('unauthorized', 'this device was signed out'));
  }

  // The stream

  nextLinkEffect(now) {
    if (!this.isSignedIn) return null;
    const { link } = this;
    if (link.kind === 'idle' || (link.kind === 'waiting' && link.at <= now.uptime)) return this.open(now);
    if (link.kind === 'connecting' && this.heardAt + streamPatienceMilliseconds <= now.uptime) {
      this.beginPolling(now.uptime);
    }
    if (this.lagEndsAt > now.uptime) return null;
    this.breakStream(failure('unreachable', 'the stream lags behind'), now);
    return this.effects.shift();
  }

  open(now) {
    this.fetchesStarted += 1;
    this.heardAt = now.uptime;
    const [stream, since] = [this.fetchesStarted, this.cursorToResumeFrom()];
    const isSaved = since !== null && since === this.receipts.saved;
    // `firstHeardAt`: the first byte. `isStale`: polls have overtaken it.
    this.link = { kind: 'connecting', stream, sentAt: now, firstHeardAt: null, isStale: false,
      saved: isSaved ? since : null };
    return { type: 'listen', stream, since, isSaved };
  }

  /** Null if the whole store is needed. */
  cursorToResumeFrom() {
    if (!this.meta.hasCompletedFirstSync) this.snapshotReason = 'firstSync';
    else if (this.meta.cursor === null) this.snapshotReason ??= 'compacted';
    return this.snapshotReason ? null : this.meta.cursor;
  }

  closeLink() {
    this.hangUp();
    [this.polling, this.pull, this.lag, this.streamsFailed] = [null, null, null, 0];
  }

  /** Closes the stream, if there is one. */
  hangUp() {
    if (this.link.stream !== undefined) this.effects.push({ type: 'hangUp', stream: this.link.stream });
    this.link = { kind: 'idle' };
  }

  streamReceived({ message, stream }, now) {
    const { link } = this;
    if (stream !== link.stream) return;
    this.heardAt = now.uptime;
    link.firstHeardAt ??= now;
    if (link.isStale) this.hangUp();
    else if (message.kind === 'changes') {
      const { changes } = message;
      const tooMuch = this.refusal(changes.records, changes.isWhole);
      if (tooMuch) return this.breakStream(tooMuch, now);
      if (!this.isLive) this.measure(changes.server, link.sentAt, link.firstHeardAt, now);
      this.receive(changes, now);
    } else if (message.kind === 'ready' && this.snapshotReason && !this.isLive) {
      this.restart(now);
      this.lastError = 'the server did not send the store';
    } else if (message.kind === 'ready') this.becomeLive(message, now);
    else if (message.kind === 'resync') this.restart(now);
  }

  restart(now) {
    this.closeLink();
    this.wait(this.backoff.fail(this.random), now);
  }

  becomeLive({ cursor, config }, now) {
    const { link } = this;
    if (this.isLive) return;
    this.measure(config.server, link.sentAt, link.firstHeardAt, now);
    link.kind = 'live';
    this.receipts.told(link.saved);
    this.backoff.succeed();
    this.finishFetch(link.stream);
    [this.polling, this.pull, this.streamsFailed, this.lastError] = [null, null, 0, null];
    // Requests that await a poll's answer now await a new one.
    for (const request of this.requests) {
      if (request.fetch > this.fetchesFinished) request.fetch = this.fetchesStarted + 1;
    }
    this.meta.cursor = cursor;
    this.isMetaUnsaved = true;
    this.pass(cursor);
    this.unacknowledge();
    this.adopt(config, now);
    this.meta.lastSync = this.clock.now(now);
    this.tell('serverChange');
  }

  /** All that the server had when that fetch began is here. */
  finishFetch(fetch) {
    this.fetchesFinished = Math.max(this.fetchesFinished, fetch);
    if (this.unknownPush !== null && this.unknownPush < fetch) this.unknownPush = null;
  }

  adopt({ limits, allowance }, now) {
    Object.assign(this.meta, { limits, allowance });
    this.bucket.adopt(allowance, now.uptime);
    this.configuredAt = now.uptime;
  }

  streamEnded({ stream, failure: why }, now) {
    if (stream !== this.link.stream) return;
    const wasLive = this.isLive;
    this.link = { kind: 'idle' };
    this.lag = null;
    if (wasLive) this.pull = null;
    const cause = why ?? failure('unreachable', 'the server ended the stream');
    if (this.takeGone(cause)) return;
    this.waitAfter(cause, now);
    if (wasLive) return;
    this.streamsFailed += 1;
    if (cause.kind === 'unauthorized') this.polling = null;
    else if (!why || isBusy(cause) || cause.kind === 'timedOut' || this.streamsFailed >= attemptsMax) {
      // A server that ended the stream responds, so that polls may succeed.
      this.beginPolling(now.uptime + (cause.kind === 'busy' ? cause.wait ?? 0 : 0));
    }
    // Callers that wait for a round trip get another attempt after a lost connection.
    if (!this.polling) this.finishRequests(cause);
  }

  /** Whether the cursor is gone, so that the whole store is needed. */
  takeGone({ kind }) {
    if ((kind !== 'cursorGone' && kind !== 'otherHistory') || this.snapshotReason) return false;
    this.snapshotReason = kind === 'otherHistory' ? kind : 'compacted';
    return true;
  }

  breakStream(why, now) {
    const { stream } = this.link;
    if (stream === undefined) return;
    this.streamEnded({ stream, failure: why }, now);
    this.effects.push({ type: 'hangUp', stream });
  }

  waitAfter(why, now) {
    const pause = pauseAfter(why) ?? this.backoff.fail(this.random);
    this.wait(pause + (isBusy(why) ? this.random.below(250) : 0), now, isBusy(why));
    this.link.isUnauthorized = why.kind === 'unauthorized';
    this.lastError = why.detail;
  }

  wait(milliseconds, now, isOrdered = false) {
    const least = isOrdered ? milliseconds : Math.min(milliseconds, hurryMilliseconds);
    const [at, notBefore] = [now.uptime + milliseconds, now.uptime + least];
    this.link = { kind: 'waiting', at, notBefore, wall: now.wall + milliseconds };
  }

  /** Retries at once whatever waits. */
  hurry(_event, now) {
    if (this.saveRetryAt !== Infinity) this.saveRetryAt = now.uptime;
    for (const retry of [this.link, this.pushRetry, this.tooLarge?.retry, this.polling]) {
      if (retry?.at !== undefined) retry.at = Math.max(now.uptime, Math.min(retry.at, retry.notBefore));
    }
    this.polling?.pauses.succeed();
  }

  // Pulls: polls in place of a stream; while one is live, they ask how far the server has got. A pull ends
  // with the stream, or the lack of one, in which it began.

  beginPolling(at) { this.polling ??= { at, notBefore: at, pauses: new Backoff(), isWorking: false }; }

  /** Something happened, so that more may follow. */
  pollSoon(now) {
    if (!this.polling) return;
    this.polling.pauses.succeed();
    this.polling.at = Math.min(this.polling.at, Math.max(this.polling.notBefore, now.uptime));
  }

  get wantsFetch() { return this.requests.some(({ fetch }) => fetch > this.fetchesStarted); }

  get pollAt() {
    if (!this.polling || this.pull || this.isLive || !this.isSignedIn) return Infinity;
    const { at, notBefore } = this.polling;
    const due = this.wantsFetch ? Math.min(at, notBefore) : at;
    const isStreamComing = this.link.kind === 'connecting' && this.link.firstHeardAt;
    return isStreamComing ? Math.max(due, this.heardAt + streamPatienceMilliseconds) : due;
  }

  /** When the server is told what is saved, unless a push does so before. */
  get receiptAt() {
    const isFree = this.isLive && !this.pull && !this.lag && this.diskFailure === null;
    return isFree ? this.receipts.dueAt : Infinity;
  }

  get lagEndsAt() {
    return this.isLive && this.lag ? Math.max(this.lag.noticedAt, this.heardAt) + lagMilliseconds : Infinity;
  }

  nextPull(now) {
    const { isLive } = this;
    const isReceipt = this.receiptAt <= now.uptime;
    const lacksTime = this.entries.waiting.size && !this.clock.isExact(now);
    const isWanted = !isLive ? this.pollAt <= now.uptime
      : !this.lag && (this.wantsFetch || lacksTime || isReceipt);
    if (!this.isSignedIn || this.pull || !isWanted) return null;
    this.fetchesStarted += 1;
    if (isReceipt) this.receipts.sending(now.uptime);
    const since = isReceipt ? this.receipts.saved : this.cursorToResumeFrom();
    const isSaved = since !== null && since === this.receipts.saved;
    const number = this.fetchesStarted;
    this.pull = { number, since, isSaved, sentAt: now };
    const withConfig = !isLive && now.uptime - this.configuredAt >= configMilliseconds;
    return { type: 'pull', number, since, isSaved, withConfig };
  }

  pulled({ number, changes }, now) {
    const { pull } = this;
    if (pull?.number !== number) return;
    this.pull = null;
    if (pull.isSaved) this.receipts.told(pull.since);
    if (!this.isLive) return this.polled(pull, changes, now);
    this.meta.lastSync = this.clock.now(now);
    this.measure(changes.server, pull.sentAt, now, now);
    this.tell('serverChange');
    // Its records are the stream's to bring.
    if (this.passed.has(changes.cursor)) this.fetchesFinished = Math.max(this.fetchesFinished, number);
    else this.lag = { fetch: number, cursor: changes.cursor, noticedAt: now.uptime };
  }

  polled(pull, changes, now) {
    const { link, polling } = this;
    if (!polling) return;
    if (pull.since !== this.cursorToResumeFrom()) return this.pollSoon(now);
    const why = !changes.isWhole && this.snapshotReason
      ? failure('unreachable', 'the server did not send the store')
      : this.refusal(changes.records, changes.isWhole);
    if (why) return this.pollFailed(why, now);
    this.measure(changes.server, pull.sentAt, now, now);
    // A stream that was opened before brings only what is known by now, or less.
    link.isStale ||= changes.cursor !== this.meta.cursor || changes.isWhole;
    if (changes.config) this.adopt(changes.config, now);
    this.receive(changes, now);
    this.unacknowledge(pull.number);
    this.finishFetch(pull.number);
    // The server answers again: a stream may work too.
    if (!polling.isWorking && link.kind === 'waiting') link.at = Math.min(link.at, link.notBefore);
    polling.isWorking = true;
    if (changes.isWhole || changes.records.length) polling.pauses.succeed();
    this.pausePolling(now);
  }

  pausePolling(now) {
    this.polling.at = now.uptime + this.polling.pauses.fail(this.random);
    this.polling.notBefore = now.uptime + hurryMilliseconds;
  }

  pullFailed({ number, failure: why }, now) {
    if (this.pull?.number !== number) return;
    this.pull = null;
    // The stream is probably broken as well, and a new one fetches everything too.
    if (this.isLive) this.breakStream(why, now);
    else this.pollFailed(why, now);
  }

  pollFailed(why, now) {
    const { link, polling } = this;
    if (!polling) return;
    if (this.takeGone(why)) return this.pollSoon(now);
    if (polling.isWorking) polling.pauses.succeed();
    polling.isWorking = false;
    this.pausePolling(now);
    const pause = pauseAfter(why);
    // A device that is offline need not wake twice.
    if (pause !== null) polling.at = now.uptime + pause;
    else if (link.kind === 'waiting') polling.at = Math.max(link.at, now.uptime);
    if (isBusy(why)) polling.notBefore = polling.at;
    if (why.kind === 'unauthorized') {
      this.closeLink();
      this.waitAfter(why, now);
    }
    this.lastError = why.detail;
    this.finishRequests(why);
  }
}
