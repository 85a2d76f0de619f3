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
    keep(how) {
      this.saving.step = { expects: this.saving.step.expects, entries: [] };
      return super.keep(how);
    }
  },

  /** Of a save, only the first half is on the disk. */
  'torn-save': class extends Process {
    keep(how) {
      const { step } = this.saving;
      step.entries = step.entries.slice(0, Math.ceil(step.entries.length / 2));
      return super.keep(how);
    }
  },

  /** A save goes to the disk without what is not a key: the cursor stays behind. */
  'entries-alone': class extends Process {
    keep(how) {
      if (this.saving.step.expects > 0) delete this.saving.step.meta;
      return super.keep(how);
    }
  },

  /** A save goes to the disk without the keys. */
  'meta-alone': class extends Process {
    keep(how) {
      if (this.saving.step.meta) this.saving.step.entries = [];
      return super.keep(how);
    }
  },

  /** What was deleted stays on the disk. */
  'rows-stay': class extends Process {
    keep(how) {
      const { step } = this.saving;
      step.entries = step.entries.filter(({ entry }) => entry);
      return super.keep(how);
    }
  },

  /** A failed save is said to be on the disk. */
  'failure-unsaid': class extends Process {
    notSaved() { return this.endSave(Promise.resolve({ version: this.saving.step.expects + 1 })); }
  },

  /** A save goes to the disk again, after the next one. */
  'saved-twice': class extends Process {
    async keep(how) {
      const { last } = this;
      this.last = this.saving.step;
      const result = await super.keep(how);
      if (last && result.version) await this.disk.save({ ...last, expects: result.version });
      return result;
    }
  },

  /** A process starts with nothing, whatever is on the disk. */
  'empty-start': class extends Process {
    hears(event) {
      return event.do === 'start' ? { ...event, content: { version: event.content.version } } : event;
    }
  },

  /** All processes have the same seed. */
  'one-seed': class extends Process {
    hears(event) { return event.do === 'start' ? { ...event, seed: '1' } : event; }
  },

  /** A save does not look at what the disk has. */
  'version-ignored': class extends Process {
    async keep(how) {
      this.saving.step.expects = (await this.disk.load()).version;
      return super.keep(how);
    }
  },

  /** A save after another process's is said to be on the disk. */
  'conflict-unsaid': class extends Process {
    async keep(how) {
      const result = await super.keep(how);
      delete this.said.conflict;
      return { version: result.version ?? result.content.version };
    }
  },

  /** After another process's save, the version is told, and not what is new. */
  'conflict-empty': class extends Process {
    hears(event) {
      return event.do === 'conflict' ? { ...event, content: { ...event.content, entries: [] } } : event;
    }
  },

  /** What other processes saved is read without what is not a key. */
  'meta-unread': class extends Process {
    hears(event) {
      return event.do === 'read' && event.content
        ? { ...event, content: { ...event.content, meta: undefined } } : event;
    }
  },

  /** What was saved last comes with the hint, and is taken for all that is new. */
  'hint-as-truth': class extends Process {
    async keep(how) {
      const { entries } = this.saving.step;
      const result = await super.keep(how);
      if (result.version) Object.assign(this.disk, { hint: entries });
      return result;
    }

    hears(event) {
      return event.do === 'read' && event.content
        ? { ...event, content: { ...event.content, entries: this.disk.hint } } : event;
    }
  },

  /** Nobody looks when another process has saved. */
  'hint-ignored': class extends Process {
    fileChanged() { this.wake(); }
  },

  /** A read begins after the version that comes next. */
  'read-behind': class extends Process {
    performs(step) {
      if (step.do === 'read') step.after += 1;
      return false;
    }
  },

  /** The row of a removed entry goes, and other processes never hear of it. */
  'row-removed': class extends Process {
    async keep(how) {
      const empty = this.saving.step.entries.filter(({ entry }) => !entry);
      const result = await super.keep(how);
      if (result.version) for (const { key } of empty) this.disk.rows.delete?.(`${key}`);
      return result;
    }
  },

  /** A disk that once could not be read stays closed. */
  'closed-for-ever': class extends Process {
    start(command) {
      this.isClosed = false;
      return super.start(command);
    }

    notRead() {
      this.isClosed = true;
      super.notRead();
    }

    read() { return this.isClosed ? super.notRead() : super.read(); }
  },

  /** A process that ends by force keeps the lease. */
  'lease-kept': class extends Process {
    kill(command) {
      if (this.isLeading) Object.assign(this.disk, { isLeased: true });
      return super.kill(command);
    }

    leading(command) {
      if (this.disk.isLeased) return;
      this.isLeading = command.isLeading;
      super.leading(command);
    }
  },

  /** Every process believes to have the lease. */
  'lease-claimed': class extends Process {
    async start(command) {
      await super.start(command);
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
    performs(step) { return step.do === 'cancel'; }
  },

  /** A round trip's end is not told. */
  'trip-unended': class extends Process {
    performs(step) { return step.do === 'synced'; }
  },

  /** The clock that nobody sets is the one that is set. */
  'clocks-confused': class extends Process {
    take(command) { return super.take({ ...command, uptime: command.wall }); }
  },

  /** The app's own rule is asked, and the first value is taken. */
  'rule-ignored': class extends Process {
    performs(step) {
      if (step.do === 'decide') step.values.splice(1);
      return false;
    }
  },

  /** The app's own rule is not asked. */
  'rule-unasked': class extends Process {
    performs(step) { return step.do === 'decide'; }
  },

  /** A process does not hear that the device has got the keys of its account. */
  'keys-unheard': class extends Process {
    unlock() {}
  },

  /** The app is shown what the disk's error says, which may be nothing, instead of the engine's words. */
  'reason-empty': class extends Process {
    get diskError() { return this.how === 'silent' && super.diskError ? '' : super.diskError; }

    notSaved(command) {
      this.how = command.how;
      return super.notSaved(command);
    }
  },

  /** An app that looks whether there is an error takes an empty one for none. */
  'reason-for-none': class extends Process {
    get diskError() { return this.how === 'silent' ? undefined : super.diskError; }

    notSaved(command) {
      this.how = command.how;
      return super.notSaved(command);
    }
  },

  /** Who asks whether everything is on the disk hears that it is, while it is still written. */
  'saved-in-haste': class extends Process {
    synchronize({ id }) { this.say('synchronized', { id, isSaved: true }); }
  },

  /** Who asks whether everything is on the disk is not answered. */
  'unanswered': class extends Process {
    performs(step) { return step.do === 'synchronized'; }
  },

  /** A disk that has failed is not tried again. */
  'failure-for-good': class extends Process {
    start(command) {
      this.error = null;
      return super.start(command);
    }

    keep(how) {
      return this.error ?? super.keep(how).catch((error) => {
        this.error = Promise.reject(error);
        return this.error;
      });
    }
  },

  /** A file that was replaced gets all that is saved from then on. */
  'replaced-unseen': class extends Process {
    async keep(how) {
      if (how !== 'replaced') return super.keep(how);
      this.found ??= await this.home.copy(this.disk);
      return super.keep();
    }

    async kill(command) {
      await super.kill(command);
      await this.found?.();
      this.found = null;
    }
  },
};
