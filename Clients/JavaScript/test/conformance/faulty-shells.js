// SPDX-License-Identifier: Apache-2.0

/**
 * Shells with a fault each, which `ubiquity-conformance` must find.
 *
 * @type {Record<string, typeof Process>}
 */

import { Process } from './device.js';

export const faultyShells = {
  /** A save is said to be on the disk, and is not. */
  'not-saved': class extends Process {
    keep() {
      this.saving = { expects: this.saving.expects, entries: [] };
      return super.keep();
    }
  },

  /** Of a save, only the first half is on the disk. */
  'torn-save': class extends Process {
    keep() {
      const { entries } = this.saving;
      this.saving.entries = entries.slice(0, Math.ceil(entries.length / 2));
      return super.keep();
    }
  },

  /** A save goes to the disk without what is not a key: the cursor stays behind. */
  'entries-alone': class extends Process {
    keep() {
      if (this.disk.meta) delete this.saving.meta;
      return super.keep();
    }
  },

  /** A save goes to the disk without the keys. */
  'meta-alone': class extends Process {
    keep() {
      if (this.saving.meta) this.saving.entries = [];
      return super.keep();
    }
  },

  /** What was deleted stays on the disk. */
  'rows-stay': class extends Process {
    keep() {
      this.saving.entries = this.saving.entries.filter(({ entry }) => entry);
      return super.keep();
    }
  },

  /** A failed save is said to be on the disk. */
  'failure-unsaid': class extends Process {
    notSaved() {
      this.saving = null;
      this.handle({ do: 'saved', version: this.disk.version + 1 });
    }
  },

  /** A save goes to the disk again, after the next one. */
  'saved-twice': class extends Process {
    keep() {
      const last = this.last;
      this.last = this.saving;
      const isKept = super.keep();
      if (last) this.disk.save({ ...last, expects: this.disk.version });
      return isKept;
    }
  },

  /** A process starts with nothing, whatever is on the disk. */
  'empty-start': class extends Process {
    handle(event) {
      super.handle(event.do === 'start' ? { ...event, content: { version: this.disk.version } } : event);
    }
  },

  /** All processes have the same seed. */
  'one-seed': class extends Process {
    handle(event) { super.handle(event.do === 'start' ? { ...event, seed: '1' } : event); }
  },

  /** A save does not look at what the disk has. */
  'version-ignored': class extends Process {
    keep() {
      this.saving.expects = this.disk.version;
      return super.keep();
    }
  },

  /** A save after another process's is said to be on the disk. */
  'conflict-unsaid': class extends Process {
    saved() {
      this.keep();
      delete this.said.conflict;
      this.handle({ do: 'saved', version: this.disk.version });
    }
  },

  /** After another process's save, the version is told, and not what is new. */
  'conflict-empty': class extends Process {
    handle(event) {
      super.handle(event.do === 'conflict' ? { ...event, content: { ...event.content, entries: [] } } : event);
    }
  },

  /** What other processes saved is read without what is not a key. */
  'meta-unread': class extends Process {
    handle(event) {
      super.handle(event.do === 'read' && event.content
        ? { ...event, content: { ...event.content, meta: undefined } } : event);
    }
  },

  /** What was saved last comes with the hint, and is taken for all that is new. */
  'hint-as-truth': class extends Process {
    keep() {
      const { entries } = this.saving;
      const isKept = super.keep();
      if (isKept) Object.assign(this.disk, { hint: entries });
      return isKept;
    }

    handle(event) {
      super.handle(event.do === 'read' && event.content
        ? { ...event, content: { ...event.content, entries: this.disk.hint } } : event);
    }
  },

  /** Nobody looks when another process has saved. */
  'hint-ignored': class extends Process {
    fileChanged() { this.wake(); }
  },

  /** A read begins after the version that comes next. */
  'read-behind': class extends Process {
    perform(step) { super.perform(step.do === 'read' ? { ...step, after: step.after + 1 } : step); }
  },

  /** The row of a removed entry goes, and other processes never hear of it. */
  'row-removed': class extends Process {
    keep() {
      const empty = this.saving.entries.filter(({ entry }) => !entry);
      const isKept = super.keep();
      if (isKept) for (const { key } of empty) this.disk.rows.delete(`${key}`);
      return isKept;
    }
  },

  /** A disk that once could not be read stays closed. */
  'closed-for-ever': class extends Process {
    start(command) {
      this.isClosed = false;
      super.start(command);
    }

    notRead() {
      this.isClosed = true;
      super.notRead();
    }

    read() {
      if (this.isClosed) super.notRead();
      else super.read();
    }
  },

  /** A process that ends by force keeps the lease. */
  'lease-kept': class extends Process {
    kill(command) {
      if (this.isLeading) Object.assign(this.disk, { isLeased: true });
      super.kill(command);
    }

    leading(command) {
      if (this.disk.isLeased) return;
      this.isLeading = command.isLeading;
      super.leading(command);
    }
  },

  /** Every process believes to have the lease. */
  'lease-claimed': class extends Process {
    start(command) {
      super.start(command);
      this.leading({ isLeading: true });
    }
  },

  /** A process that lost the lease goes on. */
  'lease-not-lost': class extends Process {
    leading(command) { if (command.isLeading) super.leading(command); }
  },

  /** A request of which nothing is heard any more is not given up. */
  'failure-unheard': class extends Process {
    fail() { this.wake(); }
  },

  /** The end of a stream is not told. */
  'end-unsaid': class extends Process {
    end() { this.wake(); }
  },

  /** A stream that is not wanted any more goes on. */
  'cancel-ignored': class extends Process {
    perform(step) { if (step.do !== 'cancel') super.perform(step); }
  },

  /** A round trip's end is not told. */
  'trip-unended': class extends Process {
    perform(step) { if (step.do !== 'synced') super.perform(step); }
  },

  /** The clock that nobody sets is the one that is set. */
  'clocks-confused': class extends Process {
    take(command) { return super.take({ ...command, uptime: command.wall }); }
  },

  /** The app's own rule is asked, and the first value is taken. */
  'rule-ignored': class extends Process {
    perform(step) {
      super.perform(step.do === 'decide' ? { ...step, values: step.values.slice(0, 1) } : step);
    }
  },

  /** The app's own rule is not asked. */
  'rule-unasked': class extends Process {
    perform(step) { if (step.do !== 'decide') super.perform(step); }
  },

  /** A process does not hear that the device has got the keys of its account. */
  'keys-unheard': class extends Process {
    unlock() {}
  },
};
