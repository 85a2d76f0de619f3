// SPDX-License-Identifier: Apache-2.0

// The shapes inside the client, for the comments of its modules. Apps have index.d.ts.

/** A value in its canonical form. */
type Wire = Record<string, any>;

/** Why a request failed; `wait` in milliseconds, if the server asked for it. */
interface Failure {
  kind: 'unreachable' | 'timedOut' | 'unauthorized' | 'refused' | 'tooLarge' | 'busy';
  detail: string; code?: string; wait?: number;
}

/**
 * What was written and may be in no save, as an event of the engine: `number`, in the disk's log; or `tab`, the tab that
 * wrote it and is gone.
 */
interface Redo { do: string; entries: any[]; keys?: string[]; number?: number; tab?: string }

interface Server { server: string; credential?: string; allowsPlainHTTP?: boolean }

interface SignedIn extends Server {
  account: string; accountName: string; device: string; deviceName: string; credential: string;
}

/** What a device knows of the keys of an account. */
interface Known { keyring?: any; isSealed: boolean; hadSealed: boolean }

/** What a device needs of its platform: a disk, and other tabs of the same app. */
interface Folder {
  readAccount(): Promise<any>;
  /** Writes what becomes of the sign-in, in one transaction, and returns it. */
  changeAccount(change: (state: any) => any): Promise<any>;
  /** Removes the stores of folders that nobody has, as of the sign-in then. */
  removeUnowned(owned: (state: any) => Set<string>): Promise<void>;
  /** Asks that what is here is kept. */
  persist?(): void;
  isPersisted?: boolean | null;
  /** To the other tabs. */
  post(message: any): void;
  /** From the other tabs. Returns what ends that. */
  onMessage(receive: (message: any) => void): () => void;
  close(): Promise<void>;
  /** Removes everything, and closes. */
  erase(): Promise<void>;
  [more: string]: any;
}
