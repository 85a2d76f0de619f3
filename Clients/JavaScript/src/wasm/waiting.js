// SPDX-License-Identifier: Apache-2.0

/** Those who wait for a store. Whatever becomes of it, they are told. */

import { RequestError } from '../http.js';
import { failure } from '../messages.js';
import { UbiquityError } from '../values.js';

export const closed = () => new UbiquityError('closed', 'the store is closed');

export class Waiting {
  /** For round trips, by their number. */
  trips = new Map();
  tripsMade = 0;
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
      this.tripsMade += 1;
      this.trips.set(this.tripsMade, { resolve, reject });
      this.shell.report({ do: 'sync', id: this.tripsMade });
    });
  }

  endTrip({ id, error, refused = [] }) {
    const trip = this.trips.get(id);
    this.trips.delete(id);
    if (error === undefined) trip?.resolve();
    else trip?.reject(new RequestError({ ...failure('unreachable', error), keys: refused }));
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
    const { hasCompletedFirstSync } = this.shell.status;
    const account = device.state.signedIn?.account;
    this.firstSyncs = this.firstSyncs.filter((one) => {
      one.account ??= account;
      if (one.account !== account) {
        one.reject(new UbiquityError('unauthorized', 'this device is not signed in to that account any more'));
      } else if (hasCompletedFirstSync) one.resolve();
      return one.account === account && !hasCompletedFirstSync;
    });
  }

  /** A new engine has to be asked again. */
  askAgain() {
    for (const id of this.trips.keys()) this.shell.report({ do: 'sync', id });
    if (this.waiters.length) this.shell.report({ do: 'synchronize' });
  }

  /** Tells all that it is over. */
  fail(error) {
    for (const { reject } of [...this.trips.values(), ...this.firstSyncs.splice(0)]) reject(error);
    this.trips.clear();
    this.saved(false);
  }
}
