// SPDX-License-Identifier: Apache-2.0
//
// Written by scripts/embed-page. DO NOT EDIT.

/** The limits of a store, until its server has said its own. */
export const defaultLimits = {
  storeBytesMax: 1_048_576,
  keysMax: 1_024,
  valueBytesMax: 1_048_576,
  pushBytesMax: 8 << 20,
  keyBytesMax: 64,
  keyUtf16Max: 0,
};

/** The highest limits that are believed, whatever a server announces. */
export const ceiling = {
  storeBytesMax: 64 << 20,
  keysMax: 65_536,
  valueBytesMax: 64 << 20,
  pushBytesMax: 64 << 20,
  keyBytesMax: 1_024,
  keyUtf16Max: 1_024,
};

/** The rate of pushes, until the server has said its own. */
export const defaultAllowance = {
  burst: 600,
  perSecond: 20,
};

/** The bytes of a push that one token pays for. */
export const bytesPerToken = 8_192;

/** The most parts of all keys with a policy together. */
export const partsMax = 16_384;

/** The most tombstones that are kept, if the server does not say up to when it compacted its own. */
export const tombstonesMax = 4 * 16_384;

/** The most levels of a value: 511 containers in each other, and what the innermost contains. */
export const depthMax = 512;
