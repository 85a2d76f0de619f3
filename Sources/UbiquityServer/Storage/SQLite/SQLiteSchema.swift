// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// The tables of the database, and the migrations from older formats.
enum SQLiteSchema {
    /// "UbSv" in ASCII. Distinguishes a server's database from other programs'.
    static let applicationID: Int64 = 0x5562_5376

    /// One migration for each format; the first makes format 1 of an empty file.
    private static let migrations: [@Sendable (Database) throws -> Void] =
        [format1, format2, format3, format4, format5].map { sql in { try $0.execute(sql: sql) } }
        + [
            { try migrateToFormat6($0) }, { try $0.execute(sql: format7) },
            { try $0.execute(sql: format8) }, format9, { try $0.execute(sql: format10) },
        ]
    static var version: Int { migrations.count }

    /// Migrates the file to this program's format.
    /// - Throws: ``ServerStartError`` if it is another program's or a newer one's; it was not
    ///   changed then.
    static func migrate(_ db: Database, path: String) throws {
        guard try check(db, path: path) < version else { return }
        try db.inTransaction(.immediate) {
            // Another process may have been first.
            let from = try check(db, path: path)
            for migration in migrations.dropFirst(from) { try migration(db) }
            try db.execute(
                sql: """
                    PRAGMA application_id = \(applicationID); PRAGMA user_version = \(version)
                    """)
            return .commit
        }
    }

    /// - Returns: The file's format; 0 for an empty file.
    static func check(_ db: Database, path: String) throws -> Int {
        let owner = try Int64.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        if owner == applicationID {
            guard found <= version else {
                throw ServerStartError.databaseNewer(path: path, version: found, known: version)
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

    /// Times of people and machines are milliseconds since 1970 by the server's clock, except
    /// `record.time`, a hybrid timestamp, and `record.committed`, see format 3. Unsigned numbers
    /// are stored with the same bits. Keys are blobs, because SQLite ends a text at its first zero
    /// byte, which a key may contain. A record without a value is a tombstone; values are messages
    /// of the protocol.
    private static let format1 = """
        CREATE TABLE secret (name TEXT PRIMARY KEY NOT NULL, hash BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE account (
            id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL UNIQUE, created INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE device (
            account TEXT NOT NULL, id INTEGER NOT NULL, title TEXT NOT NULL,
            credential BLOB NOT NULL UNIQUE, created INTEGER NOT NULL, seen INTEGER NOT NULL,
            revoked INTEGER, PRIMARY KEY (account, id)) WITHOUT ROWID;
        CREATE TABLE code (
            hash BLOB PRIMARY KEY NOT NULL, account TEXT NOT NULL, expires INTEGER NOT NULL,
            used INTEGER) WITHOUT ROWID;
        CREATE TABLE store (
            id INTEGER PRIMARY KEY, account TEXT NOT NULL, identifier TEXT NOT NULL,
            revision INTEGER NOT NULL, bytes INTEGER NOT NULL, keys INTEGER NOT NULL,
            deletions INTEGER NOT NULL, newest INTEGER NOT NULL,
            newest_forgotten INTEGER NOT NULL, forgotten_revision INTEGER NOT NULL,
            UNIQUE (account, identifier));
        CREATE TABLE span (
            store INTEGER NOT NULL, first_revision INTEGER NOT NULL, epoch INTEGER NOT NULL,
            PRIMARY KEY (store, first_revision)) WITHOUT ROWID;
        CREATE TABLE record (
            store INTEGER NOT NULL, key BLOB NOT NULL, time INTEGER NOT NULL,
            device INTEGER NOT NULL, revision INTEGER NOT NULL, committed INTEGER NOT NULL,
            value BLOB, PRIMARY KEY (store, key)) WITHOUT ROWID;
        CREATE INDEX record_revision ON record (store, revision);
        CREATE INDEX deletion ON record (store, revision, committed) WHERE value IS NULL;
        CREATE TABLE passed (
            store INTEGER NOT NULL, device INTEGER NOT NULL, revision INTEGER NOT NULL,
            PRIMARY KEY (store, device)) WITHOUT ROWID;
        """

    /// A confinement is a list of identifiers, one per line. A revoked device has no row (the
    /// column `revoked` is of format 1). The audit log contains IDs only. `chore` lists pending
    /// work: `scrub` after an account was erased.
    private static let format2 = """
        ALTER TABLE device ADD COLUMN stores TEXT;
        ALTER TABLE device ADD COLUMN expires INTEGER;
        ALTER TABLE code ADD COLUMN stores TEXT;
        ALTER TABLE code ADD COLUMN credential_milliseconds INTEGER;
        DELETE FROM passed WHERE NOT EXISTS (
            SELECT 1 FROM store JOIN device ON device.account = store.account
            WHERE store.id = passed.store AND device.id = passed.device
                AND device.revoked IS NULL);
        DELETE FROM device WHERE revoked IS NOT NULL;
        CREATE TABLE identity (
            issuer TEXT NOT NULL, subject TEXT NOT NULL, account TEXT NOT NULL,
            PRIMARY KEY (issuer, subject)) WITHOUT ROWID;
        CREATE INDEX identity_account ON identity (account);
        CREATE INDEX code_account ON code (account);
        CREATE TABLE app (
            identifier TEXT PRIMARY KEY NOT NULL, registered INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE audit (
            number INTEGER PRIMARY KEY, time INTEGER NOT NULL, deed TEXT NOT NULL, account TEXT,
            device INTEGER, actor TEXT NOT NULL, actor_device INTEGER);
        CREATE TABLE chore (name TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
        """

    /// `record.committed` is the server's running time from now on, see `running`. Older values
    /// continue from the latest time that was stored. A restored copy continues with its own.
    ///
    /// For tombstones dropped before, the author is unknown: they count as everybody's.
    private static let format3 = """
        ALTER TABLE record ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE store ADD COLUMN accepted_floor INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE store ADD COLUMN horizon INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE accepted (
            store INTEGER NOT NULL, device INTEGER NOT NULL, time INTEGER NOT NULL,
            PRIMARY KEY (store, device)) WITHOUT ROWID;
        UPDATE store SET accepted_floor = newest_forgotten;
        INSERT INTO accepted
            SELECT store, device, max(max(time), newest_forgotten)
            FROM record JOIN store ON store.id = record.store GROUP BY store, device;
        CREATE TABLE running (
            id INTEGER PRIMARY KEY CHECK (id = 1), milliseconds INTEGER NOT NULL);
        INSERT INTO running SELECT 1, coalesce(max(committed), 0) FROM record;
        """

    /// `folded` holds the increments in the folds of counters, see `FoldedIncrement`: `key` without
    /// the part, `run` the part's name, `amount` and `total` integers or reals, `committed` as for
    /// records.
    ///
    /// `store.bytes` includes elements and parts. Older stores are counted again when they are
    /// written to: `parts` is null until then.
    private static let format4 = """
        ALTER TABLE store ADD COLUMN parts INTEGER;
        ALTER TABLE store ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE store ADD COLUMN folds_forgotten INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE store ADD COLUMN folds_forgotten_revision INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE folded (
            store INTEGER NOT NULL, key BLOB NOT NULL, run BLOB NOT NULL, times INTEGER NOT NULL,
            since INTEGER NOT NULL, amount, total, mark INTEGER NOT NULL, removed INTEGER NOT NULL,
            time INTEGER NOT NULL, committed INTEGER NOT NULL,
            PRIMARY KEY (store, key, run, times)) WITHOUT ROWID;
        CREATE INDEX folded_mark ON folded (store, mark, committed, time);
        CREATE INDEX folded_shown ON folded (store, key, mark) WHERE removed = 0;
        """

    /// An entry of the audit log counts repetitions: `time` is the first time and `last` the last
    /// one, or null if they are equal. `known_limit` contains the server's limits at its last
    /// start. `erased` contains the numbers of stores that no longer have a row, but whose records
    /// are still to be removed.
    private static let format5 = """
        ALTER TABLE audit ADD COLUMN last INTEGER;
        ALTER TABLE audit ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE audit ADD COLUMN detail TEXT;
        CREATE INDEX audit_recent ON audit (deed, account);
        CREATE TABLE known_limit (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE erased (store INTEGER PRIMARY KEY);
        """

    /// `version` has the history of the stores: what `record` does not hold any more, or never did.
    /// A version came with `revision`, ended with `ended`, and `outcome` says how, see `StoredFate`.
    /// `record.came` is when the record came; 0 if that was before this format, null if it must not
    /// be kept.
    /// `account.limits` is an ``AccountLimits``.
    /// By how much a device's clock was ahead of the server's, when that was, and the version of its
    /// client library, are in `device`.
    /// `code` and `sign_in_request` have what devices may grant: `credential_latest` is
    /// ``CredentialTerms/latestMilliseconds``, and `maker` the device that made the code or approved the
    /// request, or null for the operator. The terms of a request are those asked for until somebody
    /// approves it, and `account` is null until then.
    private static let format7 = """
        ALTER TABLE account ADD COLUMN limits TEXT;
        ALTER TABLE device ADD COLUMN clock_ahead INTEGER;
        ALTER TABLE device ADD COLUMN clock_measured INTEGER;
        ALTER TABLE device ADD COLUMN version TEXT;
        ALTER TABLE record ADD COLUMN came INTEGER DEFAULT 0;
        \(versionTable("PRIMARY KEY (store, key, ended, time, device, digest)) WITHOUT ROWID"))
        ALTER TABLE code ADD COLUMN credential_latest INTEGER;
        ALTER TABLE code ADD COLUMN maker INTEGER;
        CREATE TABLE sign_in_request (
            hash BLOB PRIMARY KEY NOT NULL, user_code BLOB NOT NULL UNIQUE, title TEXT NOT NULL,
            address TEXT NOT NULL, expires INTEGER NOT NULL, stores TEXT,
            credential_milliseconds INTEGER, credential_latest INTEGER, account TEXT,
            maker INTEGER, denied INTEGER, used INTEGER) WITHOUT ROWID;
        CREATE INDEX sign_in_request_account ON sign_in_request (account);
        """

    /// The versions of a store are in the order of their ends, so that what a push adds is in one place
    /// and what is pruned together, too. Before, each key had a place of its own.
    private static let format8 = versions(
        to: "PRIMARY KEY (store, ended, key, time, device, digest)) WITHOUT ROWID")

    /// A head may have a ``VersionPack``, and so may a row of `version`, under the empty key.
    private static func format9(_ db: Database) {}

    /// Versions are rows in the order in which they came, and an index has their order in their store. A
    /// tree without numbers of rows has whole rows in its inner pages too: with packs of a quarter of a
    /// page it was eight pages high, and a row changed six.
    private static let format10 = versions(
        to: "UNIQUE (store, ended, key, time, device, digest))")

    private static func versionTable(_ key: String) -> String {
        """
        CREATE TABLE version (
            store INTEGER NOT NULL, key BLOB NOT NULL, ended INTEGER NOT NULL,
            time INTEGER NOT NULL, device INTEGER NOT NULL, digest INTEGER NOT NULL, value BLOB,
            revision INTEGER NOT NULL, came INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
            by_time INTEGER NOT NULL, by_device INTEGER NOT NULL, outcome INTEGER NOT NULL, \(key);
        """
    }

    /// Moves the versions to a table with another key.
    private static func versions(to key: String) -> String {
        """
        ALTER TABLE version RENAME TO earlier_version;
        \(versionTable(key))
        INSERT INTO version SELECT * FROM earlier_version ORDER BY store, ended;
        DROP TABLE earlier_version;
        """
    }
}
