// SPDX-License-Identifier: Apache-2.0

/**
 * The shell around an engine, which it tells the time, and for which it saves, sends and tells the app. One
 * tab of a browser leads: it has the connection and the disk. The others follow: their writes are intents
 * that the leader writes, and what it has saved is their truth.
 */

import { Engine } from './engine.js';
import { RequestError, listen } from './http.js';
import { checkedAnswer, checkedChanges, checkedMessage, failure } from './messages.js';
import { checkedConfig } from './rules.js';
import { UbiquityError, compare, isSame } from './values.js';

const keepAliveMilliseconds = (seconds) => Math.min(Math.max(50_000, seconds * 2_500), 600_000);
const timerMax = 2 ** 30;
/** Other tabs whose last intent is remembered. */
const tabsMax = 64;
const randomSeed = () => crypto.getRandomValues(new BigUint64Array(1))[0].toString(16).padStart(16, '0');
let [boot, lastGap] = ['', 0];
/** Reads the clocks. If the wall clock jumps, the machine slept or it was set: another boot. */
function reading() {
  const [wall, uptime] = [Date.now(), performance.now()];
  if (boot === '' || Math.abs(wall - uptime - lastGap) > 1_500) boot = randomSeed();
  lastGap = wall - uptime;
  return { wall, uptime, boot };
}

export class Shell extends EventTarget {
  ownsDevice = false;
  isLeader = false;
  isClosed = false;
  /** The policies that the app has declared, for each new engine. */
  declared = new Map();
  queues = new Set();
  waiters = [];
  syncs = new Map();
  requests = new AbortController();
  stream = null;
  tab = randomSeed();
  /** The intents of this tab that the leader has not saved. @type {Map<number, Intent>} */
  intents = new Map();
  intentsMade = 0;
  savesFailed = 0;
  /**
   * The account that the engine was told of last. Its requests go out with this credential: those of the
   * account before, while the device has another one already, must not reach that. @type {SignedIn | null}
   */
  signedIn = null;
  leaderStatus = null;
  lastStatus = '';

  /** @param {import('./device.js').Device} device */
  constructor(device, identifier, settings) {
    super();
    this.device = device;
    this.identifier = identifier;
    this.settings = settings;
  }

  async start() {
    const { folder } = this.device;
    this.stopListening = folder.onMessage((message) => {
      if (message?.store === this.identifier) this.heard(message);
    });
    for (let document = null; !this.isPresent(document);) {
      document = this.device.documentOf(this.identifier);
      const rows = await folder.read(document);
      if (this.isPresent(document)) this.install(document, rows);
    }
    if (this.isBehind) this.follow();
    this.stopLeading = folder.lead(this.identifier, () => {
      this.leading = this.lead();
      this.leading.catch((error) => this.diskFailed(error));
    });
    this.followAccountNow();
    await this.leading;
  }

  /** Begins anew with what is on disk, and tells which keys the app sees differently then. */
  install(document, rows, addIntents = () => {}) {
    const old = new Map(this.engine?.entries.values());
    this.document = document;
    this.engine = new Engine(rows, { seed: randomSeed(), settings: this.settings, now: reading() });
    for (const [key, [policy, resolver]] of this.declared) this.engine.setPolicy(key, policy, resolver);
    addIntents();
    this.engine.entries.takeChanged();
    const values = this.engine.entries.values();
    return [...new Set([...old.keys(), ...values.keys()])].filter((key) =>
      !isSame(old.get(key) ?? null, values.get(key) ?? null));
  }

  write(intent) {
    if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
    this.engine.write(intent, reading());
    this.queueChange('localChange', this.engine.entries.takeChanged());
    if (!this.isLeader) {
      this.intentsMade += 1;
      this.intents.set(this.intentsMade, intent);
      this.sayWrite(this.intentsMade);
    }
    this.wake();
  }

  diskFailed(error) {
    this.engine.diskFailure = String(error?.message ?? error);
    this.wake();
  }

  // Telling the app

  /**
   * What comes from now on, as an iterator. Of what a reader has not taken yet, there is one element for each
   * reason, to which `merge` adds later ones.
   */
  queue(kind, merge) {
    const waiting = new Map();
    let [wake, isOver] = [(_value) => {}, this.isClosed];
    const queue = {
      kind,
      push(element) {
        const old = waiting.get(element.reason);
        waiting.set(element.reason, old ? merge(old, element) : element);
        wake();
      },
      end: () => {
        isOver = true;
        this.queues.delete(queue);
        wake();
        return { done: true, value: undefined };
      },
      async next() {
        while (!waiting.size && !isOver) await new Promise((resolve) => { wake = resolve; });
        const [[reason, value] = []] = waiting;
        return { done: !waiting.delete(reason), value };
      },
      return: async () => queue.end(),
      [Symbol.asyncIterator]: () => queue,
    };
    if (!isOver) this.queues.add(queue);
    return queue;
  }

  queueChange(reason, keys) {
    if (!keys.length && reason !== 'accountChange') return;
    for (const queue of this.queues) if (queue.kind === 'change') queue.push({ reason, keys });
    if (reason !== 'localChange') this.dispatchEvent(Object.assign(new Event('change'), { reason, keys }));
  }

  get status() {
    const { engine, isLeader, leaderStatus } = this;
    // Of the leader's news, this tab has what it has read.
    const status = { ...(isLeader ? engine.status : leaderStatus ?? engine.status),
      isInitialSyncComplete: engine.meta.hasCompletedFirstSync };
    return { ...status, account: this.device.account?.name ?? null, isLeader,
      explanation: explanation(status, this.device.account) };
  }

  /** Looks whether the status is another one, and wakes whoever waits. */
  notify() {
    const { status } = this;
    const text = JSON.stringify([status, this.device.account]);
    if (text !== this.lastStatus && !this.isClosed) {
      this.lastStatus = text;
      if (this.isLeader) this.say({ type: 'status', status: this.engine.status });
      for (const queue of this.queues) if (queue.kind === 'status') queue.push(status);
      this.dispatchEvent(new Event('status'));
    }
    for (const wake of this.waiters.splice(0)) wake();
  }

  async until(isDone) { while (!isDone()) await new Promise((resolve) => { this.waiters.push(resolve); }); }

  // The account

  /** Follows a sign-in or sign-out of the device, with what is not saved yet saved. */
  async followAccount() {
    // It is only being opened, and takes the account of then.
    if (!this.engine) return;
    const document = this.device.documentOf(this.identifier);
    const isOther = document !== this.document;
    let changed = [];
    if (isOther) {
      const rows = await this.device.folder.read(document);
      // What the app writes meanwhile belongs to the old account too.
      const isDone = () => this.isClosed || this.engine.isSaved || !this.isLeader;
      while (!isDone()) await this.until(isDone);
      if (this.isClosed || document === this.document || !this.isPresent(document)) return;
      this.stream?.abort();
      this.failSyncs(failure('unauthorized', 'this device is now signed in to another account'));
      this.intents.clear();
      changed = this.install(document, rows);
    }
    const wasSignedIn = this.signedIn !== null;
    this.followAccountNow();
    if (isOther || (wasSignedIn && !this.signedIn)) this.queueChange('accountChange', changed);
  }

  followAccountNow() {
    const { account } = this.device;
    this.signedIn = this.device.state.signedIn;
    if (!this.isLeader) this.say({ type: 'hello' });
    else {
      this.say({ type: 'leading' });
      this.report(account ? { type: 'signedIn', account: account.id, device: account.deviceID }
        : { type: 'signedOut' });
    }
    this.wake();
  }

  isPresent(document) { return document === this.device.documentOf(this.identifier); }

  // Tabs

  async lead() {
    const { document } = this;
    const rows = await this.device.folder.read(document);
    if (this.isClosed) return undefined;
    if (!this.isPresent(document)) return this.followAccount().then(() => this.lead());
    const changed = this.install(document, rows, () => {
      this.isLeader = true;
      for (const [number, intent] of this.intents) this.take(this.tab, number, intent);
      this.intents.clear();
    });
    this.queueChange('serverChange', changed);
    const syncs = [...this.syncs.values()];
    this.syncs.clear();
    this.followAccountNow();
    for (const { resolve, reject } of syncs) this.synchronizeNow().then(resolve, reject);
    return undefined;
  }

  say(message) {
    if (this.isClosed) return;
    const { identifier: store, tab, document } = this;
    this.device.folder.post({ store, tab, document, ...message });
  }

  /** `after`: the write before, if it is not on disk. A leader that lacks it hears all again. */
  sayWrite(number) {
    this.say({ type: 'write', number, after: this.openBefore(number), intent: this.intents.get(number) });
  }
  saySync(number) { this.say({ type: 'sync', number, after: this.openBefore(this.intentsMade + 1) }); }
  openBefore(number) { return this.intents.has(number - 1) ? number - 1 : 0; }

  /** Writes what another tab wants, once. */
  take(tab, number, intent) {
    const { applied } = this.engine.meta;
    if ((applied[tab] ?? 0) >= number) return;
    try {
      this.engine.write(intent, reading());
      if (tab !== this.tab) this.engine.tell('serverChange');
    } catch {
      const keys = [...intent.plain, ...intent.merging].map(([key]) => key);
      if (tab === this.tab) this.queueChange('quotaViolation', keys);
      else this.say({ type: 'refused', to: tab, number, keys });
    }
    delete applied[tab];
    applied[tab] = number;
    for (const old of Object.keys(applied).slice(0, -tabsMax)) delete applied[old];
    this.engine.isMetaUnsaved = true;
  }

  heard({ type, tab, to, document, number, ...message }) {
    // What comes before there is an engine may be more than it will read.
    if (!this.engine) this.isBehind = true;
    // A write must never reach another account.
    if (this.isClosed || (to && to !== this.tab) || document !== this.document) return;
    if (this.isLeader) {
      if (message.after > (this.engine.meta.applied[tab] ?? 0)) return;
      if (type === 'write') this.take(tab, number, message.intent);
      else if (type === 'sync') {
        this.synchronizeNow().then(() => null, ({ message: detail, keys, code }) =>
          ({ ...failure('unreachable', detail), keys, code }))
          .then(async (why) => {
            await this.synchronize();
            this.say({ type: 'synced', to: tab, number, failure: why ?? this.unread });
          });
      } else if (type === 'hello') this.say({ type: 'status', status: this.engine.status });
      else if (type === 'forget') this.forgetRefusedWrites();
      this.wake();
    } else if (type === 'saved') this.follow();
    else if (type === 'status') {
      this.leaderStatus = message.status;
      this.notify();
    } else if (type === 'synced') {
      this.follow().then(() => this.settle(number, message.failure ?? this.unread));
    } else if (type === 'leading') {
      for (const one of this.intents.keys()) this.sayWrite(one);
      for (const one of this.syncs.keys()) this.saySync(one);
      this.follow();
    } else if (type === 'refused') {
      // Those after it still have one before them.
      this.intents.set(number, { plain: [], merging: [] });
      this.follow().then(() => this.queueChange('quotaViolation', message.keys));
    }
  }

  /** Takes over what the leader has saved, one reading at a time, however often it saves. */
  follow() {
    this.isBehind = true;
    this.following ??= this.catchUp().finally(() => { this.following = null; });
    return this.following;
  }

  /** Why other tabs, or this one, do not see all. */
  get unread() {
    const { diskFailure } = this.engine;
    return diskFailure === null ? null : failure('unreachable', diskFailure);
  }

  async catchUp() {
    while (this.isBehind && !this.isLeader && !this.isClosed) {
      this.isBehind = false;
      const { document } = this;
      const rows = await this.device.folder.read(document).catch((error) => this.diskFailed(error));
      if (!rows || this.isLeader || this.isClosed || document !== this.document) continue;
      const changed = this.install(document, rows, () => {
        for (const [number, intent] of this.intents) {
          if ((this.engine.meta.applied[this.tab] ?? 0) >= number) this.intents.delete(number);
          else try { this.engine.write(intent, reading()); } catch { /* The leader will refuse it. */ }
        }
      });
      this.queueChange('serverChange', changed);
      this.notify();
    }
  }

  // The driver

  /** Looks soon for something to do: writes made at once are one save and one push. */
  wake() {
    if (this.isAwake || this.isClosed) return;
    this.isAwake = true;
    queueMicrotask(() => {
      this.isAwake = false;
      if (this.isClosed) return;
      if (this.isLeader) this.drive();
      this.notify();
    });
  }

  /** Tells the engine what has happened. */
  report(event) {
    this.engine.handle(event, reading());
    this.wake();
  }

  drive() {
    const { engine } = this;
    for (let effect = engine.nextEffect(reading()); effect; effect = engine.nextEffect(reading())) {
      this.perform(effect, engine);
      if (this.isClosed || engine !== this.engine) return;
    }
    clearTimeout(this.timer);
    const milliseconds = engine.nextWake - reading().uptime;
    if (milliseconds === Infinity) return;
    this.timer = setTimeout(() => this.wake(), Math.min(Math.max(1, Math.ceil(milliseconds)), timerMax));
  }

  perform(effect, engine) {
    const report = (event) => { if (!this.isClosed && engine === this.engine) this.report(event); };
    const answer = async (asked, type, failedType, content) => {
      try { report({ type, number: effect.number, ...content(await asked) }); } catch (error) {
        report({ type: failedType, number: effect.number, failure: failureOf(error) });
      }
    };
    switch (effect.type) {
      case 'notify': this.queueChange(effect.reason, effect.keys); break;
      case 'finishSync': this.settle(effect.id, effect.failure); break;
      case 'save': {
        const { document } = this;
        this.device.folder.write(document, effect.rows).then(() => {
          this.say({ type: 'saved', document });
          report({ type: 'saved' });
        }, (error) => {
          this.savesFailed += 1;
          report({ type: 'saveFailed', reason: String(error?.message ?? error) });
        });
        break;
      }
      case 'push':
        answer(this.ask(['changes'], { method: 'POST', body: effect.body }), 'pushAnswered', 'pushFailed',
          (json) => ({ answer: checkedAnswer(json) }));
        break;
      case 'pull': {
        const asked = [this.ask(['changes'], { query: queryOf(effect) })];
        if (effect.withConfig) asked.push(this.askServer(['config']).then(checkedConfig));
        answer(Promise.all(asked), 'pulled', 'pullFailed',
          ([json, told]) => ({ changes: { ...checkedChanges(json), config: told } }));
        break;
      }
      // The next one is opened later.
      case 'hangUp': this.stream?.abort(); break;
      case 'listen': this.listen(effect, report);
    }
  }

  async listen(effect, report) {
    this.stream?.abort();
    const controller = new AbortController();
    const { stream } = effect;
    this.stream = controller;
    const receive = (message) => {
      if (!controller.signal.aborted) report({ type: 'streamReceived', stream, message });
    };
    let [heardAt, why] = [-Infinity, null];
    try {
      const options = { query: queryOf(effect), signal: controller.signal };
      // The engine listens only while it has an account.
      const server = /** @type {SignedIn} */ (this.signedIn);
      await listen(server, ['stores', this.identifier, 'changes'], options, {
        heard() {
          if (performance.now() - heardAt < 1_000) return;
          heardAt = performance.now();
          receive({ kind: 'progress' });
        },
        received(name, data) {
          const message = checkedMessage(name, data);
          if (message) receive(message);
          return message?.config && keepAliveMilliseconds(message.config.keepAliveSeconds);
        },
      });
    } catch (error) { why = failureOf(error); }
    report({ type: 'streamEnded', stream, failure: why });
  }

  askServer(segments, options) {
    return this.device.ask(segments, { signal: this.requests.signal, ...options }, this.signedIn);
  }

  ask(segments, options) { return this.askServer(['stores', this.identifier, ...segments], options); }

  /** Saves, and wakes the sync; true if all before is on disk. Never waits for the network. */
  async synchronize() {
    if (this.isClosed) return false;
    // Nothing was written before it was open.
    if (!this.engine) return true;
    const { savesFailed } = this;
    const hasFailed = () =>
      (this.isLeader ? this.savesFailed > savesFailed : this.engine.diskFailure !== null);
    this.report({ type: 'hurry' });
    if (!this.isLeader) await this.follow();
    await this.until(() => this.isClosed || hasFailed()
      || (this.isLeader ? this.engine.isSaved : !this.intents.size));
    return !this.isClosed && !hasFailed();
  }

  /** Makes a round trip: what was written before is at the server, and what it has is here. */
  synchronizeNow() {
    return new Promise((resolve, reject) => {
      if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
      const settle = { resolve, reject };
      if (this.isLeader) {
        this.syncs.set(this.engine.requestSync(), settle);
        this.report({ type: 'hurry' });
      } else {
        // None that the engine gives.
        const number = randomSeed();
        this.syncs.set(number, settle);
        this.saySync(number);
      }
    });
  }

  settle(number, why) {
    const sync = this.syncs.get(number);
    this.syncs.delete(number);
    if (why) sync?.reject(new RequestError(why));
    else sync?.resolve();
  }
  failSyncs(why) { for (const number of [...this.syncs.keys()]) this.settle(number, why); }

  /** The names and texts of refused writes, the newest last. */
  refused() {
    return [...this.engine.refused].filter(([, { record }]) => record.part === '')
      .sort(([a], [b]) => compare(a, b));
  }

  forgetRefusedWrites() {
    for (const [name] of this.refused()) this.engine.forget(name);
    if (!this.isLeader) this.say({ type: 'forget' });
    this.wake();
  }

  /** Saves, and ends everything under way: nothing of the store keeps a program running. */
  async close() {
    if (this.isClosed) return;
    // What a follower wrote, the leader has heard of.
    if (this.isLeader) await this.synchronize();
    this.isClosed = true;
    clearTimeout(this.timer);
    this.requests.abort();
    this.stream?.abort();
    this.stopListening?.();
    this.stopLeading?.();
    this.failSyncs(failure('unreachable', 'the store is closed'));
    for (const queue of [...this.queues]) queue.end();
    for (const wake of this.waiters.splice(0)) wake();
    this.device.openStores.delete(this);
    if (this.ownsDevice) await this.device.close();
  }
}

const queryOf = ({ since, isSaved }) =>
  ({ since: since ?? undefined, saved: since && !isSaved ? 'false' : undefined });

const failureOf = (error) => (error instanceof RequestError ? error.failure
  : failure('unreachable', `the answer cannot be read: ${error?.message ?? error}`));

function explanation({ connection, lastError, nextRetry, diskError }, account) {
  if (diskError) return `The disk refuses to save: ${diskError}.`;
  const again = nextRetry ? ` Tries again at ${new Date(nextRetry).toISOString()}.` : '';
  return {
    signedOut: account ? 'Starting.' : 'Nobody is signed in: values stay on this device until somebody is.',
    connected: 'Connected.',
    connecting: 'Connecting.',
    polling: `Connected without a stream, and asks now and then${lastError ? `: ${lastError}` : ''}.`,
    unauthorized: `The server refuses this device: ${lastError}. Sign in again.`,
  }[connection] ?? `Not connected: ${lastError ?? 'not tried yet'}.${again}`;
}
