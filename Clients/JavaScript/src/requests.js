// SPDX-License-Identifier: Apache-2.0

/** Requests by `fetch`. All that a server sends has a bound in bytes and in time. */

import {
  bytesMax, eventsOf, piecesOf, silenceMilliseconds, totalMilliseconds, unanswered, userAgent, watchSilence,
} from './http.js';
import { WireError } from './values.js';

export class Requests {
  /** @type {Map<number, {end: () => void, patience: number}>} */
  requests = new Map();

  /**
   * @param {(event: {do: string, [field: string]: any}) => void} report
   * @param {{take(): Promise<(() => void) | null>}} turns A request takes one, and gives it back at its end.
   */
  constructor(report, turns) {
    this.report = report;
    this.turns = turns;
  }

  cancel(id) {
    this.requests.get(id)?.end();
  }

  close() { for (const id of [...this.requests.keys()]) this.cancel(id); }

  /** How long a stream may be silent from now on. */
  setPatience(id, milliseconds) {
    const request = this.requests.get(id);
    if (request) request.patience = milliseconds;
  }

  async send(step) {
    const { id } = step;
    const controller = new AbortController();
    let giveBack = () => {};
    const isWanted = () => this.requests.get(id) === request;
    const request = { patience: silenceMilliseconds, end: () => {
      if (!isWanted()) return;
      this.requests.delete(id);
      // What was not read is not wanted.
      controller.abort();
      giveBack();
    } };
    this.requests.set(id, request);
    const report = (event) => { if (isWanted()) this.report({ ...event, request: id }); };
    const turn = await this.turns.take();
    if (!isWanted()) return turn?.();
    if (turn) {
      giveBack = turn;
      await perform(step, request, controller, report);
    } else report({ do: 'fail', why: 'tooManyStreams', detail: 'there are as many streams as may be' });
    return request.end();
  }
}

async function perform({ method, server, path, headers, body }, request, controller, report) {
  const isStream = headers.Accept === 'text/event-stream';
  const watch = watchSilence(() => controller.abort(), () => request.patience,
    isStream ? Infinity : totalMilliseconds);
  try {
    const response = await fetch(server + path, {
      method, body, signal: controller.signal, redirect: 'manual', credentials: 'omit', cache: 'no-store',
      headers: { ...headers, ...userAgent },
    });
    watch.moved();
    const answer = { do: 'answer', status: response.status, headers: Object.fromEntries(response.headers) };
    if (response.status === 200 && isStream) {
      report({ ...answer, body: new Uint8Array() });
      await readEvents(response, report, watch.moved);
      report({ do: 'end' });
    } else report({ ...answer, body: await readAll(response, watch.moved) });
  } catch (error) {
    const { kind, detail } = unanswered(error, watch.isSilent, server, headers.Authorization?.replace(/^Bearer /, ''));
    report({ do: 'fail', why: kind === 'timedOut' ? 'timeout' : kind, detail });
  } finally { watch.stop(); }
}

async function readAll(response, moved) {
  const pieces = [];
  let size = 0;
  for await (const piece of piecesOf(response, moved)) {
    size += piece.length;
    if (size > bytesMax) throw new WireError('it is too large');
    pieces.push(piece);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** Reads events until the stream ends. Once a second, it says that something has come. */
async function readEvents(response, report, moved) {
  const encoder = new TextEncoder();
  let [toldAt, wasPartial] = [-Infinity, false];
  for await (const { events, isPartial } of eventsOf(response, moved)) {
    const now = performance.now();
    if (now - toldAt >= 1_000 || (!events.length && isPartial !== wasPartial)) {
      toldAt = now;
      report({ do: 'progress', isPartial: isPartial || events.length > 0 });
    }
    for (const [index, [name, data]] of events.entries()) {
      report({ do: 'event', name, data: encoder.encode(data), isPartial: isPartial || index + 1 < events.length });
      // The answer to it may be long.
      moved();
    }
    wasPartial = isPartial;
  }
}
