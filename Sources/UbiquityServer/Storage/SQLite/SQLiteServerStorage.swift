// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

/// The storage in one SQLite file.
///
/// State: the connections are thread-safe. `memory`, guarded by its lock, is used in transactions of
/// the writing connection, one at a time, and by ``rights(of:)``. Only ``commit(_:rules:)`` and
/// housekeeping, on one thread, use `scrubs`, `logEmptying`, the uptime of the next emptying, and
/// `runningTime`, the time stored in the file.
final class SQLiteServerStorage: SQLStorage {
    typealias DatabaseTransaction = SQLiteTransaction

    let database: any DatabaseWriter
    let memory = Mutex(WriterMemory())
    let positions = KnownPositions()
    /// The random number of this run of the server.
    let run = UInt64.random(in: 1 ... .max)
    let scrubs = Mutex(Scrubs())
    let logEmptying = Mutex<Int64>(0)
    let runningTime: Mutex<Int64>
    /// Nil if no server is running.
    let reserve: DiskReserve?
    /// Likewise.
    let checkpointer: Checkpointer?
    /// Likewise.
    private let place: FilePlace?
    /// The conditions for rewriting the database.
    struct Scrubs {
        /// The earliest uptime of the next scrubbing.
        var next: Int64 = 0
        /// The uptime since which nobody has pushed; nil if somebody has pushed since the last
        /// check.
        var quietSince: Int64?
    }

    init(
        _ database: any DatabaseWriter, running: Int64 = 0, reserve: DiskReserve? = nil,
        checkpointer: Checkpointer? = nil, place: FilePlace? = nil
    ) {
        self.database = database
        self.reserve = reserve
        self.checkpointer = checkpointer
        self.place = place
        runningTime = Mutex(running)
    }

    static func openForServer(
        _ path: String, reserve: DiskReserve? = nil
    ) throws(ServerStartError) -> SQLiteServerStorage {
        guard reserve?.makeRoom() ?? true else { throw .diskFull(path: path) }
        let database = try ServerDatabase.openPool(path)
        do {
            // Not 0 if it cannot be read: that would be saved, and tombstones would be kept too
            // long.
            let running = try database.read { db in
                try Int64.fetchOne(db, sql: "SELECT milliseconds FROM running")
            }
            let checkpointer = try Checkpointer(try ServerDatabase.openQueue(path))
            try database.writeWithoutTransaction { try checkpointer.watch($0) }
            return SQLiteServerStorage(
                database, running: running ?? 0, reserve: reserve, checkpointer: checkpointer,
                place: FilePlace(path: path))
        } catch { throw ServerDatabase.startError(error, path) }
    }

    var running: Int64 { runningTime.withLock { $0 } }

    func reading<T>(_ body: (Database) throws -> T) throws(StorageError) -> T {
        do { return try database.read(body) } catch { throw StorageError(error) }
    }

    /// Reads with statements of which each sees a moment of its own, so there is no transaction
    /// around them: to begin and to end one takes longer than to find a row.
    func readingWithoutTransaction<T>(
        _ body: (Database) throws -> T
    ) throws(StorageError) -> T {
        do { return try database.unsafeRead(body) } catch { throw StorageError(error) }
    }

    func reading<T>(
        _ statement: SQLStatement, _ body: (SQLiteTransaction.StatementResult) throws -> T
    ) throws(StorageError) -> T {
        try reading { try body(SQLiteTransaction(db: $0).run([statement])[0]) }
    }

    func writing<T>(
        _ body: (SQLiteTransaction) throws -> T, news: (T) -> [StorageNews]
    ) throws(StorageError) -> T {
        try transact { db in
            try body(SQLiteTransaction(db: db))
        } committed: { _, result in
            for item in news(result) { forget(item) }
        }
    }

    private func forget(_ news: StorageNews) {
        switch news {
        case .revoked(let device): memory.withLock { $0.devices.remove(device) }
        case .accountChanged:
            memory.withLock { $0.forgetAll() }
            positions.forgetAll()
        default: break
        }
    }

    /// Runs the body in one transaction, which an error rolls back. If the disk is full, tries
    /// again with the reserved space.
    /// - Parameter committed: Called after the commit, before another transaction can begin.
    func transact<T>(
        _ body: (Database) throws -> T, committed: (Database, T) -> Void = { _, _ in }
    ) throws(StorageError) -> T {
        do { return try transactOnce(body, committed) } catch .full {
            guard reserve?.giveUp() ?? false else { throw .full }
            return try transactOnce(body, committed)
        }
    }

    private func transactOnce<T>(
        _ body: (Database) throws -> T, _ committed: (Database, T) -> Void
    ) throws(StorageError) -> T {
        do {
            return try database.writeWithoutTransaction { db in
                // As GRDB's transactions, with statements that are prepared once.
                try db.cachedStatement(sql: "BEGIN IMMEDIATE TRANSACTION").execute()
                let result: T
                do {
                    result = try body(db)
                    guard !isMoved else { throw StorageError.failed("its folder was moved") }
                    try db.cachedStatement(sql: "COMMIT TRANSACTION").execute()
                } catch {
                    try? db.rollback()
                    throw error
                }
                committed(db, result)
                return result
            }
        } catch { throw StorageError(error) }
    }

    /// Changes with every commit of another connection. Read on the writing connection, these are
    /// other processes.
    private static func version(_ db: Database) throws -> Int64 {
        var version: Int64 = 0
        try RawStatement("PRAGMA data_version", db).run { version = try $0.integer(0) }
        return version
    }

    /// Must be called within a transaction. Another process may have erased an account, and a
    /// store's number may be another's now, or it may have removed a device.
    func forgetAfterForeignWrites(_ db: Database) throws {
        let version = try Self.version(db)
        memory.withLock { memory in
            if memory.version != version {
                memory.forgetAll()
                positions.forgetAll()
            }
            memory.version = version
        }
    }

    var isFull: Bool { reserve?.isGivenUp ?? false }

    func findRoom() -> Bool { reserve?.keep() ?? false }

    var isMoved: Bool { place?.isLost ?? false }

    /// Leaves the log empty, so that the file alone is a complete copy.
    func close() throws(StorageError) {
        guard !isMoved else {
            // SQLite would remove the log at the path, which may be that of another database by now.
            _ = Unmanaged.passRetained(database as AnyObject)
            return
        }
        do {
            try checkpointer?.close()
            try database.writeWithoutTransaction { try Checkpointer.move(.truncate, $0) }
            try database.close()
        } catch { throw StorageError(error) }
    }
}

/// A file is one process's alone.
extension SQLiteServerStorage {
    var isShared: Bool { false }
    var commitLanes: Int { 1 }
    var readLanes: Int { 2 }
    func observe(_ observer: @escaping @Sendable (StorageNews) -> Void) {}
    func lease(for milliseconds: Int64) throws(StorageError) -> Bool { true }
    func clock() throws(StorageError) -> Int64? { nil }
    func history() throws(StorageError) -> UInt64? { nil }
    func sharedFigures() throws(StorageError) -> SharedFigures? { nil }
}

extension StorageError {
    init(_ error: any Error) {
        switch error {
        case let error as StorageError: self = error
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL: self = .full
        case let error as DatabaseError:
            // Not the error's own description, which may quote arguments.
            let code = error.extendedResultCode.rawValue
            self = .failed("SQLite error \(code), \(error.message ?? "no message")")
        case is RowDecodingError: self = .unreadable
        default: self = .failed("\(type(of: error))")
        }
    }
}
