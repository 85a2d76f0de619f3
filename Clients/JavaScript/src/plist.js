// SPDX-License-Identifier: Apache-2.0

/**
 * Property lists in the binary form ("bplist00"), which is what the engine speaks. A value is what an app reads
 * and writes, with all types apart: see values.js.
 */

import { Real, dateOf, isDictionary, isInteger, secondsOf } from './values.js';

const trailerBytes = 32;
const text = new TextDecoder();

/** @param {number} number @returns {number | Real} */
const realOf = (number) => (isInteger(number) ? new Real(number) : number);

// Reading

/** @param {Uint8Array} bytes Of the engine, or of a file of its own: they are trusted. */
export function decode(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length - trailerBytes;
  const [offsetBytes, referenceBytes] = [bytes[end + 6], bytes[end + 7]];
  const table = view.getUint32(end + 28);

  const number = (at, size) => {
    let sum = 0;
    for (let i = 0; i < size; i += 1) sum = sum * 256 + bytes[at + i];
    return sum;
  };

  const string = (start, count, isWide) => {
    if (!isWide && count > 64) return text.decode(bytes.subarray(start, start + count));
    let result = '';
    for (let i = 0; i < count; i += 1) {
      result += String.fromCharCode(isWide ? view.getUint16(start + 2 * i) : bytes[start + i]);
    }
    return result;
  };

  const integer = (at, size) => {
    if (size < 8) return number(at, size);
    const big = size === 8 ? view.getBigInt64(at) : view.getBigUint64(at + 8);
    const small = Number(big);
    return Number.isSafeInteger(small) ? small : big;
  };

  /** @param {number} object @returns {any} */
  const value = (object) => {
    const at = number(table + object * offsetBytes, offsetBytes);
    const marker = bytes[at];
    const kind = marker >> 4;
    if (kind === 0) return marker === 0x09;
    if (kind === 1) return integer(at + 1, 1 << (marker & 0xf));
    if (kind === 2) return realOf(view.getFloat64(at + 1));
    if (kind === 3) return dateOf(view.getFloat64(at + 1));
    let [count, start] = [marker & 0xf, at + 1];
    if (count === 0xf) {
      const size = 1 << (bytes[start] & 0xf);
      count = number(start + 1, size);
      start += 1 + size;
    }
    const child = (index) => value(number(start + index * referenceBytes, referenceBytes));
    switch (kind) {
      case 4: return bytes.slice(start, start + count);
      case 5: return string(start, count, false);
      case 6: return string(start, count, true);
      case 0xa: return Array.from({ length: count }, (_, index) => child(index));
      // Like JSON.parse, this makes `__proto__` an ordinary property too.
      default: return Object.fromEntries(
        Array.from({ length: count }, (_, index) => [child(index), child(count + index)]));
    }
  };
  return value(Number(view.getBigUint64(end + 16)));
}

// Writing

const bytesNeeded = (number) => (number < 2 ** 8 ? 1 : number < 2 ** 16 ? 2 : number < 2 ** 32 ? 4 : 8);

class Writer {
  bytes = new Uint8Array(1_024);
  view = new DataView(this.bytes.buffer);
  at = 0;

  room(count) {
    if (this.at + count <= this.bytes.length) return;
    const old = this.bytes;
    this.bytes = new Uint8Array(Math.max(2 * old.length, this.at + count));
    this.bytes.set(old);
    this.view = new DataView(this.bytes.buffer);
  }

  byte(byte) {
    this.room(1);
    this.bytes[this.at] = byte;
    this.at += 1;
  }

  number(number, size) {
    this.room(size);
    for (let i = size - 1, rest = number; i >= 0; i -= 1, rest = Math.floor(rest / 256)) {
      this.bytes[this.at + i] = rest % 256;
    }
    this.at += size;
  }

  real(marker, number) {
    this.byte(marker);
    this.room(8);
    this.view.setFloat64(this.at, number);
    this.at += 8;
  }

  integer(big) {
    if (big >= 0 && big <= Number.MAX_SAFE_INTEGER) {
      const size = bytesNeeded(Number(big));
      this.byte(0x10 | Math.log2(size));
      this.number(Number(big), size);
      return;
    }
    const isWide = BigInt(big) > 2n ** 63n - 1n;
    this.byte(isWide ? 0x14 : 0x13);
    if (isWide) this.number(0, 8);
    this.room(8);
    this.view.setBigInt64(this.at, BigInt.asIntN(64, BigInt(big)));
    this.at += 8;
  }

  marker(marker, count) {
    this.byte(marker | Math.min(count, 0xf));
    if (count >= 0xf) this.integer(count);
  }

  data(bytes) {
    this.marker(0x40, bytes.length);
    this.room(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  string(string) {
    const { length } = string;
    let isWide = false;
    for (let i = 0; i < length && !isWide; i += 1) isWide = string.charCodeAt(i) >= 0x80;
    this.marker(isWide ? 0x60 : 0x50, length);
    this.room(2 * length);
    for (let i = 0; i < length; i += 1) {
      if (isWide) this.view.setUint16(this.at + 2 * i, string.charCodeAt(i));
      else this.bytes[this.at + i] = string.charCodeAt(i);
    }
    this.at += isWide ? 2 * length : length;
  }
}

/** A container, whose parts are numbers of others. */
class Container {
  constructor(marker, count, parts) { Object.assign(this, { marker, count, parts }); }
}

/**
 * Writes a value, of the kinds that a store can hold. A missing property is left out.
 * @returns {Uint8Array} Until the next call.
 */
export function encode(root) {
  const objects = [];
  const add = (value) => {
    const index = objects.push(value) - 1;
    if (Array.isArray(value)) objects[index] = new Container(0xa0, value.length, value.map(add));
    else if (isDictionary(value)) {
      const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
      const keys = entries.map(([key]) => add(key));
      const parts = [...keys, ...entries.map(([, entry]) => add(entry))];
      objects[index] = new Container(0xd0, entries.length, parts);
    }
    return index;
  };
  add(root);
  const [out, offsets, referenceBytes] = [new Writer(), [], bytesNeeded(objects.length)];
  for (const byte of [0x62, 0x70, 0x6c, 0x69, 0x73, 0x74, 0x30, 0x30]) out.byte(byte);
  for (const object of objects) {
    offsets.push(out.at);
    write(out, object, referenceBytes);
  }
  const [table, offsetBytes] = [out.at, bytesNeeded(out.at)];
  for (const offset of offsets) out.number(offset, offsetBytes);
  out.number(0, 6);
  out.byte(offsetBytes);
  out.byte(referenceBytes);
  for (const number of [objects.length, 0, table]) out.number(number, 8);
  return out.bytes.subarray(0, out.at);
}

/** @param {Writer} out */
function write(out, object, referenceBytes) {
  switch (typeof object) {
    case 'string': return out.string(object);
    case 'boolean': return out.byte(object ? 0x09 : 0x08);
    case 'bigint': return out.integer(object);
    case 'number':
      return isInteger(object) ? out.integer(object) : out.real(0x23, object);
    default:
  }
  if (object instanceof Real) return out.real(0x23, object.value);
  if (object instanceof Date) return out.real(0x33, secondsOf(object));
  if (object instanceof Uint8Array) return out.data(object);
  out.marker(object.marker, object.count);
  for (const part of object.parts) out.number(part, referenceBytes);
  return undefined;
}
