// SPDX-License-Identifier: Apache-2.0

/** Carries out the engine's requests: streams by the device's pool, and the others by `fetch`. */

import { Requests } from './requests.js';

export class Link {
  /** @type {Map<number, () => void>} The functions that hang up. */
  streams = new Map();

  /**
   * @param {(event: {do: string, [field: string]: any}) => void} report
   * @param {import('./pool.js').Pool} pool
   */
  constructor(report, pool) {
    this.report = report;
    this.pool = pool;
    this.requests = new Requests(report, pool.turns);
  }

  send(step) {
    const { id, stream } = step;
    if (!stream) {
      this.requests.send(step);
      return;
    }
    this.streams.set(id, this.pool.listen(step, (event) => {
      if (this.streams.has(id)) this.report({ ...event, request: id });
    }));
  }

  cancel(id) {
    this.streams.get(id)?.();
    this.streams.delete(id);
    this.requests.cancel(id);
  }

  /** The pool knows how long its streams may be silent. */
  setPatience(id, milliseconds) { this.requests.setPatience(id, milliseconds); }

  close() {
    for (const id of [...this.streams.keys()]) this.cancel(id);
    this.requests.close();
  }
}
