// SPDX-License-Identifier: Apache-2.0

/** Accounts that a test seals, by what docs/PROTOCOL.md says of keys, with Node's own cryptography. */

import { createCipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

const number = (count, value) => {
  const bytes = Buffer.alloc(count);
  if (count === 8) bytes.writeBigUInt64BE(BigInt(value));
  else bytes.writeUInt32BE(value);
  return bytes;
};
const fields = (...values) => Buffer.concat(values.flatMap((value) => {
  const bytes = typeof value === 'number' ? number(8, value) : Buffer.from(value);
  return [number(4, bytes.length), bytes];
}));
const derived = (secret, info, count) => Buffer.from(hkdfSync('sha256', secret, '', info, count));
const proof = (key, generation) => derived(key, fields('ubiquity proof 1', generation), 32);
const mac = (key, ...bytes) => createHmac('sha256', key).update(Buffer.concat(bytes)).digest();

/** A secret as people type it. */
function typed(secret) {
  const bits = secret.length * 8;
  const value = BigInt(`0x${secret.toString('hex')}`) << BigInt((5 - (bits % 5)) % 5);
  const places = Array.from({ length: Math.ceil(bits / 5) }, (_, place) => Number((value >> BigInt(5 * place)) & 31n)).reverse();
  const check = places.reduce((sum, digit) => (sum * 37 + digit) % 1_048_573, 0);
  const all = [...places, ...[15, 10, 5, 0].map((shift) => (check >> shift) & 31)];
  return all.map((digit) => digits[digit]).join('').match(/.{1,4}/g).join('-');
}

/** A field of protobuf with fewer than 128 bytes. */
const field = (tag, bytes) => Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);

/** Seals a value in its canonical form under a secret. */
function sealed(secret, word, value) {
  const bytes = Buffer.concat([number(4, value.length), value]);
  const exponent = Math.floor(Math.log2(bytes.length));
  const step = 2 ** (exponent - Math.floor(Math.log2(exponent)) - 1);
  const text = Buffer.concat([bytes, Buffer.alloc(-bytes.length & (step - 1))]);
  const keys = derived(secret, fields(word), 64);
  const tag = mac(keys.subarray(0, 32), fields(word), text).subarray(0, 16);
  const cipher = createCipheriv('chacha20', mac(keys.subarray(32), tag), Buffer.alloc(16));
  return Buffer.concat([Buffer.from([1]), tag, cipher.update(text)]);
}

/**
 * Seals the account of a device with the first key, or with the one after those that are known.
 * @param {any} signedIn @param {Record<string, string>} [known] Its keys by the number of their generation, in base64.
 * @param {Record<string, string>} [wrapped] The older keys that the recovery key is said to open.
 * @returns {Promise<string>} The recovery key.
 */
export async function sealAccount({ server, credential }, known = {}, wrapped = known) {
  const [key, recoveryKey] = [randomBytes(32), randomBytes(20)];
  const present = Math.max(0, ...Object.keys(known).map(Number));
  const generation = present + 1;
  const keyring = field(0x4a, Buffer.concat(Object.entries({ ...wrapped, [generation]: key.toString('base64') }).map(([name, root]) =>
    field(0x0a, Buffer.concat([field(0x0a, Buffer.from(name)), field(0x12, field(0x0a, Buffer.from(root)))])))));
  const response = await fetch(`${server}/v1/sealing`, {
    method: 'PUT', headers: { Authorization: `Bearer ${credential}`, 'Content-Type': 'application/json',
      ...(present && { 'Ubiquity-Key-Proof': proof(Buffer.from(known[present], 'base64'), present).toString('base64') }) },
    body: JSON.stringify({ generation,
      check: createHash('sha256').update(proof(key, generation)).digest('base64'),
      recovery: sealed(recoveryKey, 'ubiquity recovery 1', keyring).toString('base64') }) });
  if (!response.ok) throw new Error(await response.text());
  return typed(recoveryKey);
}
