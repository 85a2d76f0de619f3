// SPDX-License-Identifier: Apache-2.0

// The shapes inside the client, for the comments of its modules. Apps have index.d.ts.

/** A value in its canonical form. */
type Wire = Record<string, any>;

/** A record. `part` is empty for the key itself, and `value` null for a deletion. */
interface Row { key: string; part: string; value: Wire | null; stamp: string }

/**
 * Milliseconds by the clock that may be set, and by one that never is; and what the latter belongs to.
 * Readings of two boots cannot be compared by their uptimes.
 */
interface Reading { wall: number; uptime: number; boot: string }

/** The server's time at a reading, and by how much it may be wrong. */
interface Correction { reading: Reading; server: number; doubt: number }

/** When a write was made, and the greatest timestamp that its author had seen. */
interface Provisional { madeAt: Reading; seen: string }

/**
 * A write that waits for the server. Never changed in place. Writes of one transaction apply all or not at
 * all; `had` is the stamp of what it replaced, if the server may have had that.
 */
interface Pending { record: Row; transaction: string; provisional: Provisional | null; had: string | null }

/** What device and server last agreed on, and the write that hides it. */
interface Entry { key: string; part: string; confirmed: Row | null; pending: Pending | null }

/** A part with a value, or the key's own value. */
interface Part { part: string; value: Wire; stamp: string }

/** An app's own rule. */
type Resolver = (earlier: Part, later: Part) => Wire;

/** A write from the value that the app knew to the one that it wants; null for none. */
interface Operation { policy: string; old: Wire | null; value: Wire | null }

/** What an app wrote: values (null: a removal), and operations on keys with a policy. */
interface Intent { plain: [string, Wire | null][]; merging: [string, Operation][] }

interface Settings { firstSync?: 'serverWins' | 'timestamps'; unkept?: string[] }

type Limits = typeof import('./src/limits.js').defaultLimits;
type Config = ReturnType<typeof import('./src/rules.js').checkedConfig>;

interface Changes {
  records: Row[]; cursor: string; server: number; isWhole: boolean; horizon: string; config?: Config;
}

interface Refusal { code: string; detail: string }

/** Of each write, the store holds it, or nothing that it would delete, or a later one. */
interface PushAnswer { cursor: string; server: number; results: (('applied' | 'none' | Row)[] | Refusal)[] }

/** Why a request failed; `wait` in milliseconds, if the server asked for it. */
interface Failure {
  kind: 'unreachable' | 'timedOut' | 'unauthorized' | 'refused' | 'tooLarge' | 'cursorGone' | 'otherHistory'
    | 'clockAhead' | 'busy' | 'tooManyStreams';
  detail: string; code?: string; wait?: number; server?: number; keys?: string[];
}

/** The next attempt, and the earliest in a hurry. */
interface Retry { at: number; notBefore: number }

/**
 * `idle`, or a stream, `connecting` or `live`, with the number of a fetch, or a `Retry`: `waiting`.
 * `firstHeardAt`: its first byte. `isStale`: polls have overtaken it. `saved`: the cursor that it told.
 */
interface Link {
  kind: string; stream?: number; sentAt?: Reading; firstHeardAt?: Reading | null; isStale?: boolean;
  saved?: string | null; at?: number; notBefore?: number; wall?: number; isUnauthorized?: boolean;
}

/**
 * A write that the server has acknowledged, while the stream has not brought what it holds, with the server's
 * cursor at the answer, and the last fetch begun before it.
 */
interface Acknowledged { write: Row; transaction: string; held: Row; cursor: string; fetch: number }

/**
 * A request for a round trip: of each write before it the first push whose answer counts, the first fetch
 * that counts, and what was refused.
 */
interface SyncRequest {
  id: number; writes: Map<string, number>; fetch: number; refused: Set<string>; refusal: Refusal | null;
}

/** What an engine wants done. */
type Effect = { type: 'notify'; reason: string; keys: string[] }
  | { type: 'finishSync'; id: number; failure: Failure | null }
  | { type: 'save'; rows: Map<string, string | null> }
  | { type: 'listen'; stream: number; since: string | null; isSaved: boolean }
  | { type: 'hangUp'; stream: number }
  | { type: 'push'; number: number; body: any }
  | { type: 'pull'; number: number; since: string | null; isSaved: boolean; withConfig: boolean };

/** A write, with the store's revision and the time at which it came, and of its end. */
interface StoredVersion {
  record: Row; revision: number; came: number; outcome: 'current' | 'replaced' | 'lost'; ended: number;
  endedAt: number;
}

interface Server { server: string; credential?: string; allowsPlainHTTP?: boolean }

interface SignedIn extends Server {
  account: string; accountName: string; device: string; deviceName: string; credential: string;
}

/** Ends a request in which no byte moves for too long. */
interface Silence { moved(): void; patience: number }

/** What a device needs of its platform: a disk, and other tabs of the same app. */
interface Folder {
  readAccount(): Promise<any>;
  /** Writes what becomes of the sign-in, in one transaction, and returns it. */
  changeAccount(change: (state: any) => any): Promise<any>;
  /** Removes the stores of folders that nobody has, as of the sign-in then. */
  removeUnowned(owned: (state: any) => Set<string>): Promise<void>;
  /** Asks that what is here is kept. */
  persist?(): void;
  /** To the other tabs. */
  post(message: any): void;
  /** From the other tabs. Returns what ends that. */
  onMessage(receive: (message: any) => void): () => void;
  close(): Promise<void>;
  /** Removes everything, and closes. */
  erase(): Promise<void>;
  [more: string]: any;
}
