// SPDX-License-Identifier: Apache-2.0

/** `SEEDS=1...5000 npm test` tries more; a failure names its seed. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from '../src/engine.js';
import { Violation, World } from './simulation.js';

const [first, last] = (process.env.SEEDS ?? '1...150').split('...').map(Number);

test('devices lose nothing, double nothing and agree, whatever happens', () => {
  for (let seed = first; seed <= last; seed += 1) {
    try {
      new World({ seed }).run();
    } catch (error) {
      error.message = `SEEDS=${seed}...${seed}: ${error.message}`;
      throw error;
    }
  }
});

/** Whether the simulation finds a planted fault, in which seed, and by what. */
function find(EngineClass, seeds = 200) {
  for (let seed = 1; seed <= seeds; seed += 1) {
    try {
      new World({ seed, EngineClass }).run();
    } catch (error) {
      if (error instanceof Violation) return error.message;
      throw error;
    }
  }
  return null;
}

test('it finds a clock that is not corrected', () => {
  assert.match(find(class extends Engine {
    measure(server, sentAt, heardAt, now) {
      super.measure(heardAt.wall, heardAt, heardAt, now);
    }
  }) ?? 'nothing', /was written|wait/);
});

test('it finds a transaction that is torn', () => {
  assert.match(find(class extends Engine {
    sendable() {
      const [one] = super.sendable();
      return one ? [{ ...one, writes: one.writes.slice(0, 1) }] : [];
    }
  }) ?? 'nothing', /of a transaction/);
});

test('it finds an outbox that is forgotten before the answer', () => {
  assert.match(find(class extends Engine {
    nextPush(now) {
      const push = super.nextPush(now);
      for (const { writes } of this.push && push ? this.push.transactions : []) {
        for (const { key, part } of writes) {
          this.entries.update(part ? `${key}\uDBFF${part}` : key, (entry) => {
            entry.confirmed = entry.pending?.record ?? entry.confirmed;
            entry.pending = null;
          });
        }
      }
      return push;
    }
  }) ?? 'nothing', /was written|increments|on another/);
});

test('it finds what is kept although the whole store lacks it', () => {
  assert.match(find(class extends Engine {
    takeStore(records) {
      const kept = [...this.entries.all.values()].map(({ confirmed }) => confirmed)
        .filter((row) => row && !records.some(({ key, part }) =>
          key === row.key && part === row.part));
      super.takeStore([...records, ...kept]);
    }
  }) ?? 'nothing', /on another|was written/);
});

test('it finds a write that is sent before it is on disk', () => {
  assert.match(find(class extends Engine {
    constructor(...options) {
      super(...options);
      this.entries.isSaved = () => true;
    }
  }, 1_000) ?? 'nothing', /increments|was written|on another|of a transaction/);
});
