// SPDX-License-Identifier: Apache-2.0

// What the sources use of Node, whose types are no part of this package.
declare module 'node:crypto';
declare module 'node:events';
declare module 'node:fs/promises';
declare module 'node:net';
declare module 'node:path';
declare const process: any;
