// SPDX-License-Identifier: Apache-2.0

/** What answers mean: docs/PROTOCOL.md, "Problems". */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { RequestError, request } from '../src/http.js';

/** Asks a server that gives this answer, and returns the failure. */
async function failureOf(status, problem, headers = {}) {
  const server = createServer((_request, response) => {
    response.writeHead(status, { 'Content-Type': 'application/problem+json', ...headers });
    response.end(typeof problem === 'string' ? problem : JSON.stringify(problem));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await request({ server: `http://127.0.0.1:${server.address().port}` }, ['config']);
    assert.fail('it was no failure');
  } catch (error) {
    assert.ok(error instanceof RequestError, error);
    return error.failure;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const answers = [
  [400, { code: 'malformed', detail: 'It is wrong.' }, {}, 'refused', undefined, 'It is wrong'],
  [401, { code: 'credential-invalid', detail: 'x' }, {}, 'unauthorized'],
  [403, { code: 'app-not-registered', detail: 'x' }, {}, 'refused'],
  [408, {}, {}, 'timedOut'],
  [409, { code: 'clock-ahead', serverMilliseconds: '1800000000000' }, {}, 'clockAhead'],
  [409, { code: 'clock-ahead', serverMilliseconds: '-5' }, {}, 'refused'],
  [410, { code: 'cursor-forgotten' }, {}, 'cursorGone'],
  [410, { code: 'cursor-other-history' }, {}, 'otherHistory'],
  [410, { code: 'history-forgotten' }, {}, 'refused'],
  [413, { code: 'body-too-large' }, {}, 'tooLarge'],
  [413, '<html>a proxy', {}, 'tooLarge'],
  [413, { code: 'too-many' }, {}, 'refused'],
  [429, { code: 'too-many-requests' }, { 'Retry-After': '7' }, 'busy', 7_000],
  [429, {}, { 'Retry-After': 'Fri, 31 Dec 1999 23:59:59 GMT' }, 'busy', 1_000],
  [429, {}, { 'Retry-After': '-3' }, 'busy', 1_000],
  [429, {}, { 'Retry-After': '99999999999' }, 'busy', 3_600_000],
  [429, { code: 'too-many-streams' }, { 'Retry-After': '2' }, 'tooManyStreams', 2_000],
  [503, { code: 'unavailable' }, {}, 'busy', 5_000],
  [507, { code: 'storage-full' }, { 'Retry-After': '9' }, 'busy', 9_000],
  [504, 'a proxy', {}, 'timedOut'],
  [302, '', { Location: 'http://127.0.0.1:1/' }, 'unreachable'],
  [500, { code: 5, detail: { a: 1 } }, {}, 'unreachable'],
  [500, 'null', {}, 'unreachable'],
];

for (const [status, problem, headers, kind, wait, detail] of answers) {
  test(`${status} ${JSON.stringify(problem)} ${JSON.stringify(headers)} means ${kind}`, async () => {
    const failure = await failureOf(status, problem, headers);
    assert.equal(failure.kind, kind);
    if (wait !== undefined) assert.equal(failure.wait, wait);
    if (detail) assert.equal(failure.detail, detail);
    if (kind === 'clockAhead') assert.equal(failure.server, 1_800_000_000_000);
  });
}

test('a success that is no JSON, or too large, is a failure', async () => {
  assert.equal((await failureOf(200, '{"a": ')).kind, 'unreachable');
  assert.equal((await failureOf(200, `[${'1,'.repeat(2 ** 21)}1]`)).kind, 'unreachable');
  assert.equal((await failureOf(200, `"${'x'.repeat(2 ** 26)}"`)).kind, 'unreachable');
});
