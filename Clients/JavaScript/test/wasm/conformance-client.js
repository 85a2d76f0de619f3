// SPDX-License-Identifier: Apache-2.0

/**
 * The engine in WebAssembly as a client of `ubiquity-conformance`: Protocol/conformance.md has the language,
 * most of whose words are the engine's own. With a name from `faulty-shells.js`, a shell with that fault, which
 * must be found.
 */

import { readSync, writeSync } from 'node:fs';
import { Device } from './device.js';
import { faultyShells } from './faulty-shells.js';

const faults = Object.keys(faultyShells);
const fault = process.argv[2];
if (fault === '--list-faults') {
  process.stdout.write(`${faults.join('\n')}\n`);
  process.exit();
}
const DeviceClass = fault ? faultyShells[fault] : Device;
if (!DeviceClass) throw new Error(`no fault is named "${fault}"; there are ${faults.join(', ')}`);

const devices = new Map();

function answer(command) {
  if (command.do === 'begin') {
    devices.clear();
    return {};
  }
  if (!devices.has(command.device)) devices.set(command.device, new DeviceClass());
  return devices.get(command.device).take(command);
}

const piece = Buffer.alloc(1 << 16);
let pieces = [];
for (let count = readSync(0, piece); count > 0; count = readSync(0, piece)) {
  pieces.push(Buffer.from(piece.subarray(0, count)));
  if (piece[count - 1] !== 0x0a) continue;
  const line = Buffer.concat(pieces).toString();
  pieces = [];
  const said = Buffer.from(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
  for (let sent = 0; sent < said.length;) sent += writeSync(1, said, sent);
}
