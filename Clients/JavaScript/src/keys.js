// SPDX-License-Identifier: Apache-2.0

/** How a device gets the keys of a sealed account. Codes and keys are the engine's to read and to make. */

import { Engine, clocks } from './engine.js';
import { RequestError } from './http.js';
import { UbiquityError } from './values.js';

/** How long a handover stays on the server, and how often a device that waits looks for it. */
const handoverMilliseconds = 900_000;
const pauseMilliseconds = 1_000;

/** Whether a code carries a secret, and belongs into no link, or is one: the engine refuses a secret alone. */
export const isKeyCode = (code) => /^\s*(ubiquity:|[0-9a-z]([^0-9a-z]*[0-9a-z]){29})/i.test(code ?? '');

async function sleep(milliseconds, signal) {
  await new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve(undefined);
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener('abort', end);
  });
  signal.throwIfAborted();
}

/**
 * Tries again and again what fails with one of these codes, or because the server is away or busy.
 * @param {() => Promise<any>} attempt @param {string} pending @param {number} pause In milliseconds, at least.
 * @param {number} end In milliseconds since 1970. @param {AbortSignal} signal
 */
export async function repeat(attempt, pending, pause, end, signal) {
  for (;;) {
    try { return await attempt(); } catch (error) {
      const why = error instanceof RequestError ? error.failure : null;
      const isPending = why?.code === pending || ['busy', 'unreachable', 'timedOut'].includes(why?.kind);
      if (!isPending || signal.aborted || Date.now() > end) throw error;
      await sleep(Math.max(pause, why.wait ?? 0), signal);
    }
  }
}

/** @param {Engine} engine */
function answerOf(engine, question) {
  const answer = engine.handle(question, clocks());
  if (answer.problem) throw new UbiquityError('code-invalid', answer.problem);
  return answer;
}

/** Asks an engine without a store. @param {() => Promise<WebAssembly.Module>} compile */
const ask = async (compile, question) => answerOf(new Engine(await compile()), question);

/** A code with a new secret, of a device that may use these stores only, if any. @param {import('./device.js').Device} device */
export const newCode = async ({ compile }, stores = []) => (await ask(compile, { do: 'code', stores })).code;

/** A code with another front and the secret of this one. */
export const withFront = (front, code) => `ubiquity:${front};${code.trim().split(';').at(-1)}`;

/** What a code would be without a secret. @param {import('./device.js').Device} device */
export const frontOf = async ({ compile }, code) => (await ask(compile, { do: 'code', code })).front;

const segments = (path) => path.split('/').slice(2);
const bytesOf = (json) => new TextEncoder().encode(JSON.stringify(json));
const sealing = '/v1/sealing';

/**
 * Gets the keys that a code opens, and the server's mark. What is returned joins them with those that the device has,
 * or refuses them. It does so at once, so that it can be part of a change of what is on the disk.
 * @param {import('./device.js').Device} device @param {SignedIn} signedIn @param {AbortSignal} signal
 * @returns {Promise<(keyring: any) => any>}
 */
export async function keysOf(device, code, signedIn, signal) {
  const named = { code, account: signedIn.account };
  const { path, isAwaited } = await ask(device.compile, { do: 'code', ...named });
  const get = (from) => device.askAs(signedIn, segments(from), { signal });
  // Another device has still to approve a code that this one shows.
  const end = isAwaited ? Date.now() + handoverMilliseconds : 0;
  const [answer, mark] = await repeat(async () => {
    const told = await get(path);
    // For a recovery key, it is the mark itself.
    const marked = path === sealing ? told : await get(sealing);
    if (Number(marked?.generation) > 0) await device.noteSealed(signedIn.account);
    return [bytesOf(told), bytesOf(marked)];
  }, 'not-found', pauseMilliseconds, end, signal);
  const engine = new Engine(await device.compile());
  return (keyring) => answerOf(engine, { do: 'unlock', ...named, answer, mark, keyring }).keyring;
}

/**
 * Gets what a device learns of the account that it signs in to. What is returned decides by what the device knew, at once:
 * `keyring` and `isSealed` are what it knows then; `doubt`, a sentence, is why a person has to be asked first.
 * @param {import('./device.js').Device} device @param {string} code Empty for one without a secret.
 * @param {SignedIn} signedIn @param {AbortSignal} signal
 * @returns {Promise<(known: Known) => {keyring?: any, isSealed: boolean, doubt?: string}>}
 */
export async function sealingOf(device, code, signedIn, signal) {
  const named = { code: code || undefined, account: signedIn.account };
  const get = (from) => device.askAs(signedIn, segments(from), { signal });
  let answer;
  if (code) {
    const { path } = await ask(device.compile, { do: 'code', ...named });
    // If the server keeps it to itself, for whatever reason, that is for the person to judge.
    answer = await get(path).then(bytesOf, () => undefined);
    signal.throwIfAborted();
  }
  const mark = bytesOf(await get(sealing));
  const engine = new Engine(await device.compile());
  return (known) => answerOf(engine, { do: 'signIn', ...named, answer, mark, ...known });
}

/**
 * Leaves what a device knows for the one that shows a code: keys for a locked one; for one that signs in, also that the
 * account is sealed, or that it is not, which nobody has to be told by a code that this device shows itself.
 * @param {import('./device.js').Device} device @param {string} code @param {SignedIn} signedIn @param {Known} known
 * @param {{stores?: string[], isOwn?: boolean}} options
 * @returns {Promise<boolean>} Whether the account is sealed.
 */
export async function handOver(device, code, signedIn, known, { stores = [], isOwn = false } = {}) {
  const mark = bytesOf(await device.askAs(signedIn, segments(sealing)));
  const { path, box, isSealed } = await ask(device.compile,
    { do: 'handOver', code, account: signedIn.account, stores, mark, ...known });
  if (isSealed) await device.noteSealed(signedIn.account);
  if (isSealed || !isOwn) await device.askAs(signedIn, segments(path), { method: 'PUT', body: { box } });
  return isSealed;
}
