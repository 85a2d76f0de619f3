// SPDX-License-Identifier: Apache-2.0

/**
 * Engines with a fault each, which `ubiquity-conformance` must find.
 *
 * @type {Record<string, typeof Engine>}
 */

import { Engine } from '../src/engine.js';
import { entryID } from '../src/records.js';

export const faultyEngines = {
  /** The clock is not corrected. */
  'wrong-clock': class extends Engine {
    measure(_server, sentAt, heardAt, now) { super.measure(heardAt.wall, heardAt, heardAt, now); }
  },

  /** Only a part of a transaction is sent. */
  'torn-transaction': class extends Engine {
    sendable() {
      const [one] = super.sendable();
      return one ? [{ ...one, writes: one.writes.slice(0, 1) }] : [];
    }
  },

  /** The outbox is forgotten before the answer. */
  'forgotten-outbox': class extends Engine {
    nextPush(now) {
      const push = super.nextPush(now);
      for (const { writes } of this.push && push ? this.push.transactions : []) {
        for (const { key, part } of writes) {
          this.entries.update(entryID(key, part), (entry) => {
            entry.confirmed = entry.pending?.record ?? entry.confirmed;
            entry.pending = null;
          });
        }
      }
      return push;
    }
  },

  /** What is here is kept although the whole store lacks it. */
  'stale-snapshot': class extends Engine {
    takeStore(records) {
      const kept = [...this.entries.all.values()].map(({ confirmed }) => confirmed)
        .filter((row) => row && !records.some(({ key, part }) =>
          key === row.key && part === row.part));
      super.takeStore([...records, ...kept]);
    }
  },

  /** Writes are sent before they are on disk. */
  'unsaved-write': class extends Engine {
    constructor(...options) {
      super(...options);
      this.entries.isSaved = () => true;
    }
  },

  /** The pause that a server asks for is not kept. */
  'impatient': class extends Engine {
    wait(_milliseconds, now) { super.wait(1, now, true); }
  },
};
