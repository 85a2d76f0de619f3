// SPDX-License-Identifier: Apache-2.0

/**
 * Shells with a fault each, which `ubiquity-conformance` must find.
 *
 * @type {Record<string, typeof Device>}
 */

import { Device } from './device.js';

export const faultyShells = {
  /** A save is said to be on the disk, and is not. */
  'not-saved': class extends Device {
    keep() {
      this.disk.keep(new Map([['version', String(this.disk.version + 1)]]));
      this.saving = null;
    }
  },

  /** Of a save, only the first half is on the disk. */
  'torn-save': class extends Device {
    keep() {
      const { entries } = this.saving;
      this.saving.entries = entries.slice(0, Math.ceil(entries.length / 2));
      super.keep();
    }
  },

  /** A save goes to the disk without what is not a key: the cursor stays behind. */
  'entries-alone': class extends Device {
    keep() {
      if (this.disk.rows.has('meta')) delete this.saving.meta;
      super.keep();
    }
  },

  /** A save goes to the disk without the keys. */
  'meta-alone': class extends Device {
    keep() {
      if (this.saving.meta) this.saving.entries = [];
      super.keep();
    }
  },

  /** What was deleted stays on the disk. */
  'rows-stay': class extends Device {
    keep() {
      this.saving.entries = this.saving.entries.filter(({ entry }) => entry);
      super.keep();
    }
  },

  /** A failed save is said to be on the disk. */
  'failure-unsaid': class extends Device {
    notSaved() {
      this.saving = null;
      this.handle({ do: 'saved', version: this.disk.version + 1 });
    }
  },

  /** A process starts with nothing, whatever is on the disk. */
  'empty-start': class extends Device {
    handle(event) { super.handle(event.do === 'start' ? { ...event, content: undefined } : event); }
  },

  /** All processes have the same seed. */
  'one-seed': class extends Device {
    handle(event) { super.handle(event.do === 'start' ? { ...event, seed: '1' } : event); }
  },

  /** A request of which nothing is heard any more is not given up. */
  'failure-unheard': class extends Device {
    fail() { this.wake(); }
  },

  /** The clock that nobody sets is the one that is set. */
  'clocks-confused': class extends Device {
    take(command) { return super.take({ ...command, uptime: command.wall }); }
  },

  /** The app's own rule is asked, and the first value is taken. */
  'rule-ignored': class extends Device {
    perform(step) {
      super.perform(step.do === 'decide' ? { ...step, values: step.values.slice(0, 1) } : step);
    }
  },
};
