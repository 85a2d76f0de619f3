// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

/// The storage in one SQLite file.
///
/// State: the connections guard themselves. `states` is the writer's memory of stores, so that a
/// push need not read their rows; only ``commit(_:rules:)``, ``forget(_:in:now:)`` and
/// ``erase(_:now:by:)`` use it, which come from one thread, and the lock is there for the compiler.
/// `foreignVersion`, `scrubs`, `logEmptying`, the uptime of the next emptying, and `runningTime`, which
/// is what the file has of it, likewise.
final class SQLiteServerStorage: Sendable {
    let database: any DatabaseWriter
    let states = Mutex<[StoreKey: SQLiteStore]>([:])
    let scrubs = Mutex(Scrubs())
    let logEmptying = Mutex<Int64>(0)
    let runningTime: Mutex<Int64>
    /// Nil where no server runs.
    let reserve: DiskReserve?
    /// When the database may be written anew.
    struct Scrubs {
        /// The uptime of the next time.
        var next: Int64 = 0
        /// Nobody has pushed since this uptime; nil: since the last look.
        var quietSince: Int64?
    }

    private let statesVersion = Mutex<Int64?>(nil)
    private let foreignVersion = Mutex<Int64?>(nil)

    /// Above, the writer's memory of stores begins anew.
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
            // Not 0 where it cannot be read: it would be saved, and deletions be remembered too long.
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

    /// In one transaction, which the error of the body rolls back. Where the disk is full, once more with the
    /// room that was kept for that.
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

    func hasForeignWrites() throws(StorageError) -> Bool {
        do {
            let version = try database.writeWithoutTransaction { try Self.version($0) }
            return foreignVersion.withLock { known in
                defer { known = version }
                return known != nil && known != version
            }
        } catch { throw StorageError(error) }
    }

    /// It changes with every commit of another connection. Asked on the connection that writes,
    /// these are other processes.
    private static func version(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA data_version")) ?? 0
    }

    /// Within a transaction. Another process may have erased an account, and a store's number may
    /// be another's now.
    func forgetStatesAfterForeignWrites(_ db: Database) throws {
        let version = try Self.version(db)
        let isForeign = statesVersion.withLock { known in
            defer { known = version }
            return known != version
        }
        if isForeign { forgetStates() }
    }

    func forgetStates() { states.withLock { $0.removeAll() } }

    var isFull: Bool { reserve?.isGivenUp ?? false }

    func findRoom() -> Bool { reserve?.keep() ?? false }

    /// Leaves the log empty, so that the file alone is a whole copy.
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
