// SPDX-License-Identifier: Apache-2.0

/** A value: what a property list may contain. Reading returns fresh objects. */
export type Value = string | boolean | number | bigint | Real | Date | Uint8Array
  | readonly Value[] | { readonly [key: string]: Value };

/** A real number that is a whole one, such as 1.0. Calculates and prints like a number. */
export class Real {
  constructor(value: number);
  readonly value: number;
  valueOf(): number;
  toString(): string;
  toJSON(): number;
}

/** Makes a number a real even if it is a whole one. */
export function real(value: number): Real;

/** A date that a `Date`, which has milliseconds, cannot represent exactly. */
export class ExactDate extends Date {
  /** @param seconds Since 2001-01-01 00:00:00 UTC. */
  constructor(seconds: number);
  readonly seconds: number;
}

/** What this library reports: `code` for programs, `message` for people. */
export class UbiquityError extends Error {
  constructor(code: string, message: string);
  readonly code: string;
  /** The keys whose writes were refused. */
  keys: string[];
}

export type Policy = 'latest' | 'maximum' | 'minimum' | 'counter' | 'unionOfArrays'
  | 'unionOfDictionaries' | 'custom';

export interface Seen { value: Value; date: Date }

export type Reason = 'serverChange' | 'initialSyncChange' | 'quotaViolation' | 'accountChange';

/** A change from outside; the new values can be read. */
export interface ChangeEvent extends Event {
  readonly reason: Reason;
  readonly keys: string[];
}

export interface Change { reason: Reason | 'localChange'; keys: string[] }

export interface Status {
  connection: 'signedOut' | 'connecting' | 'connected' | 'polling' | 'waiting' | 'unauthorized';
  /** Why the store syncs, or does not, as a sentence. */
  explanation: string;
  account: string | null;
  lastError: string | null;
  /** Milliseconds since 1970. */
  nextRetry: number | null;
  /** Milliseconds since 1970, when device and server last agreed. */
  lastSync: number | null;
  pendingKeys: string[];
  isInitialSyncComplete: boolean;
  /** Why the disk refused the last save. */
  diskError: string | null;
  /** Whether this tab has the connection. */
  isLeader: boolean;
  usage: { bytes: number; keys: number };
  limits: {
    storeBytesMax: number; keysMax: number; valueBytesMax: number; keyBytesMax: number;
    keyUtf16Max: number; pushBytesMax: number;
  };
}

export interface RefusedWrite {
  key: string;
  /** Undefined for a removal. */
  value: Value | undefined;
  date: Date;
  code: string;
  reason: string;
}

export interface Version {
  value: Value | undefined;
  outcome: 'current' | 'replaced' | 'lost';
  revision: number;
  /** When it came to the server. */
  date: Date;
  /** When it was written. */
  written: Date;
  device: string;
  isThisDevice: boolean;
}

export interface Snapshot {
  values: Map<string, Value>;
  revision: number;
  /** Keys whose earlier value is not known: they changed too often since, or the history leaves them out. */
  forgottenKeys: string[];
}

export interface DeviceDescription {
  id: string;
  name: string;
  signedIn: Date | null;
  lastSeen: Date | null;
  expires: Date | null;
  stores: string[] | null;
  version: string;
  clockAheadMilliseconds: number | null;
  isThisDevice: boolean;
}

export interface Delivery {
  devices: (DeviceDescription & { hasStore: boolean; behind: number; isCurrent: boolean })[];
  /** Whether every device that uses the store has everything. */
  isComplete: boolean;
}

export interface Batch {
  get(key: string): Value | undefined;
  set(key: string, value: Value | null | undefined): void;
  remove(key: string): void;
}

export interface StoreOptions {
  /** Who wins when this device meets the account for the first time. */
  firstSync?: 'serverWins' | 'timestamps';
  /** Keys that the server's history must not keep. */
  historyExcluded?: Iterable<string>;
}

/** Made by `openStore`, or by a device. Reading is local, and writing never waits. */
export interface Store extends EventTarget {
  readonly identifier: string;
  readonly device: Device;
  readonly status: Status;
  get(key: string): Value | undefined;
  has(key: string): boolean;
  /** In the order of their Unicode scalars. */
  keys(): string[];
  /** The value in the protocol's form, which tells all types apart; null for none. */
  exact(key: string): { readonly [type: string]: unknown } | null;
  /** What a key counts towards `status.usage.bytes`; with a policy, all of its parts. */
  bytes(key: string): number;
  /** The last write of a key; its device is null if nobody was signed in. Null if none is known. */
  lastWrite(key: string): { deviceID: string | null; date: Date } | null;
  values(): Map<string, Value>;
  /** Null or undefined removes. @throws {UbiquityError} Nothing has changed then. */
  set(key: string, value: Value | null | undefined): void;
  remove(key: string): void;
  removeAll(): void;
  /** All or nothing, on all devices. */
  batch<Result>(body: (batch: Batch) => Result): Result;
  /** Adds to a number, also if others do at the same time. */
  increment(key: string, by?: number | bigint | Real): void;
  /** Declares how writes of a key merge, each time the app starts. */
  setConflictPolicy(key: string, policy: Exclude<Policy, 'custom'>): void;
  setConflictPolicy(
    key: string, policy: 'custom', resolve: (earlier: Seen, later: Seen) => Value): void;
  /** All changes from now on, by this app too. */
  changes(): AsyncIterableIterator<Change>;
  /** The current one, and each new one; a slow reader gets the newest. */
  valuesOf(key: string): AsyncIterableIterator<Value | undefined>;
  statuses(): AsyncIterableIterator<Status>;
  addEventListener(type: 'change', listener: (event: ChangeEvent) => void,
    options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: 'status', listener: (event: Event) => void,
    options?: boolean | AddEventListenerOptions): void;
  /** True if everything before is on disk. Never waits for the network. */
  synchronize(): Promise<boolean>;
  /** What was written before is at the server, and what it has is here. */
  synchronizeNow(): Promise<void>;
  /** Resolves when the first download has completed: then a key without a value has none. */
  initialSync(): Promise<void>;
  /** Writes that the server refused, the newest last. */
  refusedWrites(): RefusedWrite[];
  forgetRefusedWrites(): void;
  /** Which devices have the store's changes, or those of one key. */
  delivery(key?: string): Promise<Delivery>;
  /** What a key was, the newest first. */
  history(key: string, options?: { limit?: number }): Promise<Version[]>;
  /** The store as it was. */
  valuesAt(date: Date): Promise<Snapshot>;
  /** Gives keys the values that they had, as a transaction that can be undone too; undefined removes. */
  revert(values: Iterable<readonly [string, Value | null | undefined]>): void;
  close(): Promise<void>;
}

export interface SignInOptions {
  server: string;
  deviceName?: string;
  /** Sends the credential over plain HTTP to other machines too. */
  allowsPlainHTTP?: boolean;
}

export interface Account {
  id: string; name: string; server: string; deviceID: string; deviceName: string;
}

export interface Rights { stores?: string[]; validForSeconds?: number }

/** The sign-in that all stores of a home share. */
export interface Device {
  /** The account that this device is signed in to. */
  readonly account: Account | null;
  openStore(identifier: string, options?: StoreOptions): Promise<Store>;
  /** With a code, or with the token of an identity provider that the server trusts. */
  signIn(options: SignInOptions & ({ code: string } | { identityToken: string }
    /** With the code of an empty server's log, which makes its first account. */
    | { code: string; accountName: string }) & {
    /** Asked before the device takes the account; if not, the device is signed out again. */
    isWanted?: (accountName: string) => boolean | Promise<boolean>;
  }): Promise<Account>;
  /** Shows a code that a signed-in device approves; then `account()` resolves. */
  requestSignIn(options: SignInOptions & Rights): Promise<{
    userCode: string; link: string; expires: Date | null;
    account(options?: { signal?: AbortSignal }): Promise<Account>;
  }>;
  signOut(options?: { wipes?: boolean }): Promise<void>;
  /** Signs out, closes, and removes everything of this home, also of accounts from before. */
  erase(): Promise<void>;
  /** The account's stores. */
  stores(): Promise<{ identifier: string; keys: number; bytes: number }[]>;
  /** Which devices have the changes of a store, as the server knows it. */
  delivery(identifier: string): Promise<Delivery>;
  /** Makes a code that signs in another device, with at most the rights of this one. */
  pair(rights?: Rights): Promise<{
    code: string; server: string; link: string; expires: Date | null;
  }>;
  /** The device that shows a user code. It may be a stranger's: ask the person. */
  waitingDevice(userCode: string): Promise<{
    userCode: string; name: string; address: string; stores: string[];
    validForSeconds: number; expires: Date | null;
  }>;
  /** Lets a waiting device sign in, with the rights that it has here. */
  approve(device: { userCode: string } & Rights): Promise<void>;
  deny(device: { userCode: string }): Promise<void>;
  devices(): Promise<DeviceDescription[]>;
  renameDevice(id: string, name: string): Promise<DeviceDescription>;
  signOutDevice(id: string): Promise<void>;
  /** Ends everything under way, and lets another process open the home. */
  close(): Promise<void>;
}

/** @param options `home`: in Node a folder, which is required; in a browser a name. */
export function openDevice(options: { home: string }): Promise<Device>;
/** Opens a store with a device of its own, which is closed with it. */
export function openStore(
  options: { home: string; identifier: string } & StoreOptions): Promise<Store>;

export const version: string;
