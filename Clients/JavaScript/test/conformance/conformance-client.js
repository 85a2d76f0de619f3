// SPDX-License-Identifier: Apache-2.0

/**
 * The engine in WebAssembly as a client of `ubiquity-conformance`: Protocol/conformance.md has the language,
 * most of whose words are the engine's own. With a name from `faulty-shells.js`, a shell with that fault, which
 * must be found.
 */

import { chosen, serve } from './language.js';
import { Device, Process } from './device.js';
import { faultyShells } from './faulty-shells.js';

const ProcessClass = chosen(Process, faultyShells);
await serve(({ processes }) => new Device(ProcessClass, processes > 1), { processes: 2 });
