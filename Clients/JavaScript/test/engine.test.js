// SPDX-License-Identifier: Apache-2.0

/** Rules of the engine that neither a vector nor the harness shows. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from '../src/engine.js';

const at = (uptime) => ({ wall: 1_800_000_000_000 + uptime, uptime, boot: 'a' });
const newEngine = () => new Engine(new Map(), { seed: '1', now: at(0) });
const set = (engine, key, value, now = at(0)) => engine.write(engine.intent([[key, value]]), now);

test('a save that failed and is not needed any more is not repeated', () => {
  for (const [policy, value] of [['r', { string: 'x' }], ['a', { array: { values: [{ string: 'x' }] } }]]) {
    const engine = newEngine();
    engine.setPolicy('k', policy);
    set(engine, 'k', value);
    assert.equal(engine.nextEffect(at(0)).type, 'save');
    engine.handle({ type: 'saveFailed', reason: 'no space' }, at(0));
    set(engine, 'k', null, at(1));
    assert.equal(engine.nextEffect(at(1)), null);
    assert.equal(engine.nextWake, Infinity);
    assert.equal(engine.status.diskError, null);
  }
});

test('a counter goes back by a difference, or where that does not fit into 64 bits, by a new value', () => {
  const max = 2n ** 63n - 1n;
  const integer = (number) => ({ integer: String(number) });
  // From one number to another: the difference does not fit, then the total of the run, then all does.
  for (const [own, count, target, isDifference] of [
    [0n, -max, max, false], [-max, 0n, 10n, false], [0n, 5n, 3n, true],
  ]) {
    const engine = newEngine();
    set(engine, 'k', integer(own));
    engine.setPolicy('k', 'c');
    set(engine, 'k', integer(count));
    engine.write(engine.revert([['k', integer(target)]]), at(0));
    assert.deepEqual(engine.value('k'), integer(target));
    assert.deepEqual(engine.entries.content('k'), integer(isDifference ? own : target));
  }
});
