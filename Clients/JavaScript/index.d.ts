// SPDX-License-Identifier: Apache-2.0

/**
 * A value: what a property list may contain. What is read is frozen, and the same object until it changes; a `Date` and
 * a `Uint8Array` cannot be frozen: copy them before you change them. The store's own value stays what it is.
 */
export type Value = string | boolean | number | bigint | Date | Uint8Array
  | readonly Value[] | { readonly [key: string]: Value };

/** What any store may hold. Give `openStore` a type of your own keys instead: `openStore<{ theme: string }>(…)`. */
export type AnyValues = Record<string, Value>;

type Leaf = string | boolean | number | bigint | Date | Uint8Array;

/** What is read where a value of this type was written. */
export type Read<T> = [Value] extends [T] ? Value : T extends Leaf | undefined ? T
  : T extends object ? { readonly [Name in keyof T]: Read<T[Name]> } : T;

/** What may be written where a value of this type is read: also what `real` makes, and an integer as a `bigint`. */
export type Written<T> = [Value] extends [T] ? WrittenValue : T extends number ? T | bigint | Real
  : T extends Leaf | undefined ? T : T extends object ? { readonly [Name in keyof T]: Written<T[Name]> } : T;
export type WrittenValue = Value | Real | readonly WrittenValue[] | { readonly [key: string]: WrittenValue };

/** The same type, if a store can hold it: an interface has no index for `WrittenValue`. */
export type Storable<T> = T extends Leaf | Real | undefined ? T
  : T extends ((...args: any) => any) | ReadonlyMap<any, any> | ReadonlySet<any> | RegExp | Promise<any> ? never
  : T extends object ? { [Name in keyof T]: Storable<T[Name]> } : never;

/** A number that is written as a real, even if it is a whole one. Reading gives a number. */
export class Real {
  constructor(value: number);
  readonly value: number;
  valueOf(): number;
  toString(): string;
  toJSON(): number;
}

/** Makes a number a real even if it is a whole one. The key then stays one of reals: see README.md. */
export function real(value: number): Real;

/** A date that a `Date`, which has milliseconds, cannot represent exactly. */
export class ExactDate extends Date {
  /** @param seconds Since 2001-01-01 00:00:00 UTC. */
  constructor(seconds: number);
  readonly seconds: number;
}

/**
 * All codes of this library, whose errors are all `UbiquityError`s. A server's answer has its own, which
 * docs/PROTOCOL.md lists, such as `code-invalid`.
 */
export type ErrorCode =
  /** A key that no store can have, or an identifier, a policy, an address or a batch that is none. */
  | 'key' | 'identifier' | 'policy' | 'address' | 'batch'
  /** A value that no store can hold; the message names the place. */
  | 'unsupported-value'
  /** It does not fit into the store, or into one transaction. */
  | 'key-too-long' | 'value-too-large' | 'quota-bytes' | 'quota-keys' | 'quota-parts' | 'push-bytes'
  /** The store is open already, or the home in another process. The store is closed. */
  | 'open' | 'closed'
  /** The disk, the browser's database, or the engine does not work; the message has the system's own words. */
  | 'storage' | 'engine'
  /** Nobody is signed in, or not any more. The person did not want to. */
  | 'unauthorized' | 'declined'
  /** The account is sealed, and this device does not have its key: `unlock`. A code that gives no keys. */
  | 'locked' | 'code-invalid'
  /** The account is not sealed, although this device has had a sealed one at its server. See `allowsUnsealed`. */
  | 'notSealed'
  /** There is no answer, or none in time. The process that has the connection does not respond. */
  | 'unreachable' | 'timedOut' | 'heldUp'
  /** The server does not do it, or not now. `refused`: also what this client does not do. */
  | 'refused' | 'tooLarge' | 'busy' | 'tooManyStreams' | 'clockAhead' | 'cursorGone';

/** What this library reports: `code` for programs, `message` for people. */
export class UbiquityError extends Error {
  constructor(code: string, message: string);
  readonly code: ErrorCode | (string & {});
  /** The keys whose writes were refused. */
  keys: string[];
}

export type Policy = 'latest' | 'maximum' | 'minimum' | 'counter' | 'unionOfArrays'
  | 'unionOfDictionaries' | 'custom';

export interface Seen<T = Value> { value: T; date: Date }

export type Reason = 'serverChange' | 'initialSyncChange' | 'quotaViolation' | 'accountChange';

/** A change from outside; the new values can be read. */
export interface ChangeEvent<Key extends string = string> extends Event {
  readonly reason: Reason;
  readonly keys: Key[];
}

/** An error that no call could report, of the disk mostly, or of the app's rule for a conflict. */
export interface ProblemEvent extends Event { readonly detail: string }

export interface StoreEvents<Key extends string = string> {
  change: ChangeEvent<Key>;
  status: Event;
  problem: ProblemEvent;
}

export interface Change<Key extends string = string> { reason: Reason | 'localChange'; keys: Key[] }

/** Whatever takes one ends when it is aborted. */
export interface Until { signal?: AbortSignal }

export interface Status {
  /** `locked`: the account is sealed, and this device does not have its key. Nothing is sent until `unlock`. */
  connection: 'signedOut' | 'connecting' | 'connected' | 'polling' | 'waiting' | 'unauthorized'
    | 'locked';
  /** Why the store syncs, or does not, as a sentence. */
  explanation: string;
  account: string | null;
  lastError: string | null;
  /** Milliseconds since 1970. */
  nextRetry: number | null;
  /** Milliseconds since 1970, when device and server last agreed. */
  lastSync: number | null;
  pendingKeys: string[];
  /**
   * The keys of which the server has something that this device does not take: a value that the account's key does not
   * open, a deletion that is dated in the future, or an older value than the device has agreed on. The device
   * keeps what it has; writing such a key, also with the same value, replaces what the server has. At most 1,000.
   */
  setAsideKeys: string[];
  isInitialSyncComplete: boolean;
  /** Why the disk refused the last save. */
  diskError: string | null;
  /**
   * Whether the browser keeps the values when it needs room: it is asked at a sign-in. If not, it may clear them one day.
   * Null where nobody says so, as in Node.
   */
  isPersisted: boolean | null;
  /** Whether this tab, or process, has the connection. */
  isLeader: boolean;
  /** The one that has it does not respond. */
  isHeldUp: boolean;
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

export interface Version<T = Value> {
  /** Undefined for a removal, and for a gap. */
  value: Read<T> | undefined;
  /** The value with all types apart: see `exact`. */
  exact: ExactValue | null;
  /**
   * What waits, and what was refused, only this device has. A gap is not a version: the values from then until the
   * next version are not in the history any more.
   */
  outcome: 'waiting' | 'current' | 'replaced' | 'lost' | 'refused' | 'gap';
  /** Why it was refused. */
  reason: string | null;
  /** Null if it did not come to the server, or if that is not known. */
  revision: number | null;
  /** When it came to the server; if that is not known, when it was written. */
  date: Date;
  /** When it was written. */
  written: Date;
  /** The device's ID; empty if nobody was signed in. */
  device: string;
  isThisDevice: boolean;
}

/** A value in the protocol's form, which tells all types apart: `{ real: 5 }`, `{ integer: '5' }`. */
export type ExactValue = { readonly [type: string]: unknown };

export interface Snapshot<Schema extends object = AnyValues> {
  values: Map<KeyOf<Schema>, Read<Schema[KeyOf<Schema>]>>;
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

export type KeyOf<Schema> = keyof Schema & string;
type AnyKey<Schema> = string extends keyof Schema ? string : never;

export interface Batch<Schema extends object = AnyValues> {
  get<Key extends KeyOf<Schema>>(key: Key): Read<Schema[Key]> | undefined;
  set<Key extends KeyOf<Schema>>(key: Key, value: Written<Schema[Key]> | null | undefined): void;
  set<T>(key: AnyKey<Schema>, value: T & Storable<T>): void;
  remove(key: KeyOf<Schema>): void;
}

export interface StoreOptions {
  /** Who wins when this device meets the account for the first time. */
  firstSync?: 'serverWins' | 'timestamps';
  /** Keys that the server's history must not keep. */
  historyExcluded?: Iterable<string>;
}

/**
 * Made by `openStore`, or by a device. Reading is local, and writing never waits. What is said of `Value` holds
 * for whatever is read.
 */
export interface Store<Schema extends object = AnyValues> extends EventTarget {
  readonly identifier: string;
  readonly device: Device;
  readonly status: Status;
  get<Key extends KeyOf<Schema>>(key: Key): Read<Schema[Key]> | undefined;
  has(key: KeyOf<Schema>): boolean;
  /** In the order of their Unicode scalars. */
  keys(): KeyOf<Schema>[];
  /** The value with all types apart; null for none. */
  exact(key: KeyOf<Schema>): ExactValue | null;
  /** What a key counts towards `status.usage.bytes`; with a policy, all of its parts. */
  bytes(key: KeyOf<Schema>): number;
  /** The last write of a key; its device is null if nobody was signed in. Null if none is known. */
  lastWrite(key: KeyOf<Schema>): { deviceID: string | null; date: Date } | null;
  values(): Map<KeyOf<Schema>, Read<Schema[KeyOf<Schema>]>>;
  /** Null or undefined removes. @throws {UbiquityError} Nothing has changed then. */
  set<Key extends KeyOf<Schema>>(key: Key, value: Written<Schema[Key]> | null | undefined): void;
  set<T>(key: AnyKey<Schema>, value: T & Storable<T>): void;
  remove(key: KeyOf<Schema>): void;
  removeAll(): void;
  /** All or nothing, on all devices. */
  batch<Result>(body: (batch: Batch<Schema>) => Result): Result;
  /** Adds to a number, also if others do at the same time. */
  increment(key: KeyOf<Schema>, by?: number | bigint | Real): void;
  /** Declares how writes of a key merge, each time the app starts. */
  setConflictPolicy(key: KeyOf<Schema>, policy: Exclude<Policy, 'custom'>): void;
  setConflictPolicy<Key extends KeyOf<Schema>>(key: Key, policy: 'custom',
    resolve: (earlier: Seen<Read<Schema[Key]>>, later: Seen<Read<Schema[Key]>>) => Written<Schema[Key]>): void;
  /**
   * Calls back when the value has become another one, at once if this app has written it. Returns what ends that.
   * With `get`, it is what React's `useSyncExternalStore` wants.
   */
  subscribe<Key extends KeyOf<Schema>>(
    key: Key, callback: (value: Read<Schema[Key]> | undefined) => void, until?: Until): () => void;
  /** All changes from now on, by this app too. */
  changes(until?: Until): AsyncIterableIterator<Change<KeyOf<Schema>>>;
  /** The current one, and each new one; a slow reader gets the newest. */
  valuesOf<Key extends KeyOf<Schema>>(
    key: Key, until?: Until): AsyncIterableIterator<Read<Schema[Key]> | undefined>;
  statuses(until?: Until): AsyncIterableIterator<Status>;
  addEventListener<Type extends keyof StoreEvents>(type: Type,
    listener: ((event: StoreEvents<KeyOf<Schema>>[Type]) => void) | null,
    options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions): void;
  removeEventListener<Type extends keyof StoreEvents>(type: Type,
    listener: ((event: StoreEvents<KeyOf<Schema>>[Type]) => void) | null,
    options?: boolean | EventListenerOptions): void;
  removeEventListener(type: string, listener: EventListenerOrEventListenerObject | null,
    options?: boolean | EventListenerOptions): void;
  /** True if everything before is on disk. Never waits for the network. */
  synchronize(): Promise<boolean>;
  /** What was written before is at the server, and what it has is here. */
  synchronizeNow(): Promise<void>;
  /**
   * Resolves when the first download has completed: then a key without a value has none. Until somebody signs in, it
   * waits. @throws {UbiquityError} `unauthorized`, after a sign-out, or if the device was revoked before.
   */
  initialSync(): Promise<void>;
  /** Writes that the server refused, the newest first. Reads the disk, which keeps them for all tabs. */
  refusedWrites(): Promise<RefusedWrite[]>;
  forgetRefusedWrites(): Promise<void>;
  /** Which devices have the store's changes, or those of one key. */
  delivery(key?: KeyOf<Schema>): Promise<Delivery>;
  /** What a key was, the newest first. */
  history<Key extends KeyOf<Schema>>(key: Key, options?: { limit?: number }): Promise<Version<Schema[Key]>[]>;
  /** The store as it was. */
  valuesAt(date: Date): Promise<Snapshot<Schema>>;
  /**
   * Gives keys the values that they had, as a transaction that can be undone too; undefined removes. The values of a
   * snapshot, given as they are, keep all types; from a copy or a part, write a whole real with `real`.
   */
  revert(values: Iterable<readonly [KeyOf<Schema>, WrittenValue | null | undefined]>): void;
  /**
   * Saves, and ends everything. @throws {UbiquityError} `storage`, when it is closed, if something that was written is
   * not on the disk: `synchronize` asks before.
   */
  close(): Promise<void>;
}

export interface SignInOptions {
  server: string;
  deviceName?: string;
  /** Sends the credential over plain HTTP to other machines too. */
  allowsPlainHTTP?: boolean;
  /**
   * Whether to sign in to an account although only the server says that it is not sealed: it could be after values that it
   * can read. That matters where this device has had a sealed account, and where it has shown or read a code with a secret
   * that no device of the account has answered. A function is only asked then, with the reason, before the device takes the
   * account. If not, the device is signed out again, with `notSealed`.
   */
  allowsUnsealed?: boolean | ((reason: string) => boolean | Promise<boolean>);
}

export interface Account {
  id: string; name: string; server: string; deviceID: string; deviceName: string;
  /** Whether this device knows that the account is sealed, with its keys or without. */
  isSealed: boolean;
}

export interface Rights { stores?: string[]; validForSeconds?: number }

/** The sign-in that all stores of a home share. */
export interface Device {
  /** The account that this device is signed in to. */
  readonly account: Account | null;
  openStore<Schema extends object = AnyValues>(
    identifier: string, options?: StoreOptions): Promise<Store<Schema>>;
  /**
   * With a code, or with the token of an identity provider that the server trusts. A code that begins with
   * `ubiquity:` brings the keys of a sealed account too, if who has made it has them, and may have the server's address.
   */
  signIn(options: Omit<SignInOptions, 'server'> & ({ server: string; identityToken: string }
    /** `accountName`: with the code of an empty server's log, which makes its first account. */
    | { server?: string; code: string; accountName?: string }) & {
    /** Asked before the device takes the account; if not, the device is signed out again. */
    isWanted?: (accountName: string) => boolean | Promise<boolean>;
  }): Promise<Account>;
  /**
   * Asks for the approval of a signed-in device, which reads one of the three; then `account()` resolves. `code` begins
   * with `ubiquity:`, and has a secret: who approves it tells this device whether the account is sealed, and gives it the
   * keys. Show it on this device alone: it is no link. With `withSecret: false`, it is the link, and the server is believed
   * that the account is not sealed.
   */
  requestSignIn(options: SignInOptions & Rights & { withSecret?: boolean }): Promise<{
    userCode: string; link: string; code: string; expires: Date | null;
    account(options?: { signal?: AbortSignal }): Promise<Account>;
  }>;
  /** A code to show on a device that is locked, and to pass to `unlock`: a device with the keys approves it. Asks the server. */
  unlockCode(): Promise<string>;
  /**
   * Takes the keys of a sealed account: by a code of `unlockCode`, for whose approval it waits 15 minutes, or by the
   * recovery key. Stores that are open go on with them.
   * @throws {UbiquityError} `code-invalid` if there are no keys for the code, or they are not those of the account.
   */
  unlock(code: string, until?: Until & {
    /** Whether the keys stay on this device. If not, they are gone when all of its tabs, or the program, are closed. */
    isKept?: boolean;
  }): Promise<void>;
  /** Gives this device's keys to the one of this account that shows a code of `unlockCode`. */
  handOver(code: string): Promise<void>;
  signOut(options?: { wipes?: boolean }): Promise<void>;
  /** Signs out, closes, and removes everything of this home, also of accounts from before. */
  erase(): Promise<void>;
  /** The account's stores. `appName`: the name that the server's operator has given the app. */
  stores(): Promise<{ identifier: string; appName: string | null; keys: number; bytes: number }[]>;
  /** Which devices have the changes of a store, as the server knows it. */
  delivery(identifier: string): Promise<Delivery>;
  /**
   * Makes a code that signs in another device, with at most the rights of this one. `pin`: the digest of the key of a
   * server whose certificate the system does not trust; `link` has it. `wholeCode`: the link, or, of a sealed account, what
   * brings this device's keys with it, begins with `ubiquity:`, and is a secret; with the others, the new device is locked.
   */
  pair(rights?: Rights): Promise<{
    code: string; server: string; pin: string | null; link: string; wholeCode: string; expires: Date | null;
  }>;
  /** The device that shows a code, or the `userCode` alone. It may be a stranger's: ask the person. */
  waitingDevice(code: string): Promise<{
    userCode: string; code: string; name: string; address: string; stores: string[];
    validForSeconds: number; expires: Date | null;
  }>;
  /**
   * Lets a waiting device sign in, with the rights that it has here. If `code` begins with `ubiquity:`, and this device
   * has the keys of the account, it gives them those of its stores.
   */
  approve(device: { userCode: string; code?: string } & Rights): Promise<void>;
  deny(device: { userCode: string }): Promise<void>;
  devices(): Promise<DeviceDescription[]>;
  renameDevice(id: string, name: string): Promise<DeviceDescription>;
  signOutDevice(id: string): Promise<void>;
  /** Ends everything under way, and lets another process open the home. It fails as a store's `close` does. */
  close(): Promise<void>;
}

export interface HomeOptions {
  /**
   * In Node a folder, which is required, and counts from the current one when it is opened; in a browser a name,
   * `ubiquity` if there is none.
   */
  home?: string;
}

/**
 * Opens a device. Stores and codes that begin with `ubiquity:` need the engine: where it cannot be loaded, opening one, or
 * asking for an approval, fails, and may be tried again.
 */
export function openDevice(options?: HomeOptions): Promise<Device>;
/** Opens a store with a device of its own, which is closed with it. */
export function openStore<Schema extends object = AnyValues>(
  options: HomeOptions & { identifier: string } & StoreOptions): Promise<Store<Schema>>;

/**
 * Only of the browser's client: the stores with writes that no server has yet, as they are on the disk, with the
 * number of their keys. `isOwn`: of the account that is signed in.
 */
export function unsentStores(device: Device): Promise<{ identifier: string; keys: number; isOwn: boolean }[]>;

export const version: string;
