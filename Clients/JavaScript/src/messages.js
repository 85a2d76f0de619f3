// SPDX-License-Identifier: Apache-2.0

/** The messages of a server, checked: whatever it sends, the engine gets only these forms. */

import { checkedNumber, checkedRow, timestamp } from './records.js';
import { checkedConfig } from './rules.js';
import { WireError, checkedList, isObject } from './values.js';

/** @param {Failure['kind']} kind @returns {Failure} */
export const failure = (kind, detail = '') => ({ kind, detail });

/** A text of a server for people: one line, not too long. */
export const sentence = (text) =>
  String(text).slice(0, 1_000).replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').replace(/\.$/, '');

export function checkedCursor(json) {
  if (typeof json === 'string' && /^[\x21-\x7e]{1,128}$/.test(json)) return json;
  throw new WireError('a cursor is not 1 to 128 visible characters');
}

/** @returns {Changes} @throws {WireError} */
export const checkedChanges = (json) => ({
  records: checkedList(json, 'records').map(checkedRow),
  cursor: checkedCursor(json.cursor),
  server: checkedNumber(json.serverMilliseconds),
  isWhole: json.whole === true,
  horizon: timestamp(checkedNumber(json.horizonMilliseconds)),
});

/**
 * What an event of a stream says; null if nothing is known of such events.
 * @param {() => any} data Parses its data. @throws {WireError}
 */
export function checkedMessage(name, data) {
  if (name === 'changes') return { kind: name, changes: checkedChanges(data()) };
  if (name === 'resync') return { kind: name };
  if (name !== 'ready') return null;
  const { cursor, config } = data() ?? {};
  return { kind: name, cursor: checkedCursor(cursor), config: checkedConfig(config) };
}

/** @returns {PushAnswer} @throws {WireError} */
export const checkedAnswer = (json) => ({
  cursor: checkedCursor(json?.cursor),
  server: checkedNumber(json.serverMilliseconds),
  results: checkedList(json, 'results').map((result) => {
    if (isObject(result?.refused)) {
      const { code, detail } = result.refused;
      return { code: sentence(code ?? '').slice(0, 64), detail: sentence(detail ?? '') };
    }
    return checkedList(result?.committed, 'writes').map((write) => (write?.applied === true ? 'applied'
      : write?.olderThanForgotten === true ? 'none' : checkedRow(write?.superseded)));
  }),
});
