// SPDX-License-Identifier: Apache-2.0

/** What a device's disk has of its sign-in. */

/**
 * Who is signed in, and the folder of each account that ever was. The first account takes over what was
 * written before it; another one never sees it.
 * `database`: in a browser, the name of the database, which is another one after everything was cleared.
 * `keyrings`: the keys of each account that is sealed, as the engine reads them.
 * `sealedAccounts`: the accounts that this device knows to be sealed, with their keys or without.
 * @typedef {{signedIn: SignedIn | null, folder: string, folders: Record<string, string>, database?: string,
 *     keyrings?: Record<string, any>, sealedAccounts?: string[]}} State
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
  return { ...state, signedIn: account, folder, folders: withEntry(state.folders, account.account, folder) };
}

/** Keeps that an account is sealed, whatever a server says later. @param {State} state @param {string} account @returns {State} */
export const withSealed = (state, account) =>
  ({ ...state, sealedAccounts: [...new Set([...state.sealedAccounts ?? [], account])] });

/** A person has said that the account's values may be sent in clear. @param {State} state @param {string} account @returns {State} */
export const inClear = (state, account) => ({ ...state,
  sealedAccounts: (state.sealedAccounts ?? []).filter((one) => one !== account),
  keyrings: Object.fromEntries(Object.entries(state.keyrings ?? {}).filter(([name]) => name !== account)) });

/** Like JSON.parse, this makes `__proto__` an ordinary property too. */
const withEntry = (entries, name, value) => Object.fromEntries([...Object.entries(entries ?? {}), [name, value]]);

/** The keys that the device has of an account. @param {State} state @param {{account: string}} signedIn */
export const keyringOf = ({ keyrings = {} }, { account }) =>
  (Object.hasOwn(keyrings, account) ? keyrings[account] : undefined);

/** @param {State} state @param {{account: string}} signedIn @returns {State} */
export const withKeys = (state, { account }, keyring) =>
  withSealed({ ...state, keyrings: withEntry(state.keyrings, account, keyring) }, account);

/** What a device knows of an account, for the engine. @param {State} state @param {string} account @returns {Known} */
export const knownOf = (state, account) => ({ keyring: keyringOf(state, { account }),
  isSealed: (state.sealedAccounts ?? []).includes(account), hadSealed: Boolean(state.sealedAccounts?.length) });

/** @param {State} state @returns {State} */
export function signedOut(state, wipes) {
  if (!wipes) return { ...state, signedIn: null };
  const folders = Object.fromEntries(Object.entries(state.folders).filter(([, folder]) => folder !== state.folder));
  const keyrings = Object.fromEntries(Object.entries(state.keyrings ?? {}).filter(([account]) => Object.hasOwn(folders, account)));
  const { keyrings: _, ...rest } = state;
  return { ...rest, signedIn: null, folder: newFolder(), folders, ...(Object.keys(keyrings).length ? { keyrings } : {}) };
}
