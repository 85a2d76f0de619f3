// SPDX-License-Identifier: Apache-2.0

/** Those who wait for a store. Whatever becomes of it, they are told. */

import { UbiquityError } from './values.js';

export const closed = () => new UbiquityError('closed', 'the store is closed');

export class Waiting {
  /** For round trips, by their number. */
  trips = new Map();
  /** For answers of the server, by the number of the question. */
  questions = new Map();
  numbersGiven = 0;
  /** For the disk: those of whom the engine is to hear, and those of whom it has heard. */
  waiters = [];
  told = [];
  /** For the values of an account. */
  firstSyncs = [];

  /** @param {import('./shell.js').Shell} shell */
  constructor(shell) { this.shell = shell; }

  /** Why nothing can be waited for. */
  get refusal() {
    const { isClosing, recovery } = this.shell;
    return isClosing ? closed() : recovery.isOver ? recovery.error : null;
  }

  /** @returns {Promise<boolean>} */
  synchronize() {
    return this.refusal ? Promise.resolve(false) : this.saving();
  }

  /** @returns {Promise<boolean>} */
  saving() {
    return new Promise((resolve) => {
      this.waiters.push(resolve);
      this.shell.report({ do: 'synchronize' });
    });
  }

  /** The engine is about to hear that somebody waits. */
  tell() { this.told.push(...this.waiters.splice(0)); }

  saved(isSaved) { for (const resolve of this.told.splice(0)) resolve(isSaved); }

  /** What was written is lost. */
  lost(error) {
    for (const { reject } of this.trips.values()) reject(error);
    this.trips.clear();
    this.tell();
    this.saved(false);
  }

  synchronizeNow() {
    return new Promise((resolve, reject) => {
      if (this.refusal) throw this.refusal;
      this.numbersGiven += 1;
      this.trips.set(this.numbersGiven, { resolve, reject });
      this.shell.report({ do: 'sync', id: this.numbersGiven });
    });
  }

  endTrip({ id, error, code, refused = [] }) {
    const trip = this.trips.get(id);
    this.trips.delete(id);
    if (error === undefined) trip?.resolve();
    else trip?.reject(Object.assign(new UbiquityError(code, error), { keys: refused }));
  }

  ask(question) {
    return new Promise((resolve, reject) => {
      if (this.refusal) throw this.refusal;
      this.numbersGiven += 1;
      this.questions.set(this.numbersGiven, { resolve, reject, question });
      this.shell.report({ do: 'ask', id: this.numbersGiven, ...question });
    });
  }

  answered({ id, error, code, ...answer }) {
    const asked = this.questions.get(id);
    this.questions.delete(id);
    if (error === undefined) asked?.resolve(answer);
    else asked?.reject(new UbiquityError(code, error));
  }

  initialSync() {
    return new Promise((resolve, reject) => {
      if (this.refusal) throw this.refusal;
      this.firstSyncs.push({ resolve, reject, account: undefined });
      this.lookForFirstSync();
    });
  }

  lookForFirstSync() {
    const status = this.firstSyncs.length ? this.shell.seen : null;
    if (!status) return;
    // What the engine follows, which may not be what the device is signed in to by now.
    const { accountID: account, connection, explanation, isInitialSyncComplete } = status;
    this.firstSyncs = this.firstSyncs.filter((one) => {
      one.account ??= account;
      const isComplete = account !== undefined && isInitialSyncComplete;
      if (one.account !== account) {
        one.reject(new UbiquityError('unauthorized', 'this device is not signed in to that account any more'));
      } else if (isComplete) one.resolve();
      else if (connection === 'unauthorized') one.reject(new UbiquityError('unauthorized', explanation));
      else return true;
      return false;
    });
  }

  /** A new engine has to be asked again. */
  askAgain() {
    for (const id of this.trips.keys()) this.shell.report({ do: 'sync', id });
    for (const [id, { question }] of this.questions) this.shell.report({ do: 'ask', id, ...question });
    this.waiters.unshift(...this.told.splice(0));
    if (this.waiters.length) this.shell.report({ do: 'synchronize' });
  }

  /** Tells all that it is over. */
  fail(error) {
    for (const { reject } of [...this.questions.values(), ...this.firstSyncs.splice(0)]) reject(error);
    this.questions.clear();
    this.lost(error);
  }
}
