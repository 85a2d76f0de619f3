// SPDX-License-Identifier: Apache-2.0

/**
 * The sync rules of a device: takes writes of the app and news of disk and server, and decides what
 * to do. It has no clock, disk or network: report what happened with `handle` and `write`, then ask
 * `nextEffect` for actions until it returns null, and again at `nextWake`.
 *
 * @typedef {import('./clock.js').Reading} Reading
 * @typedef {import('./messages.js').Changes} Changes
 * @typedef {import('./messages.js').Failure} Failure
 * @typedef {{at: number, notBefore: number}} Retry The next attempt, and the earliest in a hurry.
 * @typedef {{kind: 'idle'} | {kind: 'waiting', retry: Retry}
 *     | {kind: 'connecting' | 'live', stream: number, fetch: number}} Link
 * @typedef {{kind: 'progress' | 'resync'} | {kind: 'changes', changes: Changes}
 *     | {kind: 'ready', cursor: string, config: Config}} StreamMessage
 * @typedef {ReturnType<typeof import('./rules.js').checkedConfig>} Config
 * @typedef {{type: 'notify', reason: import('./engine-writing.js').Reason, keys: string[]}
 *     | {type: 'finishSync', id: number, failure: Failure | null}
 *     | {type: 'save', rows: Map<string, string | null>}
 *     | {type: 'listen', stream: number, since: string | null, isSaved: boolean}
 *     | {type: 'hangUp', stream: number} | {type: 'push', number: number, body: any}
 *     | {type: 'pull', number: number, since: string | null, isSaved: boolean,
 *         withConfig: boolean}} Effect
 * @typedef {{type: 'saved'} | {type: 'saveFailed', reason: string} | {type: 'hurry'}
 *     | {type: 'signedIn', account: string, device: string} | {type: 'signedOut'}
 *     | {type: 'streamReceived', stream: number, message: StreamMessage}
 *     | {type: 'streamEnded', stream: number, failure: Failure | null}
 *     | {type: 'pushAnswered', number: number, answer: import('./messages.js').PushAnswer}
 *     | {type: 'pushFailed' | 'pullFailed', number: number, failure: Failure}
 *     | {type: 'pulled', number: number, changes: Changes}} Event
 */

import { ExchangeEngine, failure, refusedRetryMilliseconds } from './engine-exchange.js';
import { Backoff } from './rules.js';

const unauthorizedRetryMilliseconds = 300_000;
const hurryMilliseconds = 1_000;
/** How long a stream may be silent before polls begin. */
const streamPatienceMilliseconds = 10_000;
/** How long a live stream may lag behind in silence. */
const lagMilliseconds = 2_000;
/** The attempts to open a stream before polls begin, if polls may fail for the same reason. */
const attemptsMax = 3;
const configMilliseconds = 3_600_000;

export class Engine extends ExchangeEngine {
  /** @param {ConstructorParameters<typeof ExchangeEngine>[1]} options */
  constructor(rows, options) {
    super(rows, options);
    this.isSignedIn = false;
    this.link = { kind: 'idle' };
    this.linkState = 'waiting';
    this.nextRetry = null;
    /** A stream to close. @type {number | null} */
    this.hangUp = null;
    this.backoff = new Backoff();
    this.streamsFailed = 0;
    /** The newest stream: when it was asked for, and when its first byte came. */
    this.streamSentAt = options.now;
    this.streamHeardAt = null;
    this.streamSaved = null;
    /** Polls have overtaken the stream that is being opened. */
    this.isStreamStale = false;
    /** Polls in place of a stream. @type {{next: Retry, pauses: Backoff, isWorking: boolean}} */
    this.polling = null;
  }

  /** @param {Event} event @param {Reading} now */
  handle(event, now) {
    switch (event.type) {
      case 'saved': return this.saved(now);
      case 'saveFailed': return this.saveFailed(event.reason, now);
      case 'signedIn': return this.signIn(event.account, event.device);
      case 'signedOut': return this.signOut();
      case 'streamReceived': return this.received(event.message, event.stream, now);
      case 'streamEnded': return this.streamEnded(event.stream, event.failure, now);
      case 'pushAnswered': return this.pushAnswered(event.number, event.answer, now);
      case 'pushFailed': return this.pushFailed(event.number, event.failure, now);
      case 'pulled': return this.pulled(event.number, event.changes, now);
      case 'pullFailed': return this.pullFailed(event.number, event.failure, now);
      case 'hurry': return this.hurry(now);
    }
  }

  /** The next action; null until the next event or `nextWake`. @returns {Effect | null} */
  nextEffect(now) {
    this.checkRequests();
    for (const [reason, keys] of this.notices) {
      this.notices.delete(reason);
      return { type: 'notify', reason, keys: [...keys] };
    }
    const finished = this.finished.shift();
    if (finished) return { type: 'finishSync', ...finished };
    const rows = this.nextSave(now);
    if (rows) return { type: 'save', rows };
    const effect = this.nextLinkEffect(now);
    if (effect) return effect;
    const push = this.nextPush(now);
    return push ? { type: 'push', ...push } : this.nextPull(now);
  }

  /** The uptime at which time alone makes something possible; `Infinity` means never. */
  get nextWake() {
    const { kind } = this.link;
    const link = !this.isSignedIn ? Infinity
      : kind === 'waiting' ? this.link.retry.at
        : kind === 'connecting' && !this.polling ? this.heardAt + streamPatienceMilliseconds
          : Infinity;
    const { saveRetryAt, pushAt, pollAt, receiptAt, lagEndsAt } = this;
    return Math.min(saveRetryAt, link, pushAt, pollAt, receiptAt, lagEndsAt);
  }

  get status() {
    return {
      connection: this.isSignedIn ? this.linkState : 'signedOut',
      lastError: this.isSignedIn ? this.lastError : null,
      nextRetry: this.isSignedIn && this.linkState === 'waiting' ? this.nextRetry : null,
      lastSync: this.meta.lastSync,
      pendingKeys: [...new Set([...this.entries.waiting].map(
        (id) => this.entries.get(id)?.key ?? ''))].sort(),
      isInitialSyncComplete: this.meta.hasCompletedFirstSync,
      diskError: this.diskFailure,
      usage: { bytes: this.entries.usage.bytes, keys: this.entries.values().size },
      limits: this.meta.limits,
    };
  }

  // The account

  /** What is here belongs to one account, and must never reach another. */
  signIn(account, device) {
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
  signOut() {
    if (!this.isSignedIn) return;
    this.isSignedIn = false;
    this.closeLink();
    this.push = null;
    this.failRequests(failure('unauthorized', 'this device was signed out'));
  }

  // The stream

  get isLive() { return this.link?.kind === 'live'; }

  /** Whether the server answers, so that pushes may be sent. */
  get isReached() { return this.isLive || (this.polling?.isWorking ?? false); }

  get stream() { return 'stream' in this.link ? this.link.stream : null; }

  /** @returns {Effect | null} */
  nextLinkEffect(now) {
    if (this.hangUp !== null) {
      const stream = this.hangUp;
      this.hangUp = null;
      return { type: 'hangUp', stream };
    }
    if (!this.isSignedIn) return null;
    const { link } = this;
    if (link.kind === 'idle' || (link.kind === 'waiting' && link.retry.at <= now.uptime)) {
      return this.open(now);
    }
    if (link.kind === 'connecting' && this.heardAt + streamPatienceMilliseconds <= now.uptime) {
      this.beginPolling(now.uptime);
    }
    if (this.lagEndsAt > now.uptime) return null;
    this.breakStream(failure('unreachable', 'the stream lags behind'), now);
    return this.nextLinkEffect(now);
  }

  /** @returns {Effect} */
  open(now) {
    this.streamsOpened += 1;
    this.fetchesStarted += 1;
    this.link = { kind: 'connecting', stream: this.streamsOpened, fetch: this.fetchesStarted };
    this.streamSentAt = now;
    this.streamHeardAt = null;
    this.heardAt = now.uptime;
    this.isStreamStale = false;
    const since = this.cursorToResumeFrom();
    if (!this.isReached) this.linkState = 'connecting';
    this.streamSaved = since !== null && since === this.receipts.saved ? since : null;
    const isSaved = this.streamSaved !== null;
    return { type: 'listen', stream: this.streamsOpened, since, isSaved };
  }

  /** Null if the whole store is needed. */
  cursorToResumeFrom() {
    if (!this.meta.hasCompletedFirstSync) this.snapshotReason = 'firstSync';
    else if (this.meta.cursor === null) this.snapshotReason ??= 'compacted';
    return this.snapshotReason ? null : this.meta.cursor;
  }

  closeLink() {
    this.hangUp = this.stream ?? this.hangUp;
    this.link = { kind: 'idle' };
    this.polling = null;
    this.pull = null;
    this.lag = null;
    this.streamsFailed = 0;
  }

  /** @param {StreamMessage} message */
  received(message, stream, now) {
    if (stream !== this.stream) return;
    this.heardAt = now.uptime;
    this.streamHeardAt ??= now;
    if (this.isStreamStale) {
      this.hangUp = stream;
      this.link = { kind: 'idle' };
    } else if (message.kind === 'changes') {
      const { changes } = message;
      const tooMuch = this.refusal(changes.records, changes.isWhole);
      if (tooMuch) return this.breakStream(tooMuch, now);
      if (!this.isLive) this.measure(changes.server, this.streamSentAt, this.streamHeardAt, now);
      this.receive(changes, now);
    } else if (message.kind === 'ready') this.becomeLive(message, now);
    else if (message.kind === 'resync') {
      this.closeLink();
      this.wait(this.backoff.fail(this.random), now);
    }
  }

  becomeLive({ cursor, config }, now) {
    if (this.link.kind !== 'connecting') return;
    const { stream, fetch } = this.link;
    if (this.snapshotReason) {
      this.closeLink();
      this.wait(this.backoff.fail(this.random), now);
      return this.setLink('waiting', 'the server did not send the store');
    }
    this.measure(config.server, this.streamSentAt, this.streamHeardAt ?? now, now);
    this.link = { kind: 'live', stream, fetch };
    this.receipts.told(this.streamSaved);
    this.backoff.succeed();
    this.streamsFailed = 0;
    this.finishFetch(fetch);
    this.polling = null;
    this.pull = null;
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
    this.setLink('connected');
    this.tell('serverChange');
  }

  /** All that the server had when that fetch began is here. */
  finishFetch(fetch) {
    this.fetchesFinished = Math.max(this.fetchesFinished, fetch);
    if (this.unknownPush !== null && this.unknownPush < fetch) this.unknownPush = null;
  }

  /** @param {Config} config */
  adopt(config, now) {
    this.meta.limits = config.limits;
    this.meta.allowance = config.allowance;
    this.bucket.adopt(config.allowance, now.uptime);
    this.configuredAt = now.uptime;
  }

  /** @param {Failure | null} why */
  streamEnded(stream, why, now) {
    if (stream !== this.stream) return;
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
    else if (cause.kind === 'tooManyStreams' || cause.kind === 'timedOut'
      || cause.kind === 'busy' || this.streamsFailed >= attemptsMax) {
      this.beginPolling(now.uptime + (cause.kind === 'busy' ? cause.wait ?? 0 : 0));
    }
    // Callers that wait for a round trip get another attempt after a lost connection.
    if (!this.polling) this.failRequests(cause);
  }

  /** Whether the cursor is gone, so that the whole store is needed. @param {Failure} why */
  takeGone({ kind }) {
    if ((kind !== 'cursorGone' && kind !== 'otherHistory') || this.snapshotReason) return false;
    this.snapshotReason = kind === 'otherHistory' ? kind : 'compacted';
    return true;
  }

  breakStream(why, now) {
    const { stream } = this;
    if (stream === null) return;
    this.streamEnded(stream, why, now);
    this.hangUp = stream;
  }

  /** Waits as long as the failure requires. @param {Failure} why */
  waitAfter(why, now) {
    if (why.kind === 'unauthorized') {
      this.wait(unauthorizedRetryMilliseconds, now);
      return this.setLink('unauthorized', why.detail);
    }
    if (why.kind === 'busy' || why.kind === 'tooManyStreams') {
      this.wait((why.wait ?? 5_000) + this.random.below(250), now, true);
    } else if (why.kind === 'refused' || why.kind === 'tooLarge') {
      this.wait(refusedRetryMilliseconds, now);
    } else this.wait(this.backoff.fail(this.random), now);
    this.setLink('waiting', why.detail);
  }

  wait(milliseconds, now, isOrdered = false) {
    const least = isOrdered ? milliseconds : Math.min(milliseconds, hurryMilliseconds);
    const notBefore = now.uptime + least;
    this.link = { kind: 'waiting', retry: { at: now.uptime + milliseconds, notBefore } };
    this.nextRetry = now.wall + milliseconds;
  }

  /** @param {string | null} error */
  setLink(state, error = null) {
    this.linkState = state === 'waiting' && this.isReached ? 'polling' : state;
    this.lastError = error;
  }

  /** Retries at once whatever waits. */
  hurry(now) {
    const soon = (retry) => {
      if (retry) retry.at = Math.max(now.uptime, Math.min(retry.at, retry.notBefore));
    };
    if (this.saveRetryAt !== Infinity) this.saveRetryAt = now.uptime;
    if (this.link.kind === 'waiting') soon(this.link.retry);
    soon(this.pushRetry);
    soon(this.tooLarge?.retry);
    soon(this.polling?.next);
    this.polling?.pauses.succeed();
  }

  // Polls

  beginPolling(at) {
    this.polling ??= { next: { at, notBefore: at }, pauses: new Backoff(), isWorking: false };
  }

  /** A push was answered: more may follow. */
  pushWorked(now) {
    if (!this.polling) return;
    const { next, pauses } = this.polling;
    pauses.succeed();
    next.at = Math.min(next.at, Math.max(next.notBefore, now.uptime));
  }

  get wantsFetch() { return this.requests.some(({ fetch }) => fetch > this.fetchesStarted); }

  get pollAt() {
    if (!this.polling || this.pull || this.isLive || !this.isSignedIn) return Infinity;
    const { at, notBefore } = this.polling.next;
    const due = this.wantsFetch ? Math.min(at, notBefore) : at;
    const isStreamComing = this.link.kind === 'connecting' && this.streamHeardAt;
    return isStreamComing ? Math.max(due, this.heardAt + streamPatienceMilliseconds) : due;
  }

  /** When the server is told what is saved, unless a push does so before. */
  get receiptAt() {
    const isFree = this.isLive && !this.pull && !this.lag && this.diskFailure === null;
    return isFree ? this.receipts.dueAt : Infinity;
  }

  get lagEndsAt() {
    if (!this.isLive || !this.lag) return Infinity;
    return Math.max(this.lag.noticedAt, this.heardAt) + lagMilliseconds;
  }

  /** @returns {Effect | null} */
  nextPull(now) {
    if (!this.isSignedIn) return null;
    const isReceipt = this.receiptAt <= now.uptime;
    if (this.isLive) {
      const lacksTime = this.entries.waiting.size && !this.clock.isExact(now);
      if (this.pull || this.lag || !(this.wantsFetch || lacksTime || isReceipt)) return null;
    } else if (this.pollAt > now.uptime) return null;
    this.fetchesStarted += 1;
    if (isReceipt) this.receipts.sending(now.uptime);
    const since = isReceipt ? this.receipts.saved : this.cursorToResumeFrom();
    const isSaved = since !== null && since === this.receipts.saved;
    const number = this.fetchesStarted;
    this.pull = { number, since, isSaved, sentAt: now, isPoll: !this.isLive };
    const isConfigured = now.uptime - (this.configuredAt ?? -Infinity) < configMilliseconds;
    return { type: 'pull', number, since, isSaved, withConfig: !this.isLive && !isConfigured };
  }

  /** @param {Changes} changes */
  pulled(number, changes, now) {
    const { pull } = this;
    if (pull?.number !== number) return;
    this.pull = null;
    if (pull.isSaved) this.receipts.told(pull.since);
    if (pull.isPoll) return this.polled(pull, changes, now);
    this.meta.lastSync = this.clock.now(now);
    this.measure(changes.server, pull.sentAt, now, now);
    this.tell('serverChange');
    // While a stream is live, a pull only tells how far the server has got.
    if (this.passed.has(changes.cursor)) {
      this.fetchesFinished = Math.max(this.fetchesFinished, number);
    } else this.lag = { fetch: number, cursor: changes.cursor, noticedAt: now.uptime };
  }

  /** @param {Changes} changes */
  polled(pull, changes, now) {
    if (!this.polling) return;
    if (pull.since !== this.cursorToResumeFrom()) return this.pushWorked(now);
    if (!changes.isWhole && this.snapshotReason) {
      return this.pollFailed(failure('unreachable', 'the server did not send the store'), now);
    }
    const tooMuch = this.refusal(changes.records, changes.isWhole);
    if (tooMuch) return this.pollFailed(tooMuch, now);
    this.measure(changes.server, pull.sentAt, now, now);
    // A stream that was opened before brings only what is known by now, or less.
    this.isStreamStale ||= changes.cursor !== this.meta.cursor || changes.isWhole;
    if (changes.config) this.adopt(changes.config, now);
    this.receive(changes, now);
    this.unacknowledge(pull.number);
    this.finishFetch(pull.number);
    if (!this.polling.isWorking && this.link.kind === 'waiting') {
      // The server answers again: a stream may work too.
      this.link.retry.at = Math.min(this.link.retry.at, this.link.retry.notBefore);
    }
    this.polling.isWorking = true;
    if (changes.isWhole || changes.records.length) this.polling.pauses.succeed();
    this.pausePolling(now);
    this.setLink('polling', this.lastError);
  }

  pausePolling(now) {
    if (!this.polling) return;
    const at = now.uptime + this.polling.pauses.fail(this.random);
    this.polling.next = { at, notBefore: now.uptime + hurryMilliseconds };
  }

  /** @param {Failure} why */
  pullFailed(number, why, now) {
    const { pull } = this;
    if (pull?.number !== number) return;
    this.pull = null;
    // The stream is probably broken as well, and a new one fetches everything too.
    if (pull.isPoll) this.pollFailed(why, now);
    else this.breakStream(why, now);
  }

  /** @param {Failure} why */
  pollFailed(why, now) {
    if (!this.polling) return;
    if (this.takeGone(why)) return this.pushWorked(now);
    if (this.polling.isWorking) this.polling.pauses.succeed();
    this.polling.isWorking = false;
    this.pausePolling(now);
    const { next } = this.polling;
    if (why.kind === 'unauthorized') {
      this.closeLink();
      this.waitAfter(why, now);
    } else if (why.kind === 'busy' || why.kind === 'tooManyStreams') {
      next.at = now.uptime + (why.wait ?? 5_000);
      next.notBefore = next.at;
    } else if (why.kind === 'refused' || why.kind === 'tooLarge') {
      next.at = now.uptime + refusedRetryMilliseconds;
    } else if (this.link.kind === 'waiting') {
      // A device that is offline need not wake twice.
      next.at = Math.max(this.link.retry.at, now.uptime);
    }
    if (this.polling) this.setLink(this.stream === null ? 'waiting' : 'connecting', why.detail);
    this.failRequests(why);
  }
}
