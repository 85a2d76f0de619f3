// SPDX-License-Identifier: Apache-2.0

/** What the harness's client shows, which has its own clock, timers and disk: so it has a process of its own. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Device, Process } from './conformance/device.js';

test("the app is notified of what its own rule has made, and once", async () => {
  const device = new Device(Process, false);
  const take = async (command) => device.take({ wall: 1_800_000_000_000, uptime: 0, ...command });
  await take({ do: 'start', account: '1', name: '000000000000000a', credential: 'c', store: 's', seed: '1',
    boot: '1', firstSync: 'timestamps', policies: { k: 'r' } });
  let answer = await take({ do: 'leading', isLeading: true });
  while (!answer.requests) answer = await take({ do: answer.saves ? 'saved' : 'read' });
  const [{ id: request }] = answer.requests;
  await take({ do: 'answer', request, status: 200, headers: {}, body: '' });
  const record = (number, string) => ({ key: 'k', part: `r000000000000000${number}.0000001`, value: { string },
    milliseconds: '1800000000000', device: `000000000000000${number}` });
  const data = JSON.stringify({ records: [record(1, 'more'), record(2, 'less')], cursor: '1-1' });
  const { notices, isNotifying, state } = await take({ do: 'event', request, name: 'changes', data });
  assert.deepEqual(notices, [{ reason: 'serverChange', keys: ['k'] }]);
  assert.equal(isNotifying, false);
  assert.deepEqual(state.values, [{ key: 'k', value: { string: 'more' } }]);
  assert.equal((await take({ do: 'saved' })).notices, undefined);
  await device.remove();
});
