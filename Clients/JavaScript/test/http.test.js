// SPDX-License-Identifier: Apache-2.0

/** What answers to a device mean: docs/PROTOCOL.md, "Problems". */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestError, request } from '../src/http.js';
import { served } from './support/server.js';

/** Asks a server that gives this answer, and returns the failure. */
function failureOf(status, problem, headers = {}) {
  const answer = (_request, response) => {
    response.writeHead(status, { 'Content-Type': 'application/problem+json', ...headers });
    response.end(typeof problem === 'string' ? problem : JSON.stringify(problem));
  };
  return served(answer, (server) => request({ server }, ['config']).then(
    () => assert.fail('it was no failure'),
    (error) => {
      assert.ok(error instanceof RequestError, error);
      return error.failure;
    }));
}

const answers = [
  [400, { type: 'urn:ubiquity:problem:malformed', code: 'malformed', detail: 'It is wrong.' }, {},
    'refused', undefined, 'It is wrong'],
  [401, { type: 'urn:ubiquity:problem:credential-invalid', code: 'credential-invalid' }, {}, 'unauthorized'],
  [401, '<html>a network to sign in to', {}, 'unreachable'],
  [413, '<html>a proxy', {}, 'tooLarge'],
  [429, { code: 'too-many-requests' }, { 'Retry-After': '7' }, 'busy', 7_000],
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
  });
}

test('a success that is no JSON, or too large, is a failure', async () => {
  assert.equal((await failureOf(200, '{"a": ')).kind, 'unreachable');
  assert.equal((await failureOf(200, `[${'1,'.repeat(2 ** 21)}1]`)).kind, 'unreachable');
  assert.equal((await failureOf(200, `"${'x'.repeat(2 ** 26)}"`)).kind, 'unreachable');
});
