// SPDX-License-Identifier: Apache-2.0

/** Carries out the engine's requests by `fetch`. All that a server sends has a bound in bytes and in time. */

import { version } from '../http.js';

const silenceMilliseconds = 30_000;
const bytesMax = 2 ** 26;
const isNode = typeof process !== 'undefined' && process.versions?.node !== undefined;

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
        headers: { ...headers, ...(isNode ? { 'User-Agent': `ubiquity-store-js/${version}` } : {}) },
      });
      const answer = { do: 'answer', status: response.status, headers: Object.fromEntries(response.headers) };
      if (response.status === 200 && headers.Accept === 'text/event-stream') {
        report({ ...answer, body: new Uint8Array() });
        await readEvents(response, report, moved);
        report({ do: 'end' });
      } else report({ ...answer, body: await readAll(response, moved) });
    } catch (error) {
      report(isSilent ? { do: 'fail', why: 'timeout', detail: `the server at ${server} does not answer` }
        : { do: 'fail', why: 'unreachable', detail: sentence(error, server) });
    } finally {
      clearTimeout(timer);
      if (this.requests.get(id) === request) this.requests.delete(id);
      // What was not read is not wanted.
      controller.abort();
    }
  }
}

function sentence(error, server) {
  const reason = error?.cause?.code ?? error?.message ?? error;
  const words = { ECONNREFUSED: 'the connection was refused', ENOTFOUND: 'its name is not known',
    UND_ERR_SOCKET: 'the connection broke', ECONNRESET: 'the connection broke' }[reason];
  return `no server answers at ${server} (${words ?? reason})`;
}

/** The pieces of an answer as they come. Not every browser iterates over streams. */
async function* piecesOf(response, moved) {
  if (!response.body) return;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      moved();
      yield value;
    }
  } finally { reader.cancel().catch(() => {}); }
}

async function readAll(response, moved) {
  const pieces = [];
  let size = 0;
  for await (const piece of piecesOf(response, moved)) {
    size += piece.length;
    if (size > bytesMax) throw new Error('the answer is too large');
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

/** Reads events until the stream ends. Of what makes no event, there is a word once a second. */
async function readEvents(response, report, moved) {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    throw new Error('the answer is not a stream of events');
  }
  const [decoder, encoder] = [new TextDecoder('utf-8', { fatal: true }), new TextEncoder()];
  /** @type {[string, string, string[], number, number]} A line that is not complete, and the event so far. */
  let [rest, name, data, size, toldAt] = ['', '', [], 0, -Infinity];
  for await (const piece of piecesOf(response, moved)) {
    const now = performance.now();
    if (now - toldAt >= 1_000) {
      toldAt = now;
      report({ do: 'progress' });
    }
    size += piece.length;
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = /** @type {string} */ (lines.pop());
    for (const line of lines.map((one) => one.replace(/\r$/, ''))) {
      if (line.startsWith('event:')) name = line.slice(6).trim();
      else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
      if (line !== '') continue;
      if (name) report({ do: 'event', name, data: encoder.encode(data.join('\n')) });
      [name, data, size] = ['', [], 0];
    }
    if (size > bytesMax) throw new Error('an event is too large');
  }
}
