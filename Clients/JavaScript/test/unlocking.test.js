// SPDX-License-Identifier: Apache-2.0

/** What the engine makes of keys that come from outside. */

import assert from 'node:assert/strict';
import { createHash, hkdfSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Engine, clocks } from '../src/engine.js';

const compiled = WebAssembly.compile(await readFile(new URL('../src/engine.wasm', import.meta.url)));
const ask = async (question) => new Engine(await compiled).handle(question, clocks());

const account = 'A';
const json = (value) => new TextEncoder().encode(JSON.stringify(value));
const key = (number) => Buffer.alloc(32, number);
const keys = (...generations) => Object.fromEntries(generations.map((number) => [number, key(number).toString('base64')]));

const fields = (...values) => Buffer.concat(values.flatMap((value) => {
  const bytes = typeof value === 'number' ? Buffer.from(value.toString(16).padStart(16, '0'), 'hex') : Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return [length, bytes];
}));
const derived = (secret, ...info) => Buffer.from(hkdfSync('sha256', secret, '', fields(...info), 32)).toString('base64');
const mark = (generation, secret = key(generation)) => json({ generation,
  check: createHash('sha256').update(derived(secret, 'ubiquity proof 1', generation), 'base64').digest('base64') });

/** What a device answers that is handed these keys. */
async function handed(keyring, more = {}, stores = []) {
  const { code } = await ask({ do: 'code', stores });
  const { box } = await ask({ do: 'handOver', code, account, keyring });
  return ask({ do: 'unlock', code, account, answer: json({ box }), ...more });
}

test('keys of a handover join those of the device', async () => {
  assert.deepEqual(await handed(keys(1, 2)), { keyring: keys(1, 2) });
  assert.deepEqual(await handed(keys(1, 2), { keyring: keys(2, 3) }), { keyring: keys(1, 2, 3) });
  assert.deepEqual(await handed(keys(2, 3), { keyring: keys(1, 2) }), { keyring: keys(1, 2, 3) });
  // Of a confined device.
  assert.deepEqual(await handed(keys(1, 2), { keyring: keys(1, 2) }, ['notes']), { keyring: keys(1, 2) });
});

test('keys that do not go on from those of the device are refused', async () => {
  const forged = { ...keys(1), 2: key(9).toString('base64') };
  for (const [given, keyring] of [[forged, keys(1, 2)], [keys(5), keys(1, 2)], [keys(1, 2), forged]]) {
    const { problem, ...rest } = await handed(given, { keyring });
    assert.match(problem, /do not go on from/);
    assert.deepEqual(rest, {});
  }
});

test("keys of a handover are compared with the server's mark", async () => {
  assert.deepEqual(await handed(keys(1, 2), { mark: mark(2) }), { keyring: keys(1, 2) });
  assert.ok((await handed(keys(1, 2), { mark: mark(2) }, ['notes'])).keyring);
  for (const [said, stores, problem] of [
    [mark(3), [], /from before/], [mark(2, key(9)), [], /not the ones/], [mark(1), [], /not the ones/],
    [json({}), [], /is not sealed/], [mark(3), ['notes'], /from before/], [json([]), [], /cannot be read/],
  ]) assert.match((await handed(keys(1, 2), { mark: said }, stores)).problem, problem);
});
