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
  /** For the disk. */
  waiters = [];
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
    if (this.refusal) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.waiters.push(resolve);
      this.shell.report({ do: 'synchronize' });
    });
  }

  saved(isSaved) { for (const resolve of this.waiters.splice(0)) resolve(isSaved); }

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
    const { engine, device } = this.shell;
    if (!this.firstSyncs.length || !engine) return;
    const { isInitialSyncComplete } = this.shell.status;
    const account = device.state.signedIn?.account;
    this.firstSyncs = this.firstSyncs.filter((one) => {
      one.account ??= account;
      if (one.account !== account) {
        one.reject(new UbiquityError('unauthorized', 'this device is not signed in to that account any more'));
      } else if (isInitialSyncComplete) one.resolve();
      return one.account === account && !isInitialSyncComplete;
    });
  }

  /** A new engine has to be asked again. */
  askAgain() {
    for (const id of this.trips.keys()) this.shell.report({ do: 'sync', id });
    for (const [id, { question }] of this.questions) this.shell.report({ do: 'ask', id, ...question });
    if (this.waiters.length) this.shell.report({ do: 'synchronize' });
  }

  /** Tells all that it is over. */
  fail(error) {
    const all = [...this.trips.values(), ...this.questions.values(), ...this.firstSyncs.splice(0)];
    for (const { reject } of all) reject(error);
    this.trips.clear();
    this.questions.clear();
    this.saved(false);
  }
}
