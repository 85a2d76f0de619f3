// SPDX-License-Identifier: Apache-2.0

/** What a device's disk has of its sign-in. */

/**
 * Who is signed in, and the folder of each account that ever was. The first account takes over what was
 * written before it; another one never sees it.
 * @typedef {{signedIn: SignedIn | null, folder: string, folders: Record<string, string>}} State
 * @returns {State}
 */
export const newState = () => ({ signedIn: null, folder: '1', folders: {} });

/** A name that no folder ever had: another tab may still write to one that was wiped. */
export const newFolder = () => crypto.randomUUID().replaceAll('-', '').slice(0, 16);

/** The folders that are somebody's. @param {State} state */
export const owned = (state) => new Set([state?.folder ?? '1', ...Object.values(state?.folders ?? {})]);

/** @param {State} state @param {SignedIn} account @returns {State} */
export function signedIn(state, account) {
  const isTaken = Object.values(state.folders).includes(state.folder);
  const known = Object.hasOwn(state.folders, account.account) ? state.folders[account.account] : null;
  const folder = known ?? (isTaken ? newFolder() : state.folder);
  return { signedIn: account, folder, folders: Object.fromEntries(
    [...Object.entries(state.folders), [account.account, folder]]) };
}

/** @param {State} state @returns {State} */
export function signedOut(state, wipes) {
  if (!wipes) return { ...state, signedIn: null };
  return { signedIn: null, folder: newFolder(),
    folders: Object.fromEntries(Object.entries(state.folders).filter(([, folder]) => folder !== state.folder)) };
}
