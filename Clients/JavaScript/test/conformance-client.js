// SPDX-License-Identifier: Apache-2.0

/**
 * The engine as a client of `ubiquity-conformance`: Protocol/conformance.md has the language. With a name
 * from `faulty-engines.js`, an engine with that fault, which must be found.
 */

import { Engine } from '../src/engine.js';
import { applyRows } from '../src/entries.js';
import { failureOf, parse } from '../src/http.js';
import { checkedAnswer, checkedChanges, checkedMessage } from '../src/messages.js';
import { keyAndPart } from '../src/records.js';
import { checkedConfig } from '../src/rules.js';
import { UbiquityError, compareValues } from '../src/values.js';
import { chosen, serve } from './conformance-language.js';
import { faultyEngines } from './faulty-engines.js';

const EngineClass = chosen(Engine, faultyEngines);

/** The app's own rule: of two values, the one that is later in the order of values. */
const greater = (a, b) => (compareValues(a.value, b.value) < 0 ? b : a).value;

class Device {
  disk = new Map();
  lastRequest = 0;

  take(command) {
    this.said = {};
    this.now = { wall: command.wall, uptime: command.uptime, boot: command.boot };
    this[command.do](command);
    if (!this.engine) return this.said;
    for (let effect; (effect = this.engine.nextEffect(this.now));) this.perform(effect);
    const state = this.state();
    const text = JSON.stringify(state);
    if (text !== this.shown) this.said.state = state;
    this.shown = text;
    const wake = this.engine.nextWake;
    return { ...this.said, wake: wake === Infinity ? null : wake };
  }

  // What happens

  start({ account, name, credential, store, seed, firstSync, policies }) {
    this.address = `/v1/stores/${store}/changes`;
    this.credential = credential;
    this.requests = new Map();
    this.trips = new Map();
    this.saving = null;
    this.shown = null;
    this.engine = new EngineClass(new Map(this.disk), { seed, now: this.now, settings: { firstSync } });
    for (const [key, policy] of Object.entries(policies)) this.engine.setPolicy(key, policy, greater);
    this.engine.handle({ type: 'signedIn', account, device: name }, this.now);
  }

  kill({ keepsSave }) {
    if (keepsSave) this.keep();
    this.engine = null;
  }

  write({ writes }) {
    const plain = [];
    const merging = [];
    for (const { key, value = null, policy, base = null } of writes) {
      if (policy) merging.push([key, { policy, old: base, value }]);
      else plain.push([key, value]);
    }
    try {
      this.engine.write({ plain, merging }, this.now);
      // The app knows what it wrote.
      this.engine.entries.takeChanged();
    } catch (error) {
      if (!(error instanceof UbiquityError)) throw error;
      this.said.error = error.code;
    }
  }

  sync({ id }) { this.trips.set(this.engine.requestSync(), id); }

  keep() {
    applyRows(this.disk, this.saving ?? []);
    this.saving = null;
  }

  saved() {
    this.keep();
    this.handle({ type: 'saved' });
  }

  notSaved() {
    this.saving = null;
    this.handle({ type: 'saveFailed', reason: 'the disk is full' });
  }

  wake() {}

  /** Of a stream that is open, the answer is only its head. */
  answer({ request: id, status, headers, body }) {
    if (status === 200 && this.requests.get(id)?.received) return;
    const request = this.removed(id);
    if (status === 200) request?.answered(parse(body));
    else request?.failed(failureOf(status, new Headers(headers), parse(body), 'the server'));
  }

  event({ request, name, data }) { this.requests.get(request)?.received(name, () => parse(data)); }

  end({ request }) { this.removed(request)?.failed(null); }

  fail({ request, why }) {
    const kind = why === 'timeout' ? 'timedOut' : 'unreachable';
    this.removed(request)?.failed({ kind, detail: 'lost' });
  }

  removed(id) {
    const request = this.requests.get(id);
    this.requests.delete(id);
    return request;
  }

  handle(event) { this.engine.handle(event, this.now); }

  // What the engine does

  say(field, element) { (this.said[field] ??= []).push(element); }

  perform(effect) {
    const { type, number, stream } = effect;
    switch (type) {
      case 'save':
        this.saving = effect.rows;
        this.said.saves = true;
        break;
      case 'notify': {
        const reason = effect.reason === 'initialSyncChange' ? 'initialSync' : effect.reason;
        this.say('notices', { reason, keys: effect.keys });
        break;
      }
      case 'finishSync': {
        const error = effect.failure?.detail;
        this.say('synced', { id: this.trips.get(effect.id), ...(error === undefined ? {} : { error }) });
        break;
      }
      case 'push':
        this.request('POST', this.address, {
          answered: (json) => this.handle({ type: 'pushAnswered', number, answer: checkedAnswer(json) }),
          failed: (failure) => this.handle({ type: 'pushFailed', number, failure }),
        }, JSON.stringify(effect.body));
        break;
      case 'pull': this.pull(effect); break;
      case 'listen':
        this.request('GET', this.address + query(effect), {
          stream,
          received: (name, data) => this.received(stream, name, data),
          failed: (failure) => this.handle({ type: 'streamEnded', stream, failure }),
        });
        break;
      case 'hangUp':
        for (const [id, request] of this.requests) {
          if (request.stream !== stream) continue;
          this.requests.delete(id);
          this.say('cancelled', id);
        }
    }
  }

  /** A pull may also ask for the configuration: both answers are one. */
  pull(effect) {
    const { number, withConfig } = effect;
    let [changes, config, isOver] = [null, null, false];
    const failed = (failure) => {
      if (!isOver) this.handle({ type: 'pullFailed', number, failure });
      isOver = true;
    };
    const finish = () => {
      if (isOver || !changes || (withConfig && !config)) return;
      this.handle({ type: 'pulled', number, changes: { ...changes, ...(config ? { config } : {}) } });
    };
    this.request('GET', this.address + query(effect), { failed, answered: (json) => {
      changes = checkedChanges(json);
      finish();
    } });
    if (withConfig) this.request('GET', '/v1/config', { failed, answered: (json) => {
      config = checkedConfig(json);
      finish();
    } });
  }

  received(stream, name, data) {
    const message = checkedMessage(name, data);
    if (message) this.handle({ type: 'streamReceived', stream, message });
  }

  request(method, path, handlers, body = undefined) {
    this.lastRequest += 1;
    this.requests.set(this.lastRequest, handlers);
    this.say('requests', { id: this.lastRequest, method, path, body, headers: {
      Authorization: `Bearer ${this.credential}`,
      Accept: handlers.received ? 'text/event-stream' : 'application/json',
      ...(body ? { 'Content-Type': 'application/json' } : {}),
    } });
  }

  // What it shows

  state() {
    const { entries, meta, status } = this.engine;
    const values = [...entries.values()].map(([key, value]) => ({ key, value }));
    const records = [];
    const waiting = [];
    for (const [id, { pending }] of entries.all) {
      const [key, part] = keyAndPart(id);
      const name = part ? { key, part } : { key };
      const value = entries.content(id);
      if (value && entries.hasParts(key)) records.push({ ...name, value });
      if (pending) waiting.push(name);
    }
    const isConnected = ['connected', 'polling'].includes(status.connection);
    return { values, records, waiting, cursor: meta.cursor, isConnected };
  }
}

const query = ({ since, isSaved }) =>
  (since === null ? '' : `?since=${encodeURIComponent(since)}${isSaved ? '' : '&saved=false'}`);

serve(() => new Device());
