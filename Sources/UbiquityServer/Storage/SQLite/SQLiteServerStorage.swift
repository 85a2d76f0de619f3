// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

/// The storage in one SQLite file.
///
/// State: the connections are thread-safe. `states` is the writer's cache of stores, so that a push
/// need not read their rows. Only ``commit(_:rules:)``, ``compact(_:in:now:)`` and
/// ``erase(_:now:by:)`` use it, on one thread, and the lock is for the compiler. The same goes for
/// `scrubs`, for `logEmptying`, the uptime of the next emptying, and for
/// `runningTime`, the time stored in the file.
final class SQLiteServerStorage: Sendable {
    let database: any DatabaseWriter
    let states = Mutex<[StoreReference: SQLiteStore]>([:])
    let scrubs = Mutex(Scrubs())
    let logEmptying = Mutex<Int64>(0)
    let runningTime: Mutex<Int64>
    /// Nil if no server is running.
    let reserve: DiskReserve?
    /// The conditions for rewriting the database.
    struct Scrubs {
        /// The earliest uptime of the next scrubbing.
        var next: Int64 = 0
        /// The uptime since which nobody has pushed; nil if somebody has pushed since the last
        /// check.
        var quietSince: Int64?
    }

    private let statesVersion = Mutex<Int64?>(nil)

    /// The cache of stores is emptied when it exceeds this size.
    static let rememberedStoresMax = 16_384

    init(_ database: any DatabaseWriter, running: Int64 = 0, reserve: DiskReserve? = nil) {
        self.database = database
        self.reserve = reserve
        runningTime = Mutex(running)
    }

    static func openForServer(
        _ path: String, reserve: DiskReserve? = nil
    ) throws(ServerStartError) -> SQLiteServerStorage {
        let database = try SQLiteFile.openPool(path)
        do {
            // Not 0 if it cannot be read: that would be saved, and tombstones would be kept too
            // long.
            let running = try database.read { db in
                try Int64.fetchOne(db, sql: "SELECT milliseconds FROM running")
            }
            return SQLiteServerStorage(database, running: running ?? 0, reserve: reserve)
        } catch { throw SQLiteFile.startError(error, path) }
    }

    static func openForAdministration(
        _ path: String
    ) throws(ServerStartError) -> SQLiteServerStorage {
        SQLiteServerStorage(try SQLiteFile.openQueue(path))
    }

    var running: Int64 { runningTime.withLock { $0 } }

    func reading<T>(_ body: (Database) throws -> T) throws(StorageError) -> T {
        do { return try database.read(body) } catch { throw StorageError(error) }
    }

    /// Runs the body in one transaction, which an error rolls back. If the disk is full, tries
    /// again with the reserved space.
    func writing<T>(_ body: (Database) throws -> T) throws(StorageError) -> T {
        do { return try writingOnce(body) } catch .full {
            guard reserve?.giveUp() ?? false else { throw .full }
            return try writingOnce(body)
        }
    }

    private func writingOnce<T>(_ body: (Database) throws -> T) throws(StorageError) -> T {
        do {
            return try database.writeWithoutTransaction { db in
                var result: T?
                try db.inTransaction(.immediate) {
                    result = try body(db)
                    return .commit
                }
                return result!
            }
        } catch { throw StorageError(error) }
    }

    /// Changes with every commit of another connection. Read on the writing connection, these are
    /// other processes.
    private static func version(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA data_version")) ?? 0
    }

    /// Must be called within a transaction. Another process may have erased an account, and a
    /// store's number may be another's now.
    func discardStatesAfterForeignWrites(_ db: Database) throws {
        let version = try Self.version(db)
        let isForeign = statesVersion.withLock { known in
            defer { known = version }
            return known != version
        }
        if isForeign { discardStates() }
    }

    func discardStates() { states.withLock { $0.removeAll() } }

    var isFull: Bool { reserve?.isGivenUp ?? false }

    func findRoom() -> Bool { reserve?.keep() ?? false }

    /// Leaves the log empty, so that the file alone is a complete copy.
    func close() throws(StorageError) {
        do {
            try database.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
            try database.close()
        } catch { throw StorageError(error) }
    }
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
