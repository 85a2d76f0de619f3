// SPDX-License-Identifier: Apache-2.0

/** Requests to a server by `fetch`. All that it sends has a bound in bytes, elements and time. */

import { UbiquityError, WireError, reasonOf } from './values.js';

export const version = '0.9.0';
export const silenceMilliseconds = 30_000;
/** The longest time of a request that is not a stream, however slowly its bytes move. */
export const totalMilliseconds = 3_600_000;
export const bytesMax = 2 ** 26;
const elementsMax = 2 ** 21;
const isNode = typeof process !== 'undefined' && process.versions?.node !== undefined;
/** The client's name, where a program may say it. */
export const userAgent = isNode ? { 'User-Agent': `ubiquity-store-js/${version}` } : {};

/** @param {Failure['kind']} kind @returns {Failure} */
const failure = (kind, detail = '') => ({ kind, detail });

/**
 * Ends a request that is silent for too long, or takes too long altogether.
 * @param {() => void} end @param {() => number} patience How long it may be silent from now on, in milliseconds.
 * @param {number} total
 */
export function watchSilence(end, patience, total) {
  const endsAt = performance.now() + total;
  let timer;
  const watch = { isSilent: false, stop: () => clearTimeout(timer), moved: () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      watch.isSilent = true;
      end();
    }, Math.min(patience(), endsAt - performance.now()));
  } };
  watch.moved();
  return watch;
}

/** A text of a server for people: one line, not too long. */
const sentence = (text) =>
  String(text).slice(0, 1_000).replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').replace(/\.$/, '');

/** Whether a credential can be a part of a request. */
export const isCredential = (text) => typeof text === 'string' && /^[\x21-\x7e]+$/.test(text);

export class RequestError extends UbiquityError {
  constructor(why) {
    super(why.code ?? why.kind, why.detail);
    this.failure = why;
  }
}

/** Whether an address means the machine itself, whichever that is. @param {string} address */
export const isLoopback = (address) => /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(new URL(address).hostname);

/** An address without a slash at the end. @throws {UbiquityError} */
export function serverAddress(text, allowsPlainHTTP = false) {
  let url;
  try { url = new URL(text); } catch { /* below */ }
  const isPlain = url && !(url.username || url.password || url.search || url.hash);
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw new UbiquityError('address', `"${text}" is not a server address; an address is such as `
      + 'https://ubiquity.example or http://127.0.0.1:7717');
  }
  if (url.protocol === 'http:' && !isLoopback(url.href) && !allowsPlainHTTP) {
    throw new UbiquityError('address',
      `${text} is plain HTTP: anybody on the network could read the credential; use https`);
  }
  return url.href.replace(/\/+$/, '');
}

/** Statuses that mean the same from the server and from something in front of it. */
const isFromAnybody = (status) => [408, 413, 429].includes(status) || status >= 500;

/** The meaning of statuses without a code, and the pause if the server asks for none. */
const meanings = {
  400: ['refused'], 401: ['unauthorized'], 403: ['refused'], 404: ['refused'], 408: ['timedOut'],
  409: ['refused'], 413: ['tooLarge'], 415: ['refused'], 422: ['refused'],
  429: ['busy', 1_000], 503: ['busy', 5_000], 504: ['timedOut'], 507: ['busy', 5_000],
};

/** The failure that an answer is. @param {{get(name: string): string | null}} headers @returns {Failure} */
function failureOf(status, headers, problem, server) {
  const code = typeof problem?.code === 'string' ? problem.code : undefined;
  const detail = problem?.detail ? sentence(problem.detail) : `${server} answered ${status}`;
  const seconds = Number(headers.get('retry-after') ?? NaN);
  const wait = seconds >= 0 ? Math.min(seconds, 3_600) * 1_000 : undefined;
  const as = (kind, pause = undefined) => ({ kind, code, detail, wait: wait ?? pause });
  if (code === 'too-many') return as('refused');
  const isOfServer = String(problem?.type ?? '').startsWith('urn:ubiquity:problem:');
  // Browsers do not show the status of a redirect.
  if (!isOfServer && (status === 0 || (status >= 300 && status < 400))) {
    return { kind: 'unreachable', detail: `${server} redirects requests to another address, which no credential `
      + 'follows; sign in with that address' };
  }
  if (!isOfServer && !isFromAnybody(status)) {
    return { kind: 'unreachable',
      detail: `something other than the Ubiquity server answered at ${server} (${status})` };
  }
  const [kind, pause] = meanings[status] ?? ['unreachable'];
  return as(kind, pause);
}

/**
 * @param {Server} server
 * @param {string[]} segments
 * @param {{method?: string, body?: any, query?: Record<string, string | number | undefined>,
 *     signal?: AbortSignal}} [options]
 * @returns {Promise<any>} The answer's JSON. @throws {RequestError}
 */
export async function request({ server, credential }, segments, options = {}) {
  const { method = 'GET', body, query = {}, signal } = options;
  const fields = Object.entries(query).filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(/** @type {any} */ (value))}`);
  const path = segments.map(encodeURIComponent).join('/');
  const url = `${server}/v1/${path}${fields.length ? `?${fields.join('&')}` : ''}`;
  const controller = new AbortController();
  const abort = () => controller.abort();
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort);
  const watch = watchSilence(abort, () => silenceMilliseconds, totalMilliseconds);
  try {
    const response = await fetch(url, {
      method, signal: controller.signal, redirect: 'manual', credentials: 'omit', cache: 'no-store',
      headers: {
        Accept: 'application/json',
        ...(credential ? { Authorization: `Bearer ${credential}` } : {}),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...userAgent,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    watch.moved();
    if (response.ok) return await json(response, watch.moved);
    const problem = await json(response, watch.moved, 2 ** 16).catch(() => null);
    throw new RequestError(failureOf(response.status, response.headers, problem, server));
  } catch (error) {
    throw error instanceof RequestError ? error : new RequestError(unanswered(error, watch.isSilent, server, credential));
  } finally {
    watch.stop();
    signal?.removeEventListener('abort', abort);
    // What was not read is not wanted.
    abort();
  }
}

/** The failure of a request that got no answer, or one that cannot be read. */
export function unanswered(error, isSilent, server, credential = '') {
  if (isSilent) return failure('timedOut', `the server at ${server} does not answer`);
  if (error instanceof WireError || error instanceof SyntaxError) {
    return failure('unreachable', `the answer from ${server} cannot be read: ${error.message}`);
  }
  const said = String(error?.cause?.code || reasonOf(error));
  const reason = credential && said.includes(credential) ? 'the credential is none' : said;
  const words = { ECONNREFUSED: 'the connection was refused', ENOTFOUND: 'its name is not known',
    UND_ERR_SOCKET: 'the connection broke', ECONNRESET: 'the connection broke' }[reason];
  return failure('unreachable', `no server answers at ${server} (${words ?? sentence(reason)})`);
}

/** The pieces of an answer as they come. Not every browser iterates over streams. */
export async function* piecesOf(response, moved) {
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

async function* textOf(response, moved) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const piece of piecesOf(response, moved)) yield decoder.decode(piece, { stream: true });
}

/**
 * For each piece of an event stream, the events that it completes, as [name, data], and whether it ends within
 * another one.
 */
export function eventsOf(response, moved) {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    throw new WireError('it is not a stream of events');
  }
  return eventsIn(textOf(response, moved));
}

async function* eventsIn(pieces) {
  /** @type {[string, string, string[], number]} A line that is not complete, and the event so far. */
  let [rest, name, data, size] = ['', '', [], 0];
  for await (const more of pieces) {
    /** @type {[string, string][]} */
    const events = [];
    size += more.length;
    const lines = more.split('\n');
    lines[0] = rest + lines[0];
    rest = lines.pop();
    for (const line of lines.map((one) => one.replace(/\r$/, ''))) {
      if (line.startsWith('event:')) name = line.slice(6).trim();
      else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
      if (line !== '') continue;
      if (name) events.push([name, data.join('\n')]);
      [name, data, size] = ['', [], 0];
    }
    yield { events, isPartial: rest !== '' || name !== '' || data.length > 0 };
    if (size > bytesMax) throw new WireError('an event is too large');
  }
}

async function json(response, moved, max = bytesMax) {
  if (!response.body || response.status === 204) return null;
  let text = '';
  for await (const more of textOf(response, moved)) {
    text += more;
    if (text.length > max) throw new WireError('it is too large');
  }
  return parse(text);
}

/** Parses JSON whose objects have a bound too: one of two bytes takes a hundred. */
function parse(text) {
  let elements = 0;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit === 0x2c || unit === 0x5b || unit === 0x7b) elements += 1;
  }
  if (elements > elementsMax) throw new WireError('it has too many elements');
  return JSON.parse(text);
}
