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
    static let busySecondsMax: TimeInterval = 10
    /// Enough for the indexes: a value is read once, and an open store has it in memory. SQLite's
    /// default would keep all values a second time.
    static let pageCacheKibibytes = 256

    /// - Parameter migrations: See ``migrations``.
    static func open(
        _ path: String, migrations: [String] = migrations
    ) throws(LocalStorageError) -> DatabaseQueue {
        try makeFile(path)
        do {
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            try queue.writeWithoutTransaction { db in
                let found = try look(at: db, path, known: migrations.count)
                try enterWAL(db)
                if found < migrations.count { try migrate(db, path, migrations) }
            }
            return queue
        } catch { throw LocalStorageError(error, path: path) }
    }

    /// Reads a file without changing it, also one that cannot be opened because the disk has no room for the
    /// log's index. Then nobody else can open it meanwhile.
    /// - Parameter body: Not in a transaction.
    static func reading<T>(
        _ path: String, label: String, _ body: (Database) throws -> T
    ) throws(LocalStorageError) -> T {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(2)
        configuration.label = label
        func attempt(_ path: String) throws -> T {
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            defer { try? queue.close() }
            return try queue.unsafeRead(body)
        }
        do { return try attempt(path) } catch {
            let error = LocalStorageError(error, path: path)
            guard error.isOfDisk else { throw error }
            let url = URL(filePath: path).absoluteString
            // The index in memory alone; and where there can be no log either, without one.
            let ways = ["vfs=unix-excl"] + (hasLog(path) ? [] : ["immutable=1"])
            for way in ways {
                if let content = try? attempt("\(url)?\(way)") { return content }
            }
            throw error
        }
    }

    private static func hasLog(_ path: String) -> Bool {
        var status = stat()
        return stat(path + "-wal", &status) == 0 ? status.st_size > 0 : errno != ENOENT
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
    static func look(
        at db: Database, _ path: String, known: Int = migrations.count
    ) throws -> Int {
        var found = 0
        try db.inTransaction(.deferred) {
            found = try checkOwner(of: db, path, known: known)
            return .commit
        }
        return found
    }

    /// Must be called in a transaction.
    /// - Parameter known: The newest format that can be read.
    /// - Returns: The file's format; 0 if there are no tables.
    static func checkOwner(
        of db: Database, _ path: String, known: Int = migrations.count
    ) throws -> Int {
        let owner = try Int64.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        if owner == applicationID {
            guard (1...known).contains(version) else {
                throw LocalStorageError(
                    .newer, path: path,
                    cause: "its format is \(version), and this program knows formats up to \(known)"
                )
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

    /// Runs the steps that the file lacks, in one transaction.
    private static func migrate(_ db: Database, _ path: String, _ migrations: [String]) throws {
        try db.inTransaction(.immediate) {
            // Another process may have been first.
            let found = try checkOwner(of: db, path, known: migrations.count)
            guard found < migrations.count else { return .rollback }
            for migration in migrations[found...] { try db.execute(sql: migration) }
            if found == 0 { try SQLiteRows.writeMeta(nil, version: 0, to: db) }
            try db.execute(
                sql: """
                    PRAGMA application_id = \(applicationID);
                    PRAGMA user_version = \(migrations.count)
                    """)
            return .commit
        }
    }

    /// The changes from each format to the next. The first one makes a new file's tables; the next
    /// one is to be added here, and its test to `FormatTests`. ``StoreInspection`` also reads files
    /// that no program has migrated yet.
    ///
    /// Keys are blobs, because SQLite ends a text at its first zero byte, which a key may contain.
    /// If `confirmed_time` is not NULL but `confirmed_value` is, the record is a tombstone;
    /// likewise for `pending`. Values are messages of the protocol, and so is `data`. `unkept` says
    /// whether a write must not be in a history: the pending one, or any that this device made; NULL
    /// is no. `pending_generation` is the number of the account's key that made the digest; NULL is
    /// none.
    static let migrations = [
        """
        CREATE TABLE entry (
            key BLOB PRIMARY KEY NOT NULL,
            version INTEGER NOT NULL,
            confirmed_time INTEGER, confirmed_device INTEGER, confirmed_value BLOB,
            pending_time INTEGER, pending_device INTEGER, pending_value BLOB,
            pending_transaction INTEGER,
            provisional_wall INTEGER, provisional_uptime INTEGER, provisional_boot INTEGER,
            provisional_seen INTEGER, confirmed_digest INTEGER, pending_digest INTEGER,
            had_time INTEGER, had_device INTEGER, pending_unkept INTEGER, unkept INTEGER,
            pending_generation INTEGER);
        CREATE INDEX entry_version ON entry (version);
        CREATE TABLE meta (
            id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, data BLOB NOT NULL);
        CREATE TABLE refused (
            id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL, time INTEGER NOT NULL,
            device INTEGER NOT NULL, value BLOB, code TEXT NOT NULL, detail TEXT NOT NULL,
            digest INTEGER);
        """
    ]
}

extension LocalStorageError {
    /// Whether the file is what it should be, and the disk has failed or is full.
    var isOfDisk: Bool { [.diskFull, .failed].contains(reason) }

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
        // There is no room for the log's index.
        case .SQLITE_IOERR where error.extendedResultCode == .SQLITE_IOERR_SHMSIZE: .diskFull
        case .SQLITE_BUSY, .SQLITE_LOCKED: .busy
        // A table or column that this library created is missing.
        case .SQLITE_ERROR where error.message?.hasPrefix("no such") == true: .damaged
        default: .failed
        }
    }
}
