// SPDX-License-Identifier: Apache-2.0

/** A server in memory that decides as docs/PROTOCOL.md says, except for folded counts and history. */

import {
  checkedRow, checkedStamp, deviceOf, idOf, isCount, later, milliseconds, timeOf, wins,
  wireRow, zero,
} from '../src/records.js';
import { Usage, checkLimits, defaultLimits } from '../src/rules.js';
import { UbiquityError, WireError, checkedList } from '../src/values.js';

const everyone = 'nobody';
const problem = (status, code, more = {}) => ({ status, json: { status, code, detail: code, ...more } });

export class ModelServer {
  /** @param {{now: () => number}} options */
  constructor({ now }) {
    this.now = now;
    this.limits = { ...defaultLimits };
    this.state = {
      records: new Map(), revisions: new Map(), revision: 0, spans: [],
      compacted: 0, newestCompacted: zero, accepted: new Map(), usage: new Usage(),
    };
    this.run = 1;
    /** Called with the `Changes` of each commit. */
    this.listeners = new Set();
    /** What each device has said to have saved. */
    this.saved = new Map();
  }

  get records() { return this.state.records; }

  get epoch() { return String(this.run).padStart(16, '0'); }

  get cursor() {
    const span = this.state.spans.at(-1);
    return `${span?.epoch ?? '0'.repeat(16)}-${this.state.revision}`;
  }

  get config() {
    const limits = Object.fromEntries(
      Object.entries(this.limits).map(([name, number]) => [name, String(number)]));
    return {
      serverMilliseconds: String(this.now()), limits,
      allowance: { burst: '600', perSecond: 20 }, keepAliveSeconds: '20',
    };
  }

  /** A copy of all data, for `restore`. */
  backup() {
    const { state } = this;
    return { ...state, records: new Map(state.records), revisions: new Map(state.revisions),
      spans: [...state.spans], accepted: new Map(state.accepted), usage: state.usage.copy() };
  }

  restore(backup) {
    this.state = backup;
    this.run += 1;
  }

  push(body, device) {
    let transactions;
    try {
      const json = typeof body === 'string' ? JSON.parse(body) : body;
      transactions = checkedList(json, 'transactions').map((one) => {
        const writes = checkedList(one, 'writes').map((write) => ({
          row: checkedRow({ ...write, device: write.device ?? device }),
          had: write.had ? checkedStamp({ device, ...write.had }) : null,
        }));
        const ids = new Set(writes.map(({ row }) => idOf(row)));
        if (!writes.length || ids.size < writes.length) throw new WireError('writes');
        return writes;
      });
      if (json.saved) this.saved.set(device, json.saved);
    } catch (error) {
      return problem(400, 'malformed', { detail: error.message });
    }
    const latest = this.now() + 60_000;
    if (transactions.flat().some(({ row }) => milliseconds(row.stamp) > latest)) {
      return problem(409, 'clock-ahead', { serverMilliseconds: String(this.now()) });
    }
    const before = this.backup();
    const changed = new Map();
    const results = transactions.map((writes) => this.decide(writes, before, changed));
    const rows = [...changed.values()];
    if (rows.length) {
      this.state.revision += 1;
      if (this.state.spans.at(-1)?.epoch !== this.epoch) {
        this.state.spans.push({ first: this.state.revision, epoch: this.epoch });
      }
      for (const row of rows) this.state.revisions.set(idOf(row), this.state.revision);
      const changes = { records: rows.map((row) => wireRow(row, everyone)), cursor: this.cursor };
      for (const listener of this.listeners) listener(changes);
    }
    return {
      status: 200,
      json: { cursor: this.cursor, serverMilliseconds: String(this.now()), results },
    };
  }

  decide(writes, before, changed) {
    const mayContain = (stamp) => timeOf(stamp) <= (before.accepted.get(deviceOf(stamp)) ?? zero);
    const bringsBack = writes.some(({ row, had }) => !this.records.has(idOf(row)) && row.value
      && !isCount(row) && timeOf(row.stamp) <= before.newestCompacted
      && (mayContain(row.stamp) || (had && mayContain(had))));
    if (bringsBack) return { refused: { code: 'older-than-forgotten', detail: 'deleted since' } };
    const usage = this.state.usage.copy();
    const taken = [];
    const answers = writes.map(({ row }) => {
      const old = this.records.get(idOf(row));
      if (old && JSON.stringify(old) !== JSON.stringify(row) && !wins(row, old)) {
        return { superseded: wireRow(old, everyone) };
      }
      if (!old && !row.value && timeOf(row.stamp) <= before.newestCompacted) {
        return { olderThanForgotten: true };
      }
      if (!old || wins(row, old)) {
        usage.replace(old?.value ?? null, row.value, row.part);
        taken.push(row);
      }
      return { applied: true };
    });
    try {
      checkLimits(taken, this.state.usage, usage, this.limits);
    } catch (error) {
      if (!(error instanceof UbiquityError)) throw error;
      return { refused: { code: error.code, detail: error.message } };
    }
    this.state.usage = usage;
    for (const { row } of writes) {
      const device = deviceOf(row.stamp);
      const greatest = this.state.accepted.get(device) ?? zero;
      this.state.accepted.set(device, later(greatest, timeOf(row.stamp)));
    }
    for (const row of taken) {
      this.records.set(idOf(row), row);
      changed.set(idOf(row), row);
    }
    return { committed: { writes: answers } };
  }

  /** @param {string | null} since */
  changes(since) {
    let after = -1;
    if (since !== null) {
      const [epoch, number] = since.split('-');
      after = Number(number);
      const span = this.state.spans.findLast(({ first }) => first <= after);
      if (after > this.state.revision || (after > 0 && span?.epoch !== epoch)) {
        return problem(410, 'cursor-other-history');
      }
      if (after < this.state.compacted) return problem(410, 'cursor-forgotten');
    }
    const rows = [...this.records.values()].filter((row) => (since === null ? row.value
      : this.state.revisions.get(idOf(row)) > after));
    return {
      status: 200,
      json: {
        records: rows.map((row) => wireRow(row, everyone)), cursor: this.cursor,
        serverMilliseconds: String(this.now()), whole: since === null,
        horizonMilliseconds: String(this.horizon),
      },
    };
  }

  /** Up to when all deletions are forgotten. */
  get horizon() {
    const kept = [...this.records.values()].filter(({ value }) => !value)
      .map(({ stamp }) => milliseconds(stamp) - 1);
    return Math.max(0, Math.min(milliseconds(this.state.newestCompacted), ...kept));
  }

  /** Forgets all deletions. */
  compact() {
    for (const [id, row] of [...this.records]) {
      if (row.value) continue;
      this.records.delete(id);
      this.state.compacted = Math.max(this.state.compacted, this.state.revisions.get(id));
      this.state.newestCompacted = later(this.state.newestCompacted, timeOf(row.stamp));
    }
  }
}

