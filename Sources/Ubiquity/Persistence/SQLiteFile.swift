// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB

/// Opens and creates a store's file.
///
/// The database file, its log and its index are opened by SQLite alone. By hand they are only
/// created. SQLite's locks belong to the process: closing any descriptor of the file releases all
/// of them, and another process then takes itself for the last user and deletes the log under those
/// who write to it. `docs/decisions/0021` has the whole rule.
enum SQLiteFile {
    /// "Ubiq" in ASCII. Distinguishes our stores from other programs' databases.
    static let applicationID: Int64 = 0x5562_6971
    static let formatVersion: Int64 = 4
    static let busySecondsMax: TimeInterval = 10
    /// Enough for the indexes: a value is read once, and an open store has it in memory. SQLite's
    /// default would keep all values a second time.
    static let pageCacheKibibytes = 256

    static func open(_ path: String) throws(LocalStorageError) -> DatabaseQueue {
        try makeFile(path)
        do {
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            try queue.writeWithoutTransaction { db in
                let found = try look(at: db, path)
                try enterWAL(db)
                if found < formatVersion { try migrate(db, path) }
            }
            return queue
        } catch { throw LocalStorageError(error, path: path) }
    }

    private static func makeFile(_ path: String) throws(LocalStorageError) {
        do {
            if let folder = PrivateFiles.parent(of: path) { try PrivateFiles.makeFolder(folder) }
            try PrivateFiles.makeFile(path)
        } catch { throw LocalStorageError(.notWritable, path: path, cause: "\(error)") }
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.busyMode = .timeout(busySecondsMax)
        configuration.foreignKeysEnabled = false
        configuration.label = "ubiquity.disk"
        configuration.prepareDatabase { db in
            // FULL flushes the log with every commit. On Apple's systems a plain fsync leaves the
            // data in the drive's cache.
            try db.execute(
                sql: """
                    PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;
                    PRAGMA checkpoint_fullfsync = ON; PRAGMA cache_size = -\(pageCacheKibibytes)
                    """)
        }
        return configuration
    }

    /// Checks the file before anything is written: it may be another program's.
    ///
    /// In one transaction, because another process may be creating the tables, and a half-made file
    /// looks like another program's.
    /// - Returns: The file's format; 0 if there are no tables.
    private static func look(at db: Database, _ path: String) throws -> Int64 {
        var found: Int64 = 0
        try db.inTransaction(.deferred) {
            found = try checkOwner(of: db, path)
            return .commit
        }
        return found
    }

    /// Must be called in a transaction.
    /// - Returns: The file's format; 0 if there are no tables.
    static func checkOwner(of db: Database, _ path: String) throws -> Int64 {
        let owner = try Int64.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let version = try Int64.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        if owner == applicationID {
            guard version <= formatVersion else {
                throw LocalStorageError(
                    .newer, path: path,
                    cause: "its format is \(version), but this program knows format "
                        + "\(formatVersion)")
            }
            // No release wrote format 1.
            guard version == 0 || version >= 2 else {
                throw StoredValue.damage(
                    "its format is \(version), but this program knows format \(formatVersion)")
            }
            return version
        }
        let objects = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0
        guard owner == 0, version == 0, objects == 0 else {
            throw LocalStorageError(
                .foreign, path: path, cause: "it is a database of another program")
        }
        return 0
    }

    /// Retries, because SQLite's busy timeout does not apply here: two processes that create the
    /// file at once would refuse each other.
    private static func enterWAL(_ db: Database) throws {
        let deadline = Date().addingTimeInterval(busySecondsMax)
        while true {
            do {
                let mode = try String.fetchOne(db, sql: "PRAGMA journal_mode = WAL")
                guard mode != "wal" else { return }
                throw DatabaseError(
                    message: "the file system does not support shared memory for the log")
            } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
                guard Date() < deadline else { throw error }
                Thread.sleep(forTimeInterval: 0.005)
            }
        }
    }

    /// Moves the log's content into the file and empties the log.
    ///
    /// Without waiting, because others could not write meanwhile. While another process reads or
    /// writes, the log stays as it is, or is emptied as far as possible.
    static func emptyLog(_ db: Database) throws {
        try db.execute(sql: "PRAGMA busy_timeout = 0")
        defer {
            try? db.execute(sql: "PRAGMA busy_timeout = \(Int(busySecondsMax * 1_000))")
        }
        try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private static func migrate(_ db: Database, _ path: String) throws {
        try db.inTransaction(.immediate) {
            // Another process may have been first.
            let found = try checkOwner(of: db, path)
            guard found < formatVersion else { return .rollback }
            if found == 0 {
                try db.execute(sql: format2)
                try SQLiteRows.writeMeta(nil, version: 0, to: db)
            }
            if found < 3 { try db.execute(sql: format3) }
            try db.execute(sql: format4)
            return .commit
        }
    }

    /// Keys are blobs, because SQLite ends a text at its first zero byte, which a key may contain.
    /// If `confirmed_time` is not NULL but `confirmed_value` is, the record is a tombstone;
    /// likewise for `pending`. Values are messages of the protocol, and so is `data`.
    private static let format2 = """
        CREATE TABLE entry (
            key BLOB PRIMARY KEY NOT NULL,
            version INTEGER NOT NULL,
            confirmed_time INTEGER, confirmed_device INTEGER, confirmed_value BLOB,
            pending_time INTEGER, pending_device INTEGER, pending_value BLOB,
            pending_transaction INTEGER,
            provisional_wall INTEGER, provisional_uptime INTEGER, provisional_boot INTEGER,
            provisional_seen INTEGER);
        CREATE INDEX entry_version ON entry (version);
        CREATE TABLE meta (
            id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, data BLOB NOT NULL);
        CREATE TABLE refused (
            id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL, time INTEGER NOT NULL,
            device INTEGER NOT NULL, value BLOB, code TEXT NOT NULL, detail TEXT NOT NULL);
        PRAGMA application_id = \(applicationID);
        """

    /// A record of format 2 has no digest, as on the server. A waiting write does not say whether
    /// its author had the entry from the server; it did if there is a value of the server's.
    private static let format3 = """
        ALTER TABLE entry ADD COLUMN confirmed_digest INTEGER;
        ALTER TABLE entry ADD COLUMN pending_digest INTEGER;
        ALTER TABLE entry ADD COLUMN had_time INTEGER;
        ALTER TABLE entry ADD COLUMN had_device INTEGER;
        UPDATE entry SET had_time = confirmed_time, had_device = confirmed_device
            WHERE pending_time IS NOT NULL AND confirmed_value IS NOT NULL;
        ALTER TABLE refused ADD COLUMN digest INTEGER;
        PRAGMA user_version = 3;
        """

    /// Whether a write must not be in a history: the pending one, or any that this device made. NULL
    /// is no, and in an older file it is not known.
    private static let format4 = """
        ALTER TABLE entry ADD COLUMN pending_unkept INTEGER;
        ALTER TABLE entry ADD COLUMN unkept INTEGER;
        PRAGMA user_version = 4;
        """
}

extension LocalStorageError {
    /// Translates an error of the database for people.
    init(_ error: any Error, path: String) {
        switch error {
        case let error as LocalStorageError: self = error
        case let error as DatabaseError:
            let cause = "SQLite: \(error.message ?? "error \(error.extendedResultCode)")"
            self.init(Self.reason(of: error), path: path, cause: cause)
        // A column has a type that this library never writes.
        case let error as RowDecodingError: self.init(.damaged, path: path, cause: "\(error)")
        default: self.init(.failed, path: path, cause: "\(error)")
        }
    }

    private static func reason(of error: DatabaseError) -> Reason {
        switch error.resultCode {
        case .SQLITE_CORRUPT: .damaged
        case .SQLITE_NOTADB: .foreign
        case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH: .notWritable
        case .SQLITE_FULL: .diskFull
        case .SQLITE_BUSY, .SQLITE_LOCKED: .busy
        // A table or column that this library created is missing.
        case .SQLITE_ERROR where error.message?.hasPrefix("no such") == true: .damaged
        default: .failed
        }
    }
}
