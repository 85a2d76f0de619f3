// SPDX-License-Identifier: Apache-2.0

/**
 * A store: the shell around an engine, which it tells the time, and for which it saves, sends and
 * tells the app. One tab of a browser leads: it has the connection and the disk. The others follow:
 * their writes are intents that the leader writes, and its rows are their truth.
 *
 * @typedef {import('./engine.js').Effect} Effect
 * @typedef {import('./engine-writing.js').Intent} Intent
 * @typedef {import('./device.js').Device} Device
 */

import { Engine } from './engine.js';
import { failure } from './engine-exchange.js';
import { KeyHistory, readHistory } from './history.js';
import { RequestError, listen, request } from './http.js';
import { checkedAnswer, checkedChanges, checkedReady } from './messages.js';
import { add, sumOf, wireSum } from './numbers.js';
import { policies } from './merging.js';
import { randomSeed, reading } from './platform.js';
import { checkedMilliseconds, checkedRow, deviceOf, idOf, milliseconds, noDevice } from './records.js';
import { Entries } from './entries.js';
import { checkedConfig } from './rules.js';
import { UbiquityError, checkedList, compareText, fromWire, isText, toWire } from './values.js';

const keepAliveMilliseconds = (seconds) => Math.min(Math.max(50_000, seconds * 2_500), 600_000);
const timerMax = 2 ** 30;
/** Other tabs whose last intent is remembered. */
const tabsMax = 64;

/** A change of keys, from outside or, in `changes()`, by this app. */
class ChangeEvent extends Event {
  constructor(reason, keys) {
    super('change');
    this.reason = reason;
    this.keys = keys;
  }
}

/** What a reader has not taken yet: one element of each name, the later added to the earlier. */
class Queue {
  constructor(nameOf, merge, end) {
    this.nameOf = nameOf;
    this.merge = merge;
    this.end = end;
    this.elements = [];
    this.isOver = false;
    this.wake = () => {};
  }
  push(element) {
    const at = this.elements.findIndex((one) => this.nameOf(one) === this.nameOf(element));
    if (at < 0) this.elements.push(element);
    else this.elements[at] = this.merge(this.elements[at], element);
    this.wake();
  }
  finish() {
    this.isOver = true;
    this.end();
    this.wake();
  }
  [Symbol.asyncIterator]() { return this; }
  async next() {
    while (!this.elements.length && !this.isOver) {
      await new Promise((resolve) => { this.wake = () => resolve(undefined); });
    }
    const done = !this.elements.length;
    return { done, value: done ? undefined : this.elements.shift() };
  }
  async return() {
    this.finish();
    return { done: true, value: undefined };
  }
}

export class Store extends EventTarget {
  /** @param {Device} device */
  constructor(device, identifier, { firstSync = 'serverWins', historyExcluded = [] } = {}) {
    super();
    this.device = device;
    this.identifier = identifier;
    /** @type {import('./engine-writing.js').Settings} What the app chose. */
    this.settings = { firstSync: firstSync === 'timestamps' ? firstSync : 'serverWins',
      unkept: [...historyExcluded] };
    this.ownsDevice = false;
    this.isLeader = false;
    this.isClosed = false;
    this.declared = new Map();
    this.queues = new Set();
    this.syncs = new Map();
    this.waiters = new Set();
    this.requests = new AbortController();
    this.stream = null;
    this.streamNumber = 0;
    this.tab = randomSeed();
    /** The intents of this tab that the leader has not saved. @type {Map<number, Intent>} */
    this.intents = new Map();
    this.intentsMade = 0;
    this.version = 0;
    /** Whether somebody was signed in when the app was last told. A follower's engine does not know. */
    this.hasAccount = false;
    this.rows = new Map();
    this.leaderStatus = null;
    this.lastStatus = '';
  }

  async start() {
    const { folder } = this.device;
    let early = [];
    this.stopListening = folder.onMessage((message) => {
      if (message?.store !== this.identifier) return;
      if (early) early.push(message);
      else this.heard(message);
    });
    await this.load();
    const messages = early;
    early = null;
    for (const message of messages) this.heard(message);
    this.stopLeading = folder.lead(this.identifier, () => {
      this.leading = this.lead();
      this.leading.catch((error) => { this.engine.diskFailure = String(error?.message ?? error); });
    });
    this.followAccountNow();
    await this.leading;
  }

  async load() {
    const document = this.device.documentOf(this.identifier);
    this.install(document, await this.device.folder.read(document));
  }

  install(document, rows) {
    this.document = document;
    this.rows = rows;
    this.version = Number(rows.get('version') ?? 0);
    this.engine = new Engine(rows, { seed: randomSeed(), settings: this.settings, now: reading() });
    for (const [key, [policy, resolver]] of this.declared) {
      this.engine.setPolicy(key, policy, resolver);
    }
  }

  // Reading and writing

  /** The value of a key; undefined if there is none. */
  get(key) {
    const wire = this.engine.value(checkedKey(key));
    return wire ? fromWire(wire) : undefined;
  }

  has(key) { return this.engine.value(checkedKey(key)) !== null; }

  /** The value of a key in the protocol's form, which tells all types apart; null for none. */
  exact(key) { return this.engine.value(checkedKey(key)); }

  /** In the order of their Unicode scalars. */
  keys() { return [...this.engine.entries.values().keys()].sort(compareText); }

  /** What a key counts towards the bytes of the store. */
  bytes(key) { return this.engine.entries.bytes(checkedKey(key)); }

  /** The device that wrote a key last, and when; null if this device knows of no write. */
  lastWrite(key) {
    const stamp = this.engine.entries.lastStamp(checkedKey(key));
    if (!stamp) return null;
    const deviceID = deviceOf(stamp);
    return { deviceID: deviceID === noDevice ? null : deviceID, date: new Date(milliseconds(stamp)) };
  }

  /** All values. @returns {Map<string, any>} */
  values() { return new Map(this.keys().map((key) => [key, this.get(key)])); }

  /** Null or undefined removes. @throws {UbiquityError} Nothing has changed then. */
  set(key, value) { this.write(this.engine.intent([[checkedKey(key), wireOf(key, value)]])); }

  remove(key) { this.set(key, null); }

  /** Writes several keys as one transaction: all or nothing, on all devices. */
  batch(body) {
    const values = new Map();
    const get = (key) => {
      if (!values.has(key)) return this.get(key);
      const wire = values.get(key);
      return wire ? fromWire(wire) : undefined;
    };
    const set = (key, value) => { values.set(checkedKey(key), wireOf(key, value)); };
    const outcome = body({ get, set, remove: (key) => set(key, null) });
    if (typeof outcome?.then === 'function') {
      throw new UbiquityError('batch', 'a batch cannot wait: nobody else may see half of it');
    }
    this.write(this.engine.intent(values));
    return outcome;
  }

  removeAll() { this.batch(({ remove }) => { for (const key of this.keys()) remove(key); }); }

  /** Adds to a number, also if others do at the same time. */
  increment(key, by = 1) {
    const old = this.engine.value(checkedKey(key));
    const amount = sumOf(toWire(by));
    if (amount === null) {
      throw new UbiquityError('unsupported-value', `${key}: ${by} is not a number`);
    }
    const value = wireSum(add(sumOf(old) ?? 0n, amount));
    this.write({ plain: [], merging: [[key, { policy: policies.counter, old, value }]] });
  }

  /** Declares how writes of a key merge, each time the app starts. */
  setConflictPolicy(key, name, resolve = undefined) {
    checkedKey(key);
    if (name !== 'latest' && !Object.hasOwn(policies, name)) {
      throw new UbiquityError('policy', `${name} is not a conflict policy`);
    }
    const letter = policies[name] ?? null;
    const resolver = resolve ? resolverOf(resolve) : null;
    if (letter) this.declared.set(key, [letter, resolver]);
    else this.declared.delete(key);
    this.engine.setPolicy(key, letter, resolver);
  }

  /** @private @param {Intent} intent */
  write(intent) {
    if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
    this.engine.write(intent, reading());
    const keys = this.engine.entries.takeChanged();
    if (keys.length) this.queueChange('localChange', keys);
    if (!this.isLeader) {
      this.intentsMade += 1;
      this.intents.set(this.intentsMade, intent);
      this.say({ type: 'write', number: this.intentsMade, intent });
    }
    this.wake();
  }

  // Watching

  /** All changes from now on, by this app too. */
  changes() {
    return this.queue('change', ({ reason }) => reason,
      ({ reason, keys }, more) => ({ reason, keys: [...new Set([...keys, ...more.keys])] }));
  }

  /** The value of a key, and each new one; a slow reader gets the newest. */
  async* valuesOf(key) {
    const changes = this.changes();
    try {
      yield this.get(key);
      for await (const { keys } of changes) if (keys.includes(key)) yield this.get(key);
    } finally { await changes.return?.(); }
  }

  /** The status, and each new one; a slow reader gets the newest. */
  async* statuses() {
    const statuses = this.queue('status', () => '', (_old, newest) => newest);
    try {
      yield this.status;
      yield* statuses;
    } finally { await statuses.return(); }
  }

  queue(kind, nameOf, merge) {
    const queue = new Queue(nameOf, merge, () => this.queues.delete(queue));
    if (this.isClosed) queue.finish();
    else this.queues.add(Object.assign(queue, { kind }));
    return queue;
  }

  queueChange(reason, keys) {
    for (const queue of this.queues) if (queue['kind'] === 'change') queue.push({ reason, keys });
    if (reason !== 'localChange') this.dispatchEvent(new ChangeEvent(reason, keys));
  }

  /** Why the store syncs, or does not. */
  get status() {
    const status = this.isLeader ? this.engine.status : this.leaderStatus ?? this.engine.status;
    return { ...status, account: this.device.account?.name ?? null, isLeader: this.isLeader,
      explanation: explanation(status, this.device.account) };
  }

  // The disk and the server

  /** Saves, and wakes the sync; true if all before is on disk. Never waits for the network. */
  async synchronize() {
    if (this.isClosed) return false;
    this.engine.handle({ type: 'hurry' }, reading());
    this.wake();
    await this.until(() => this.isClosed || this.engine.diskFailure !== null
      || (this.isLeader ? this.engine.isSaved : !this.intents.size));
    return !this.isClosed && this.engine.diskFailure === null;
  }

  /** Makes a round trip: what was written before is at the server, and what it has is here. */
  synchronizeNow() {
    return new Promise((resolve, reject) => {
      if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
      const settle = { resolve: () => resolve(undefined), reject };
      if (this.isLeader) {
        this.syncs.set(this.engine.requestSync(this.engine.isSignedIn), settle);
        this.engine.handle({ type: 'hurry' }, reading());
        this.wake();
      } else {
        this.intentsMade += 1;
        this.syncs.set(this.intentsMade, settle);
        this.say({ type: 'sync', number: this.intentsMade });
      }
    });
  }

  /** Resolves when the first download has completed: then a key without a value has none. */
  async initialSync() {
    await this.until(() => this.isClosed || this.status.isInitialSyncComplete);
    if (this.isClosed) throw new UbiquityError('closed', 'the store is closed');
  }

  /** Writes that the server refused, the newest last. */
  refusedWrites() {
    return this.refused().map(([, { record, code, detail }]) => ({ key: record.key,
      value: record.value ? fromWire(record.value) : undefined,
      date: new Date(milliseconds(record.stamp)), code, reason: detail }));
  }

  forgetRefusedWrites() {
    for (const [name] of this.refused()) this.engine.forget(name);
    if (!this.isLeader) this.say({ type: 'forget' });
    this.wake();
  }

  refused() {
    return [...this.engine.refused].filter(([, { code, record }]) => code !== 'superseded'
      && record.part === '').sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Which devices have the store's changes, or those of one key. */
  async delivery(key = undefined) {
    // The server takes the last word, so only the leader says what is saved.
    const saved = (this.isLeader ? this.engine.receipts.saved : null) ?? undefined;
    const waits = this.status.pendingKeys.some((one) => key === undefined || one === key);
    return this.device.delivery(this.identifier, { key, saved }, waits);
  }

  // History

  /** What a key was, the newest first. */
  async history(key, { limit = 100 } = {}) {
    const ask = (query) => this.ask(['history'], { query });
    const versions = await readHistory(ask, checkedKey(key), limit);
    const resolver = this.engine.entries.resolvers.get(key);
    return new KeyHistory(key, versions).values(limit, resolver).map(({ wire, ...version }) => ({
      ...version, value: wire ? fromWire(wire) : undefined,
      isThisDevice: version.device === this.device.account?.deviceID,
    }));
  }

  /** The store as it was, with the keys of which that is no longer known. @param {Date} date */
  async valuesAt(date) {
    const answer = await this.ask(['snapshot'], { query: { milliseconds: date.getTime() } });
    const entries = new Entries();
    entries.resolvers = this.engine.entries.resolvers;
    for (const row of checkedList(answer, 'records').map(checkedRow)) {
      entries.update(idOf(row), (entry) => { entry.confirmed = row; });
    }
    const values = new Map([...entries.values()].map(([key, wire]) => [key, fromWire(wire)]));
    const revision = checkedMilliseconds(answer.revision);
    return { values, revision, forgottenKeys: checkedList(answer, 'forgottenKeys').map(String) };
  }

  /** Gives keys the values that they had, as a transaction that can be taken back too. */
  revert(values) {
    const wires = [...values].map(([key, value]) => [checkedKey(key), wireOf(key, value)]);
    this.write(this.engine.revert(/** @type {any} */ (wires), reading()));
  }

  async ask(segments, options) {
    const server = this.device.state.signedIn;
    if (!server) throw new UbiquityError('unauthorized', 'this device is not signed in');
    return request(server, ['stores', this.identifier, ...segments],
      { ...options, signal: this.requests.signal });
  }

  // The account

  /** @internal Follows a sign-in or sign-out of the device, with what is not saved yet saved. */
  async followAccount() {
    if (this.document === this.device.documentOf(this.identifier)) {
      const wasSignedIn = this.hasAccount;
      this.followAccountNow();
      if (wasSignedIn && !this.hasAccount) this.queueChange('accountChange', []);
      return;
    }
    const document = this.device.documentOf(this.identifier);
    const rows = await this.device.folder.read(document);
    // What the app writes meanwhile belongs to the old account too.
    const isDone = () => this.isClosed || this.engine.isSaved || !this.isLeader;
    while (!isDone()) await this.until(isDone);
    if (this.isClosed) return;
    const old = new Map(this.engine.entries.values());
    this.stream?.abort();
    this.failSyncs(failure('unauthorized', 'this device is now signed in to another account'));
    this.intents.clear();
    this.install(document, rows);
    this.followAccountNow();
    this.queueChange('accountChange', this.changedSince(old));
  }

  /** The keys that the app sees differently. @param {Map<string, any>} old */
  changedSince(old) {
    const values = this.engine.entries.values();
    return [...new Set([...old.keys(), ...values.keys()])].filter((key) =>
      JSON.stringify(old.get(key)) !== JSON.stringify(values.get(key)));
  }

  followAccountNow() {
    const { account } = this.device;
    this.hasAccount = account !== null;
    if (!this.isLeader) this.say({ type: 'hello' });
    else if (account) {
      const { id, deviceID: device } = account;
      this.engine.handle({ type: 'signedIn', account: id, device }, reading());
    } else this.engine.handle({ type: 'signedOut' }, reading());
    this.wake();
  }

  // Tabs

  /** @private This tab leads from now on. */
  async lead() {
    if (this.isClosed) return;
    const document = this.device.documentOf(this.identifier);
    const rows = await this.device.folder.read(document);
    if (this.isClosed) return;
    const old = new Map(this.engine.entries.values());
    this.install(document, rows);
    this.isLeader = true;
    for (const [number, intent] of this.intents) this.take(this.tab, number, intent);
    this.intents.clear();
    const syncs = [...this.syncs.values()];
    this.syncs.clear();
    for (const { resolve, reject } of syncs) this.synchronizeNow().then(resolve, reject);
    const changed = this.changedSince(old);
    if (changed.length) this.queueChange('serverChange', changed);
    this.say({ type: 'leading' });
    this.followAccountNow();
  }

  say(message) {
    if (this.isClosed) return;
    const { identifier: store, tab, document } = this;
    this.device.folder.post({ store, tab, document, ...message });
  }

  /** @private Writes what another tab wants, once. */
  take(tab, number, intent) {
    const { applied } = this.engine.meta;
    if ((applied[tab] ?? 0) >= number) return;
    try {
      this.engine.write(intent, reading());
      if (tab === this.tab) this.engine.entries.takeChanged();
      else this.engine.tell('serverChange');
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

  heard(message) {
    const { type, tab, number } = message;
    if (this.isClosed || (message.to && message.to !== this.tab)) return;
    // A write must never reach another account.
    if (message.document !== this.document) return;
    if (this.isLeader) {
      if (type === 'write') this.take(tab, number, message.intent);
      else if (type === 'sync') {
        this.synchronizeNow().then(() => null, ({ message: detail, keys, code }) =>
          ({ ...failure('unreachable', detail), keys, code }))
          .then((why) => this.say({ type: 'synced', to: tab, number, failure: why }));
      } else if (type === 'hello') this.sayStatus();
      else if (type === 'forget') this.forgetRefusedWrites();
      this.wake();
    } else if (type === 'saved') this.follow(message);
    else if (type === 'status') this.showStatus(message.status);
    else if (type === 'synced') this.settle(number, message.failure);
    else if (type === 'leading') {
      for (const [one, intent] of this.intents) this.say({ type: 'write', number: one, intent });
      for (const one of this.syncs.keys()) this.say({ type: 'sync', number: one });
    } else if (type === 'refused') {
      this.intents.delete(number);
      this.follow({ version: this.version + 0.5, rows: [] });
      this.queueChange('quotaViolation', message.keys);
    }
  }

  /** @private Takes over what the leader saved, and puts own intents on top again. */
  follow({ version, rows }) {
    if (version <= this.version) return;
    if (version > this.version + 1) {
      this.catchUp();
      return;
    }
    this.version = Math.floor(version);
    for (const [name, text] of rows) {
      if (text === null) this.rows.delete(name);
      else this.rows.set(name, text);
    }
    const undone = [...this.engine.entries.unsaved.keys()].map((id) => `e${id}`)
      .map((name) => [name, this.rows.get(name) ?? null]);
    this.engine.follow(/** @type {any} */ ([...undone, ...rows]), reading());
    for (const [number, intent] of this.intents) {
      if ((this.engine.meta.applied[this.tab] ?? 0) >= number) this.intents.delete(number);
      else {
        try { this.engine.write(intent, reading()); } catch { /* The leader will refuse it. */ }
      }
    }
    const changed = this.engine.entries.takeChanged();
    if (changed.length) this.queueChange('serverChange', changed);
    this.notify();
  }

  /** @private Something of the leader's was missed: the disk has all of it. */
  async catchUp() {
    const { document } = this;
    const rows = await this.device.folder.read(document).catch(() => null);
    const version = Number(rows?.get('version') ?? 0);
    if (this.isLeader || this.isClosed || document !== this.document) return;
    if (version <= this.version) return;
    this.version = version - 1;
    const gone = [...this.rows.keys()].filter((name) => !rows.has(name));
    this.follow({ version, rows: [...gone.map((name) => [name, null]), ...rows] });
  }

  // The driver

  /** @private Looks soon for something to do: writes made at once are one save and one push. */
  wake() {
    if (this.isAwake || this.isClosed) return;
    this.isAwake = true;
    queueMicrotask(() => {
      this.isAwake = false;
      if (!this.isClosed && this.isLeader) this.drive();
      this.notify();
    });
  }

  drive() {
    const { engine } = this;
    for (let effect = engine.nextEffect(reading()); effect; effect = engine.nextEffect(reading())) {
      this.perform(/** @type {any} */ (effect), engine);
      if (this.isClosed || engine !== this.engine) return;
    }
    clearTimeout(this.timer);
    const milliseconds = engine.nextWake - reading().uptime;
    if (milliseconds === Infinity) return;
    const wait = Math.min(Math.max(1, Math.ceil(milliseconds)), timerMax);
    this.timer = setTimeout(() => this.wake(), wait);
  }

  /** @private @param {Effect} effect @param {Engine} engine */
  perform(effect, engine) {
    const report = (event) => {
      if (this.isClosed || engine !== this.engine) return;
      engine.handle(event, reading());
      this.wake();
    };
    const answer = (asked, success, failed) => asked.then(
      (json) => report(success(json)), (error) => report({ ...failed, failure: failureOf(error) }))
      .catch((error) => report({ ...failed, failure: failureOf(error) }));
    const query = ({ since, isSaved }) => ({ since: since ?? undefined,
      saved: since && !isSaved ? 'false' : undefined });
    switch (effect.type) {
      case 'notify': this.queueChange(effect.reason, effect.keys); break;
      case 'finishSync': this.settle(effect.id, effect.failure); break;
      case 'save': {
        this.version += 1;
        effect.rows.set('version', String(this.version));
        const { document, version } = this;
        this.device.folder.write(document, effect.rows).then(() => {
          this.say({ type: 'saved', document, version, rows: [...effect.rows] });
          report({ type: 'saved' });
        }, (error) => report({ type: 'saveFailed', reason: String(error?.message ?? error) }));
        break;
      }
      case 'push': {
        const { number, body } = effect;
        answer(this.ask(['changes'], { method: 'POST', body }),
          (json) => ({ type: 'pushAnswered', number, answer: checkedAnswer(json) }),
          { type: 'pushFailed', number });
        break;
      }
      case 'pull': {
        const { number, withConfig } = effect;
        const server = withConfig ? this.device.state.signedIn : null;
        const config = server
          ? request(server, ['config'], { signal: this.requests.signal }) : null;
        answer(Promise.all([this.ask(['changes'], { query: query(effect) }), config]),
          ([json, told]) => ({ type: 'pulled', number, changes: { ...checkedChanges(json),
            ...(told ? { config: checkedConfig(told) } : {}) } }),
          { type: 'pullFailed', number });
        break;
      }
      case 'hangUp': if (this.streamNumber === effect.stream) this.stream?.abort(); break;
      case 'listen': this.listen(effect, query(effect), report);
    }
  }

  async listen({ stream }, query, report) {
    this.stream?.abort();
    const controller = new AbortController();
    [this.stream, this.streamNumber] = [controller, stream];
    const receive = (message) => {
      if (!controller.signal.aborted) report({ type: 'streamReceived', stream, message });
    };
    let heardAt = -Infinity;
    let why = null;
    try {
      const server = this.device.state.signedIn;
      const segments = ['stores', this.identifier, 'changes'];
      if (server) await listen(server, segments, { query, signal: controller.signal }, {
        heard: () => {
          if (performance.now() - heardAt < 1_000) return;
          heardAt = performance.now();
          receive({ kind: 'progress' });
        }, received: (name, data) => {
          if (name === 'changes') receive({ kind: 'changes', changes: checkedChanges(data()) });
          if (name === 'resync') receive({ kind: 'resync' });
          if (name !== 'ready') return undefined;
          const ready = checkedReady(data());
          receive({ kind: 'ready', ...ready });
          return keepAliveMilliseconds(ready.config.keepAliveSeconds);
        },
      });
    } catch (error) { why = failureOf(error); }
    report({ type: 'streamEnded', stream, failure: why });
  }

  /** @private @param {import('./messages.js').Failure | null} why */
  settle(number, why) {
    const sync = this.syncs.get(number);
    this.syncs.delete(number);
    if (why) sync?.reject(new RequestError(why));
    else sync?.resolve();
  }

  failSyncs(why) { for (const number of [...this.syncs.keys()]) this.settle(number, why); }

  until(isDone) {
    if (isDone()) return Promise.resolve();
    return new Promise((resolve) => {
      const waiter = () => {
        if (!isDone()) return;
        this.waiters.delete(waiter);
        resolve(undefined);
      };
      this.waiters.add(waiter);
    });
  }

  notify() {
    for (const waiter of [...this.waiters]) waiter();
    this.showStatus(this.isLeader ? this.engine.status : this.leaderStatus ?? this.engine.status);
  }

  showStatus(status) {
    const text = JSON.stringify([status, this.device.account, this.isLeader]);
    if (text === this.lastStatus || this.isClosed) return;
    this.lastStatus = text;
    if (!this.isLeader) this.leaderStatus = status;
    else this.sayStatus();
    for (const queue of this.queues) if (queue['kind'] === 'status') queue.push(this.status);
    this.dispatchEvent(new Event('status'));
    for (const waiter of [...this.waiters]) waiter();
  }

  sayStatus() { this.say({ type: 'status', status: this.engine.status }); }

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
    for (const queue of [...this.queues]) queue.finish();
    for (const waiter of [...this.waiters]) waiter();
    this.device.openStores.delete(this);
    if (this.ownsDevice) await this.device.close();
  }
}

function checkedKey(key) {
  if (isText(key) && key !== '') return key;
  throw new UbiquityError('key', 'a key is a string that is not empty');
}

const wireOf = (key, value) => (value === null || value === undefined ? null : toWire(value, key));

/** @returns {import('./messages.js').Failure} */
const failureOf = (error) => (error instanceof RequestError ? error.failure
  : failure('unreachable', `the answer cannot be read: ${error?.message ?? error}`));

/** An app's rule, for whose faults the later value stands in. */
const resolverOf = (resolve) => (earlier, later) => {
  const seen = ({ value, stamp }) =>
    ({ value: fromWire(value), date: new Date(milliseconds(stamp)) });
  try {
    return toWire(resolve(seen(earlier), seen(later)));
  } catch { return later.value; }
};

/** A sentence for people. */
function explanation({ connection, lastError, nextRetry, diskError }, account) {
  if (diskError) return `The disk refuses to save: ${diskError}.`;
  switch (connection) {
    case 'signedOut': return account ? 'Starting.'
      : 'Nobody is signed in: values stay on this device until somebody is.';
    case 'connected': return 'Connected.';
    case 'connecting': return 'Connecting.';
    case 'polling': return 'Connected without a stream, and asks now and then'
      + `${lastError ? `: ${lastError}` : ''}.`;
    case 'unauthorized': return `The server refuses this device: ${lastError}. Sign in again.`;
    default: return `Not connected: ${lastError ?? 'not tried yet'}.`
      + (nextRetry ? ` Tries again at ${new Date(nextRetry).toISOString()}.` : '');
  }
}
