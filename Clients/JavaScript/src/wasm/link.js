// SPDX-License-Identifier: Apache-2.0

/** Carries out the engine's requests by `fetch`. All that a server sends has a bound in bytes and in time. */

import { bytesMax, eventsOf, piecesOf, silenceMilliseconds, unanswered, userAgent } from '../http.js';
import { WireError } from '../values.js';

export class Link {
  /** @type {Map<number, {abort: () => void, patience: number}>} */
  requests = new Map();

  /** @param {(event: {do: string, [field: string]: any}) => void} report */
  constructor(report) { this.report = report; }

  cancel(id) {
    this.requests.get(id)?.abort();
    this.requests.delete(id);
  }

  close() { for (const id of [...this.requests.keys()]) this.cancel(id); }

  /** How long a stream may be silent from now on. */
  setPatience(id, milliseconds) {
    const request = this.requests.get(id);
    if (request) request.patience = milliseconds;
  }

  async send({ id, method, server, path, headers, body }) {
    const controller = new AbortController();
    const request = { patience: silenceMilliseconds, abort: () => controller.abort() };
    this.requests.set(id, request);
    let [timer, isSilent] = [undefined, false];
    const moved = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        isSilent = true;
        controller.abort();
      }, request.patience);
    };
    const report = (event) => {
      moved();
      if (this.requests.get(id) === request) this.report({ ...event, request: id });
    };
    moved();
    try {
      const response = await fetch(server + path, {
        method, body, signal: controller.signal, redirect: 'manual', credentials: 'omit', cache: 'no-store',
        headers: { ...headers, ...userAgent },
      });
      const answer = { do: 'answer', status: response.status, headers: Object.fromEntries(response.headers) };
      if (response.status === 200 && headers.Accept === 'text/event-stream') {
        report({ ...answer, body: new Uint8Array() });
        await readEvents(response, report, moved);
        report({ do: 'end' });
      } else report({ ...answer, body: await readAll(response, moved) });
    } catch (error) {
      const { kind, detail } = unanswered(error, isSilent, server);
      report({ do: 'fail', why: kind === 'timedOut' ? 'timeout' : kind, detail });
    } finally {
      clearTimeout(timer);
      if (this.requests.get(id) === request) this.requests.delete(id);
      // What was not read is not wanted.
      controller.abort();
    }
  }
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
  let toldAt = -Infinity;
  for await (const events of eventsOf(response, moved)) {
    const now = performance.now();
    if (now - toldAt >= 1_000) {
      toldAt = now;
      report({ do: 'progress' });
    }
    for (const [name, data] of events) report({ do: 'event', name, data: encoder.encode(data) });
  }
}
