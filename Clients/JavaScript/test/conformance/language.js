// SPDX-License-Identifier: Apache-2.0

/** How each client of `ubiquity-conformance` is asked and answers, see Protocol/conformance.md. */

import { readSync, writeSync } from 'node:fs';

/**
 * The class that the command line asks for: the sound one, or by its name one with a fault. Lists the names for
 * `--list-faults`, and ends.
 */
export function chosen(sound, faulty) {
  const faults = Object.keys(faulty);
  const fault = process.argv[2];
  if (fault === '--list-faults') {
    process.stdout.write(`${faults.join('\n')}\n`);
    process.exit();
  }
  if (!fault) return sound;
  if (!faulty[fault]) throw new Error(`no fault is named "${fault}"; there are ${faults.join(', ')}`);
  return faulty[fault];
}

/**
 * Answers each line of the input.
 *
 * @param {(begun: {processes: number}) => {take(command: object): Promise<object>, remove(): Promise<void>}} newDevice
 * @param {{processes?: number}} begun The answer to `begin`.
 */
export async function serve(newDevice, begun = {}) {
  const devices = new Map();
  let world = { processes: 1 };

  async function removeDevices() {
    for (const device of devices.values()) await device.remove();
    devices.clear();
  }

  async function answer(command) {
    if (command.do === 'begin') {
      await removeDevices();
      world = command;
      return begun;
    }
    if (!devices.has(command.device)) devices.set(command.device, newDevice(world));
    return devices.get(command.device).take(command);
  }

  const piece = Buffer.alloc(1 << 16);
  let pieces = [];
  for (let count = readSync(0, piece); count > 0; count = readSync(0, piece)) {
    pieces.push(Buffer.from(piece.subarray(0, count)));
    if (piece[count - 1] !== 0x0a) continue;
    const line = Buffer.concat(pieces).toString();
    pieces = [];
    const said = Buffer.from(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
    for (let sent = 0; sent < said.length;) sent += writeSync(1, said, sent);
  }
  await removeDevices();
}
