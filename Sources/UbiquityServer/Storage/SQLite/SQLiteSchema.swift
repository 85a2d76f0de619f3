// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// The tables of the database.
enum SQLiteSchema {
    /// "UbSv" in ASCII. Distinguishes a server's database from other programs'.
    static let applicationID: Int64 = 0x5562_5376

    /// The format that this program writes.
    static let version = migrations.count

    /// Makes the tables in an empty file, or brings those of an older format to the newest.
    /// - Parameter migrations: See ``migrations``.
    /// - Throws: ``ServerStartError`` if the file is another program's, or of a format that this
    ///   program does not know; it was not changed then.
    static func migrate(
        _ db: Database, path: String, migrations: [String] = migrations
    ) throws {
        let known = migrations.count
        guard try check(db, path: path, known: known) < known else { return }
        try db.inTransaction(.immediate) {
            // Another process may have been first.
            let found = try check(db, path: path, known: known)
            for migration in migrations[found...] { try db.execute(sql: migration) }
            try db.execute(
                sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = \(known)")
            return .commit
        }
    }

    /// - Parameter known: The newest format that can be read.
    /// - Returns: The file's format; 0 for an empty file.
    static func check(_ db: Database, path: String, known: Int = version) throws -> Int {
        let owner = try Int64.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        if owner == applicationID {
            guard (1...known).contains(found) else {
                throw ServerStartError.databaseNewer(path: path, version: found, known: known)
            }
            return found
        }
        let objects = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0
        guard owner == 0, found == 0, objects == 0 else {
            throw ServerStartError.databaseForeign(path: path)
        }
        return 0
    }

    /// SQLite's first finding about a damaged file; nil for a sound one. Reads the whole file.
    static func damage(_ db: Database) throws -> String? {
        let verdict = try String.fetchOne(db, sql: "PRAGMA quick_check(1)") ?? "ok"
        return verdict == "ok" ? nil : verdict
    }

    /// The changes from each format to the next. The first one makes a new file's tables; the next
    /// one is to be added here, and its test to `FormatTests`. A file that is not migrated yet is read
    /// by ``DataFolderInspection``, and a backup by ``BackupFile``.
    ///
    /// Times of people and machines are milliseconds since 1970 by the server's clock, except
    /// `record.time` and `folded.time`, hybrid timestamps, and `committed`, the server's running time,
    /// see `running`. Unsigned numbers are stored with the same bits. Keys, and names that people gave,
    /// are blobs, because SQLite ends a text at its first zero byte, which they may contain.
    ///
    /// A record without a value is a tombstone; values are messages of the protocol. `record.came` is
    /// when the record came, or null if it must not be kept. Under the empty key is a store's state,
    /// see ``SQLiteStore``, and `span` has its older spans. There is no index of revisions, which was
    /// another page to write for each push: changes after a revision are found among the store's
    /// records.
    ///
    /// `directory` is a ``Directory``, `account.limits` an ``AccountLimits``, and `account.sealing` the
    /// bytes of a ``SealingState``, whose end is in `account.reset_at`. A confinement is a list of
    /// identifiers, one per line.
    /// By how much a device's clock was ahead of the server's, when that was, and the version of its
    /// client library, are in `device`. So is the confined device that added it (`adder`), with which it
    /// ends.
    ///
    /// `code` and `sign_in_request` have what devices may grant: `credential_latest` is
    /// ``CredentialTerms/latestMilliseconds``, and `maker` the device that made the code or approved the
    /// request, or null for the operator. The terms of a request are those asked for until somebody
    /// approves it, and `account` is null until then.
    ///
    /// `handover` has the keys of accounts on their way to a device, which nobody without a secret can
    /// read, see ``HandoverShelf``.
    ///
    /// The audit log contains IDs only. An entry counts repetitions: `time` is the first time and `last`
    /// the last one, or null if they are equal.
    ///
    /// `chore` lists pending work: `scrub` after an account was erased.
    ///
    /// `version` has the history of the stores: what `record` does not hold any more, or never did.
    /// A version came with `revision`, ended with `ended`, and `outcome` says how, see `StoredFate`.
    /// Under the empty key, a row is a ``VersionPack``. Rows are in the order in which they came, and an
    /// index has their order in their store: a tree without numbers of rows would have whole rows in its
    /// inner pages too.
    ///
    /// `folded` holds the increments in the folds of counters, see `FoldedIncrement`: `key` without
    /// the part, and the rest as in ``FoldedIncrement/numbers``.
    ///
    /// `known_limit` contains the server's limits at its last start. `erased` contains the numbers of
    /// stores that no longer have a row, but whose records are still to be removed.
    static let migrations = [
        """
        CREATE TABLE secret (name TEXT PRIMARY KEY NOT NULL, hash BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE account (
            id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL UNIQUE, created INTEGER NOT NULL,
            limits TEXT, sealing BLOB, reset_at INTEGER) WITHOUT ROWID;
        CREATE INDEX account_reset ON account (reset_at) WHERE reset_at IS NOT NULL;
        CREATE TABLE directory (
            id INTEGER PRIMARY KEY CHECK (id = 1), accounts INTEGER NOT NULL);
        INSERT INTO directory VALUES (1, 0);
        CREATE TABLE device (
            account TEXT NOT NULL, id INTEGER NOT NULL, title BLOB NOT NULL,
            credential BLOB NOT NULL UNIQUE, created INTEGER NOT NULL, seen INTEGER NOT NULL,
            stores TEXT, expires INTEGER, clock_ahead INTEGER, clock_measured INTEGER,
            version TEXT, adder INTEGER, PRIMARY KEY (account, id)) WITHOUT ROWID;
        CREATE TABLE code (
            hash BLOB PRIMARY KEY NOT NULL, account TEXT NOT NULL, expires INTEGER NOT NULL,
            used INTEGER, stores TEXT, credential_milliseconds INTEGER,
            credential_latest INTEGER, maker INTEGER) WITHOUT ROWID;
        CREATE INDEX code_account ON code (account);
        CREATE TABLE identity (
            issuer BLOB NOT NULL, subject BLOB NOT NULL, account TEXT NOT NULL,
            PRIMARY KEY (issuer, subject)) WITHOUT ROWID;
        CREATE INDEX identity_account ON identity (account);
        CREATE TABLE app (
            identifier TEXT PRIMARY KEY NOT NULL, registered INTEGER NOT NULL,
            name TEXT) WITHOUT ROWID;
        CREATE TABLE audit (
            number INTEGER PRIMARY KEY, time INTEGER NOT NULL, deed TEXT NOT NULL, account TEXT,
            device INTEGER, actor TEXT NOT NULL, actor_device INTEGER, last INTEGER,
            count INTEGER NOT NULL DEFAULT 1, detail TEXT);
        CREATE TABLE chore (name TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
        CREATE TABLE span (
            store INTEGER NOT NULL, first_revision INTEGER NOT NULL, epoch INTEGER NOT NULL,
            PRIMARY KEY (store, first_revision)) WITHOUT ROWID;
        CREATE TABLE record (
            store INTEGER NOT NULL, key BLOB NOT NULL, time INTEGER NOT NULL,
            device INTEGER NOT NULL, revision INTEGER NOT NULL, committed INTEGER NOT NULL,
            value BLOB, digest INTEGER NOT NULL DEFAULT 0, came INTEGER DEFAULT 0,
            PRIMARY KEY (store, key)) WITHOUT ROWID;
        CREATE INDEX deletion ON record (store, revision, committed) WHERE value IS NULL;
        CREATE TABLE passed (
            store INTEGER NOT NULL, device INTEGER NOT NULL, revision INTEGER NOT NULL,
            PRIMARY KEY (store, device)) WITHOUT ROWID;
        CREATE TABLE store (
            id INTEGER PRIMARY KEY, account TEXT NOT NULL, identifier TEXT NOT NULL,
            UNIQUE (account, identifier));
        CREATE TABLE running (
            id INTEGER PRIMARY KEY CHECK (id = 1), milliseconds INTEGER NOT NULL);
        INSERT INTO running VALUES (1, 0);
        CREATE TABLE version (
            store INTEGER NOT NULL, key BLOB NOT NULL, ended INTEGER NOT NULL,
            time INTEGER NOT NULL, device INTEGER NOT NULL, digest INTEGER NOT NULL, value BLOB,
            revision INTEGER NOT NULL, came INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
            by_time INTEGER NOT NULL, by_device INTEGER NOT NULL, outcome INTEGER NOT NULL,
            UNIQUE (store, ended, key, time, device, digest));
        CREATE TABLE folded (
            store INTEGER NOT NULL, key BLOB NOT NULL, run BLOB NOT NULL, times INTEGER NOT NULL,
            since INTEGER NOT NULL, amount INTEGER NOT NULL, total INTEGER NOT NULL,
            reals INTEGER NOT NULL, mark INTEGER NOT NULL, removed INTEGER NOT NULL,
            time INTEGER NOT NULL, committed INTEGER NOT NULL,
            PRIMARY KEY (store, key, run, times)) WITHOUT ROWID;
        CREATE INDEX folded_mark ON folded (store, mark, committed, time);
        CREATE INDEX folded_shown ON folded (store, key, mark) WHERE removed = 0;
        CREATE TABLE sign_in_request (
            hash BLOB PRIMARY KEY NOT NULL, user_code BLOB NOT NULL UNIQUE, title BLOB NOT NULL,
            address TEXT NOT NULL, expires INTEGER NOT NULL, stores TEXT,
            credential_milliseconds INTEGER, credential_latest INTEGER, account TEXT,
            maker INTEGER, denied INTEGER, used INTEGER) WITHOUT ROWID;
        CREATE INDEX sign_in_request_account ON sign_in_request (account);
        CREATE TABLE handover (
            account TEXT NOT NULL, name BLOB NOT NULL, expires INTEGER NOT NULL, box BLOB NOT NULL,
            confined INTEGER NOT NULL, PRIMARY KEY (account, name)) WITHOUT ROWID;
        CREATE INDEX audit_recent ON audit (deed, account);
        CREATE TABLE known_limit (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE erased (store INTEGER PRIMARY KEY);
        """
    ]
}
