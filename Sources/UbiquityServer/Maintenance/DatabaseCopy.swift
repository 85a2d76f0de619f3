// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// A server's data, copied from a data folder into a PostgreSQL database or back, while no server is
/// running on either.
///
/// Everything is copied as it is stored: accounts, sign-ins, records, and the histories of the
/// stores, so that devices continue from their cursors. The target is written in one transaction,
/// read back and compared with the source before it is committed. Blocks, for about a minute for a
/// million records.
package struct DatabaseCopy: Sendable {
    package let tables: [TableDigest]

    /// Called with the number of rows that were copied or compared, and that of all.
    package typealias Progress = (_ done: Int, _ all: Int) -> Void

    /// Copies a folder into a database that has no data yet. Makes its tables if necessary, and a
    /// new incarnation, by which the database's history differs from that of any other copy.
    /// - Throws: ``DatabaseCopyError``, ``ServerStartError``, ``StorageError``; the database has no
    ///   data then.
    package init(
        from dataFolder: String, to settings: PostgresSettings, progress: @escaping Progress
    ) throws {
        let folder = DataFolder(path: dataFolder)
        try folder.requireServerData()
        let lock = try Self.lock(folder)
        defer { withExtendedLifetime(lock) {} }
        let source = SQLiteServerStorage(try ServerDatabase.openQueue(folder.databasePath))
        while try source.eraseRest(for: 1_000) {}
        let target = try PostgresServerStorage.openForAdministration(settings, migrates: true)
        try Self.requireAlone(target)
        // Before the source is changed. The copy looks again, with the lock that it keeps.
        guard try target.writing(milliseconds: Self.statementMilliseconds, Self.isEmpty) else {
            throw DatabaseCopyError.databaseNotEmpty
        }
        // In PostgreSQL, every version is a row.
        try source.unpackHistory()
        tables = try Self.keepingReason { keep in
            try source.database.read { db in
                try target.writing(milliseconds: Self.statementMilliseconds) { transaction in
                    try keep { try Self.copy(db, to: transaction, progress) }
                }
            }
        }
        try source.close()
        try target.close()
    }

    /// Copies a database into a folder that has no data yet.
    /// - Throws: ``DatabaseCopyError``, ``ServerStartError``, ``StorageError``,
    ///   ``AtomicFileError``; the folder has no data then.
    package init(
        from settings: PostgresSettings, to dataFolder: String, progress: @escaping Progress
    ) throws {
        let folder = DataFolder(path: dataFolder)
        try folder.make()
        let lock = try Self.lock(folder)
        defer { withExtendedLifetime(lock) {} }
        folder.removeDrafts()
        guard !folder.hasServerData else {
            throw DatabaseCopyError.folderNotEmpty(path: folder.path)
        }
        let source = try PostgresServerStorage.openForAdministration(settings)
        try Self.requireAlone(source)
        while try source.eraseRest(for: 1_000) {}
        let draft = try AtomicFile(path: folder.databasePath, replaces: false)
        let target = try DatabaseQueue(path: draft.draftPath)
        try target.writeWithoutTransaction { db in
            try SQLiteSchema.migrate(db, path: folder.databasePath)
        }
        tables = try Self.keepingReason { keep in
            try source.reading(milliseconds: Self.statementMilliseconds) { transaction in
                try target.write { db in try keep { try Self.copy(transaction, to: db, progress) } }
            }
        }
        try target.close()
        try source.close()
        try draft.finish()
    }

    /// A storage's transactions only throw errors of the storage: this one keeps others.
    private static func keepingReason<T>(
        _ body: (_ keep: (() throws -> T) throws -> T) throws -> T
    ) throws -> T {
        var reason: DatabaseCopyError?
        do {
            return try body { part in
                do { return try part() } catch {
                    reason = error as? DatabaseCopyError
                    throw error
                }
            }
        } catch { throw reason ?? error }
    }

    private static func lock(_ folder: DataFolder) throws -> FolderLock {
        do { return try FolderLock(folder) } catch ServerStartError.folderInUse {
            throw DatabaseCopyError.folderInUse(path: folder.path)
        }
    }

    private static func copy(
        _ db: Database, to transaction: PostgresTransaction, _ progress: @escaping Progress
    ) throws -> [TableDigest] {
        try prepare(transaction)
        let isEmpty = try isEmpty(transaction)
        // An earlier attempt may have been committed. Then both are equal.
        guard isEmpty || transaction.mayBeRepeated else {
            throw DatabaseCopyError.databaseNotEmpty
        }
        var counter = CopyCounter(
            rows: try CopiedTable.all.reduce(0) { try $0 + $1.count(db) }, progress)
        guard isEmpty else { return try compare(db, transaction, &counter) }
        try transaction.run(
            CopiedTable.ofServers.sorted().map { SQLStatement("DELETE FROM ubiquity.\($0)") })
        for table in CopiedTable.all {
            var batch = CopyBatch()
            try table.read(db) { row in
                batch.add(row)
                if batch.isFull { try counter.write(batch.take(), table, transaction) }
            }
            try counter.write(batch.take(), table, transaction)
        }
        try finish(running: try runningTime(db), transaction)
        return try compare(db, transaction, &counter)
    }

    private static func copy(
        _ transaction: PostgresTransaction, to db: Database, _ progress: @escaping Progress
    ) throws -> [TableDigest] {
        try prepare(transaction)
        var counter = CopyCounter(
            rows: try CopiedTable.all.reduce(0) { try $0 + $1.count(transaction) }, progress)
        for table in CopiedTable.all {
            try table.read(transaction) { row in
                try table.write(row, db)
                counter.add(1)
            }
        }
        try finish(running: runningTime(transaction), db)
        return try compare(db, transaction, &counter)
    }

    /// Long enough for one that reads a whole table.
    private static let statementMilliseconds: Int64 = 600_000

    // MARK: - PostgreSQL

    /// Waits a moment for connections that were just closed.
    /// - Throws: ``DatabaseCopyError/inUse(connections:)`` if others are at work on the database.
    private static func requireAlone(_ storage: PostgresServerStorage) throws {
        let deadline = ContinuousClock.now + .seconds(2)
        while true {
            let statement = SQLStatement(
                """
                SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                    AND application_name ~ '^ubiquity' AND pid <> pg_backend_pid()
                """)
            let others = try storage.reading(statement) { result in
                guard let row = result.rows.first else { throw StorageError.unreadable }
                return try row.count(0)
            }
            guard others > 0 else { return }
            guard .now < deadline else { throw DatabaseCopyError.inUse(connections: others) }
            Thread.sleep(forTimeInterval: 0.05)
        }
    }

    /// Lets the transaction pause while the other database is at work.
    private static func prepare(_ transaction: PostgresTransaction) throws {
        try transaction.run(
            "SELECT set_config('idle_in_transaction_session_timeout', $1, true)",
            .text("\(statementMilliseconds)"))
    }

    /// Locks the directory, so that nothing is added meanwhile. A server may have been there, if it
    /// only left its limits.
    private static func isEmpty(_ transaction: PostgresTransaction) throws -> Bool {
        let tables = CopiedTable.all.filter { !CopiedTable.ofServers.contains($0.name) }
        let checks = tables.map { table in
            SQLStatement("SELECT 1 FROM ubiquity.\(table.name) LIMIT 1")
        }
        return try transaction.run([Directory.locking] + checks).dropFirst()
            .allSatisfy(\.rows.isEmpty)
    }

    private static func finish(running: Int64, _ transaction: PostgresTransaction) throws {
        try transaction.run([
            SQLStatement("UPDATE ubiquity.running SET milliseconds = $1", .integer(running)),
            SQLStatement(
                """
                UPDATE ubiquity.directory SET accounts = (SELECT count(*) FROM ubiquity.account)
                """),
            SQLStatement(
                """
                SELECT setval(pg_get_serial_sequence('ubiquity.audit', 'number'), max(number))
                FROM ubiquity.audit
                """), PostgresSchema.renewingIncarnation(),
        ])
    }

    private static func runningTime(_ transaction: PostgresTransaction) throws -> Int64 {
        let result = try transaction.run("SELECT milliseconds FROM ubiquity.running")
        guard let row = result.rows.first else { throw StorageError.unreadable }
        return try row.time(0)
    }

    // MARK: - SQLite

    private static func runningTime(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT milliseconds FROM running") ?? 0
    }

    private static func finish(running: Int64, _ db: Database) throws {
        try db.execute(sql: "UPDATE running SET milliseconds = ?", arguments: [running])
        try db.execute(sql: "UPDATE directory SET accounts = (SELECT count(*) FROM account)")
    }

    // MARK: - Both

    /// Reads both databases anew.
    /// - Throws: ``DatabaseCopyError/differs(table:)``.
    private static func compare(
        _ db: Database, _ transaction: PostgresTransaction, _ counter: inout CopyCounter
    ) throws -> [TableDigest] {
        var tables: [TableDigest] = []
        for table in CopiedTable.all {
            var (here, there) = (TableDigest(of: table), TableDigest(of: table))
            try table.read(db) { row in
                here.add(row)
                counter.add(1)
            }
            try table.read(transaction) { row in
                there.add(row)
                counter.add(1)
            }
            guard here == there else { throw DatabaseCopyError.differs(table: table.name) }
            tables.append(here)
        }
        guard try runningTime(db) == runningTime(transaction) else {
            throw DatabaseCopyError.differs(table: "running")
        }
        return tables
    }
}

/// Counts each row three times: when it is copied, and when it is read back on both sides.
private struct CopyCounter {
    private var done = 0
    private let all: Int
    private let progress: DatabaseCopy.Progress
    private static let step = 1_000

    init(rows: Int, _ progress: @escaping DatabaseCopy.Progress) {
        (all, self.progress) = (3 * rows, progress)
    }

    mutating func add(_ rows: Int) {
        let before = done / Self.step
        done += rows
        if done / Self.step > before { progress(done, all) }
    }

    mutating func write(
        _ rows: [CopiedRow], _ table: CopiedTable, _ transaction: PostgresTransaction
    ) throws {
        guard !rows.isEmpty else { return }
        try table.write(rows, transaction)
        add(rows.count)
    }
}

/// The reason nothing was copied, as a sentence for people.
package enum DatabaseCopyError: Error, Hashable, Sendable {
    case databaseNotEmpty
    case folderNotEmpty(path: String)
    case folderInUse(path: String)
    /// Servers, or other commands.
    case inUse(connections: Int)
    case differs(table: String)
}

extension DatabaseCopyError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .databaseNotEmpty:
            "the database already has a server's data; create an empty one for the copy. Nothing "
                + "was changed"
        case .folderNotEmpty(let path):
            "\(path) already has a server's data; choose another folder. Nothing was changed"
        case .folderInUse(let path):
            "a server or a command is at work on \(path); stop it first. Nothing was copied"
        case .inUse(let connections):
            "servers or commands are at work on the database (\(connections) "
                + "\(connections == 1 ? "connection" : "connections")); stop them first. Nothing "
                + "was copied"
        case .differs(let table):
            "the copy differs from the original in the table \(table); nothing was copied. Try "
                + "again, and report it if it happens again"
        }
    }
}
