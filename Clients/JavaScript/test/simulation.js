// SPDX-License-Identifier: Apache-2.0

/**
 * Several engines and a model server in virtual time, with a network that loses, delays and repeats,
 * processes that are killed, clocks that are wrong, and a server that forgets and is restored.
 *
 * A run is a function of its seed. `check` compares the end with what the world knows:
 *
 * - all devices and the server have the same values;
 * - of each key, no write on disk is missing that was made later, by true time, than the one held;
 * - a counter is the sum of all increments on disk, each once; a maximum is the greatest value, and a
 *   union of arrays has all elements;
 * - nobody ever sees half of a transaction.
 */

import { Engine } from '../src/engine.js';
import { checkedAnswer, checkedChanges, checkedReady } from '../src/messages.js';
import { Random, checkedConfig } from '../src/rules.js';
import { fromWire, toWire } from '../src/values.js';
import { ModelServer } from './model-server.js';

const epoch = 1_900_000_000_000;
const keys = ['k0', 'k1', 'k2'];
const pair = ['left', 'right'];
const counterKey = 'count';
const maximumKey = 'high';
const arrayKey = 'bag';
/** By how much a corrected clock may be wrong: two round trips. */
const toleranceMilliseconds = 3_000;
const hour = 3_600_000;

export class Violation extends Error {}

class Device {
  constructor(world, number) {
    this.world = world;
    this.name = String(number + 1).padStart(16, '0');
    this.disk = new Map();
    this.offset = world.faults.clocks ? world.random.below(10 * hour) - 5 * hour : 0;
    this.isOnline = true;
    this.boots = 0;
    this.start();
  }

  get now() {
    const { time } = this.world;
    const boot = `${this.name}.${this.boots}`;
    return { wall: epoch + time + this.offset, uptime: time - this.bootedAt, boot };
  }

  /** A process starts from what is on disk. */
  start() {
    this.boots += 1;
    this.bootedAt = this.world.time - 1_000;
    /** What the app did that is not on disk yet. */
    this.unsaved = [];
    this.wakeAt = Infinity;
    this.engine = new this.world.Engine(new Map(this.disk),
      { seed: this.world.random.next(), now: this.now });
    this.engine.setPolicy(counterKey, 'c');
    this.engine.setPolicy(maximumKey, 'x');
    this.engine.setPolicy(arrayKey, 'a');
    this.engine.handle({ type: 'signedIn', account: 'ann', device: this.name }, this.now);
    this.stopListening?.();
    this.step();
  }

  kill() {
    this.stopListening?.();
    this.engine = null;
  }

  /** Does something later, unless the process has been killed since. */
  later(milliseconds, action) {
    const { boots } = this;
    this.world.at(milliseconds, () => {
      if (this.engine && this.boots === boots) action();
    });
  }

  handle(event) {
    this.engine.handle(event, this.now);
    this.step();
  }

  step() {
    for (let effect = this.engine.nextEffect(this.now); effect; ) {
      this.perform(effect);
      effect = this.engine.nextEffect(this.now);
    }
    this.world.look(this);
    const wake = this.engine.nextWake;
    if (wake === Infinity || wake >= this.wakeAt) return;
    this.wakeAt = wake;
    this.later(Math.max(1, wake - this.now.uptime), () => {
      if (this.wakeAt === wake) this.wakeAt = Infinity;
      this.step();
    });
  }

  perform(effect) {
    const { world } = this;
    const fail = (event) => this.later(world.delay(), () =>
      this.handle({ ...event, failure: { kind: 'unreachable', detail: 'lost' } }));
    switch (effect.type) {
      case 'save': {
        const done = this.unsaved.splice(0);
        const isSlow = world.random.below(10) === 0;
        this.later(world.random.below(isSlow ? 2_000 : 50), () => {
          for (const [name, text] of effect.rows) {
            if (text === null) this.disk.delete(name);
            else this.disk.set(name, text);
          }
          world.saved.push(...done);
          this.handle({ type: 'saved' });
        });
        break;
      }
      case 'push': {
        const { number, body } = effect;
        world.request(this, () => world.server.push(JSON.parse(JSON.stringify(body)), this.name),
          (answer) => this.handle(answer.status === 200
            ? { type: 'pushAnswered', number, answer: checkedAnswer(answer.json) }
            : { type: 'pushFailed', number, failure: failureOf(answer) }),
          () => fail({ type: 'pushFailed', number }));
        break;
      }
      case 'pull': {
        const { number, since } = effect;
        world.request(this, () => world.server.changes(since),
          (answer) => this.handle(answer.status === 200
            ? { type: 'pulled', number, changes: {
              ...checkedChanges(answer.json),
              config: checkedConfig(world.server.config) } }
            : { type: 'pullFailed', number, failure: failureOf(answer) }),
          () => fail({ type: 'pullFailed', number }));
        break;
      }
      case 'listen': this.listen(effect); break;
      case 'hangUp': if (effect.stream === this.stream) this.stopListening(); break;
      default: break;
    }
  }

  /** A stream brings everything in order, until it breaks. */
  listen({ stream, since }) {
    const { world } = this;
    this.stopListening?.();
    this.stream = stream;
    let isOpen = true;
    let arrival = 0;
    const deliver = (message) => {
      arrival = Math.max(arrival, world.time + world.delay());
      this.later(arrival - world.time, () => {
        if (isOpen) this.handle({ type: 'streamReceived', stream, message });
      });
    };
    const listener = (json) => deliver({ kind: 'changes', changes: checkedChanges(json) });
    this.stopListening = () => {
      isOpen = false;
      world.server.listeners.delete(listener);
    };
    const end = (failure = null) => {
      if (!isOpen) return;
      this.stopListening();
      this.later(world.delay(), () => this.handle({ type: 'streamEnded', stream, failure }));
    };
    this.breakStream = end;
    this.later(world.delay(), () => {
      if (!isOpen) return;
      if (!this.isOnline || world.isDown || world.chance('losses', 10)) {
        end({ kind: 'unreachable', detail: 'lost' });
        return;
      }
      const answer = world.server.changes(since);
      if (answer.status !== 200) {
        end(failureOf(answer));
        return;
      }
      world.server.listeners.add(listener);
      const { json } = answer;
      if (since === null || json.records.length) listener(json);
      deliver({ kind: 'ready', ...checkedReady(
        { cursor: json.cursor, config: world.server.config }) });
    });
  }

  // What the app does

  write(values) {
    // The removal of an absent key is no write.
    if (values.every(([key, value]) => this.value(key) === value)) return;
    this.engine.write(this.engine.intent(values.map(([key, value]) => [
      key, value === null ? null : toWire(value)])), this.now);
    for (const [key, value] of values) {
      this.unsaved.push({ device: this, key, value, time: this.world.time });
    }
    this.step();
  }

  value(key) {
    const wire = this.engine.value(key);
    return wire ? fromWire(wire) : null;
  }
}

function failureOf({ status, json }) {
  const kind = status === 410 ? (json.code === 'cursor-other-history' ? 'otherHistory' : 'cursorGone')
    : status === 409 ? 'clockAhead' : 'refused';
  return { kind, detail: json.detail, server: Number(json.serverMilliseconds ?? 0) };
}

export class World {
  /** @param {{seed: number, EngineClass?: typeof Engine, faults?: Record<string, boolean>}} options */
  constructor({ seed, EngineClass = Engine, faults = {} }) {
    this.random = new Random(seed.toString(16).padStart(8, '0'));
    this.Engine = EngineClass;
    // A deletion that server and devices have forgotten comes back with a restored server, as
    // docs/SEMANTICS.md says: so a run has one or the other.
    this.faults = { losses: true, clocks: true, kills: true, forgets: seed % 2 === 0,
      restores: seed % 2 === 1, ...faults };
    this.isPeace = false;
    this.isDown = false;
    this.time = 0;
    this.queue = [];
    this.order = 0;
    this.written = 0;
    /** All writes that reached a disk. */
    this.saved = [];
    this.server = new ModelServer({ now: () => epoch + this.time });
    this.server.listeners.add(() => this.wholeness('the server', (key) => {
      const row = this.server.records.get(key);
      return row?.value ? fromWire(row.value) : null;
    }));
    this.devices = [0, 1, 2].map((number) => new Device(this, number));
  }

  at(milliseconds, action) {
    this.order += 1;
    const item = { time: this.time + milliseconds, order: this.order, action };
    let [low, high] = [0, this.queue.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.queue[middle].time > item.time) low = middle + 1;
      else high = middle;
    }
    this.queue.splice(low, 0, item);
  }

  /** Lets everything happen that is due within some milliseconds. */
  advance(milliseconds) {
    const end = this.time + milliseconds;
    while (this.queue.length && this.queue.at(-1).time <= end) {
      const { time, action } = this.queue.pop();
      this.time = time;
      action();
    }
    this.time = end;
  }

  chance(fault, percent) {
    return this.faults[fault] && !this.isPeace && this.random.below(100) < percent;
  }

  delay() { return 5 + this.random.below(this.isPeace ? 50 : 400); }

  /** A request may be lost, or arrive twice; its answer may be lost. */
  request(device, body, answered, lost) {
    device.later(this.delay(), () => {
      if (!device.isOnline || this.isDown || this.chance('losses', 10)) {
        lost();
        return;
      }
      const answer = body();
      if (this.chance('losses', 10)) this.at(this.random.below(5_000), () => body());
      if (this.chance('losses', 15)) lost();
      else device.later(this.delay(), () => answered(answer));
    });
  }

  look(device) {
    this.wholeness(`device ${device.name}`, (key) => device.value(key));
  }

  wholeness(who, value) {
    const [left, right] = pair.map(value);
    if (left !== right) throw new Violation(`${who} sees ${left} and ${right} of a transaction`);
  }

  /** One thing that an app, a person or the world does. */
  step() {
    const device = this.devices[this.random.below(this.devices.length)];
    const isAlive = device.engine !== null;
    this.written += 1;
    const key = keys[this.random.below(keys.length)];
    switch (this.random.below(17)) {
      case 0: case 1: case 2:
        if (isAlive) device.write([[key, `${key} ${this.written}`]]);
        break;
      case 3: case 4:
        if (isAlive) device.write(pair.map((one) => [one, `pair ${this.written}`]));
        break;
      case 5: if (isAlive) device.write([[key, null]]); break;
      case 6: if (isAlive) device.write(pair.map((one) => [one, null])); break;
      case 7: case 8:
        if (isAlive) {
          const count = device.value(counterKey) ?? 0;
          device.write([[counterKey, count + 1]]);
        }
        break;
      case 9:
        device.isOnline = !device.isOnline;
        if (!device.isOnline && isAlive) device.breakStream?.();
        break;
      case 10:
        if (!this.chance('kills', 60)) break;
        if (isAlive) device.kill();
        else device.start();
        break;
      case 11:
        // A clock is set. What an earlier boot wrote has its final time by then.
        if (this.faults.clocks && isAlive && device.engine.clock.isExact(device.now)) {
          device.offset = this.random.below(10 * hour) - 5 * hour;
        }
        break;
      case 14: if (isAlive) device.write([[maximumKey, this.random.below(1_000)]]); break;
      case 15:
        if (isAlive) device.write([[arrayKey, [...device.value(arrayKey) ?? [], this.written]]]);
        break;
      case 13:
        if (isAlive) {
          device.engine.requestSync();
          device.handle({ type: 'hurry' });
        }
        break;
      case 12: if (this.chance('forgets', 30)) this.server.compact(); break;
      default:
        if (this.chance('restores', 25)) {
          if (this.backup) {
            this.server.restore(this.backup);
            for (const one of this.devices) if (one.engine) one.breakStream?.();
            this.backup = null;
          } else this.backup = this.server.backup();
        }
    }
    this.advance(this.random.below(1_500));
  }

  /** Runs, then makes peace, and looks at the end. */
  run(steps = 120) {
    this.advance(5_000);
    for (let i = 0; i < steps; i += 1) this.step();
    this.isPeace = true;
    for (const device of this.devices) {
      device.isOnline = true;
      if (!device.engine) device.start();
      device.handle({ type: 'hurry' });
    }
    // Long enough for every pause and every lag to end.
    for (let i = 0; i < 30; i += 1) this.advance(30_000);
    this.check();
  }

  check() {
    const fail = (message) => { throw new Violation(message); };
    for (const device of this.devices) {
      const { status, requests } = device.engine;
      if (requests.length) fail(`device ${device.name} never finishes a round trip`);
      if (status.connection !== 'connected' || status.pendingKeys.length) {
        fail(`device ${device.name} is ${status.connection} (${status.lastError}), and `
          + `${status.pendingKeys} wait`);
      }
    }
    const [first, ...others] = this.devices;
    for (const key of [...keys, ...pair, counterKey, maximumKey, arrayKey]) {
      for (const other of others) {
        if (JSON.stringify(first.value(key)) === JSON.stringify(other.value(key))) continue;
        fail(`${key} is ${first.value(key)} on one device and ${other.value(key)} on another`);
      }
    }
    // A refused write takes those with it that it replaced before they were sent. (A superseded
    // one lost to a later one, which must be held.)
    const refused = new Set();
    for (const device of this.devices) {
      for (const { record, code } of device.engine.refused.values()) {
        if (code === 'superseded') continue;
        const value = record.value ? fromWire(record.value) : null;
        const mine = this.saved.filter((one) => one.device === device && one.key === record.key);
        const { time } = mine.findLast((one) => one.value === value) ?? { time: -1 };
        for (const one of mine) if (one.time <= time) refused.add(one);
      }
    }
    for (const key of [...keys, ...pair]) this.checkLatest(key, first.value(key), refused);
    const increments = this.saved.filter(({ key }) => key === counterKey).length;
    const count = first.value(counterKey) ?? 0;
    if (count !== increments) fail(`the count is ${count} after ${increments} increments`);
    const values = (key) => this.saved.filter((one) => one.key === key && !refused.has(one))
      .map(({ value }) => value);
    const high = Math.max(...values(maximumKey));
    if (high > (first.value(maximumKey) ?? -Infinity)) fail(`the maximum ${high} is missing`);
    const bag = new Set(first.value(arrayKey) ?? []);
    const missing = values(arrayKey).find((value) => !bag.has(value.at(-1)));
    if (missing) fail(`the element ${missing.at(-1)} is missing`);
  }

  /** The value held is that of the latest write, by true time. */
  checkLatest(key, value, refused) {
    const writes = this.saved.filter((one) => one.key === key && !refused.has(one));
    // An older value that the server never had is taken, even if a forgotten deletion is later:
    // then only what was written after the last deletion has to win.
    const deletions = writes.filter((one) => one.value === null).map(({ time }) => time);
    const decisive = this.faults.forgets
      ? writes.filter(({ time }) => time > Math.max(0, ...deletions)) : writes;
    const latest = Math.max(...decisive.map(({ time }) => time));
    const held = writes.filter((one) => one.value === value).map(({ time }) => time);
    if (!decisive.length || Math.max(...held) >= latest - toleranceMilliseconds) return;
    const lost = decisive.find(({ time }) => time === latest);
    throw new Violation(`${key} is ${value}, but ${lost.value} was written `
      + `${latest - Math.max(...held)} ms later`);
  }
}
