// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB

/// Opens a server's database.
///
/// The database file, its log and its index are opened by SQLite alone. By hand they are only
/// created: closing any descriptor of the file releases all of SQLite's locks on it in this process
/// (`docs/decisions/0021`).
enum ServerDatabase {
    static let busySecondsMax: TimeInterval = 5
    static let readersMax = 4
    /// Larger files are not read through at the start, because that would take long. Damage in them
    /// is found when it is encountered.
    static let checkedBytesMax = 256 << 20

    /// For the server: one writer, and readers that do not wait for it. The writer leaves the log to
    /// a ``Checkpointer``.
    static func openPool(_ path: String) throws(ServerStartError) -> DatabasePool {
        do {
            try check(path, isThorough: true)
            let pool = try DatabasePool(path: path, configuration: configuration)
            try pool.writeWithoutTransaction { db in
                try prepare(db, path)
                try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
            }
            return pool
        } catch { throw startError(error, path) }
    }

    /// A single connection: for a command while no server is running, and for ``Checkpointer``.
    static func openQueue(_ path: String) throws(ServerStartError) -> DatabaseQueue {
        do {
            try check(path, isThorough: false)
            var configuration = Self.configuration
            configuration.journalMode = .wal
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            try queue.writeWithoutTransaction { try prepare($0, path) }
            return queue
        } catch { throw startError(error, path) }
    }

    /// Checks before anything is written, since even switching to WAL mode writes: a damaged file,
    /// or one of another program, stays unchanged, unless a transaction was cut off in it, before there was
    /// a log. That is taken back first, which needs the right to write.
    private static func check(_ path: String, isThorough: Bool) throws {
        guard FileManager.default.fileExists(atPath: path) else { return }
        var configuration = Self.configuration
        configuration.readonly = !FileManager.default.fileExists(atPath: path + "-journal")
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        try queue.read { db in
            _ = try SQLiteSchema.check(db, path: path)
            if isThorough, size <= checkedBytesMax, let damage = try SQLiteSchema.damage(db) {
                throw ServerStartError.databaseDamaged(path: path, reason: damage)
            }
        }
        try queue.close()
    }

    private static func prepare(_ db: Database, _ path: String) throws {
        try SQLiteSchema.migrate(db, path: path)
        // An answer follows the flush of the log. Set after the connection is made, because GRDB
        // sets NORMAL with WAL.
        try db.execute(sql: "PRAGMA synchronous = FULL")
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.busyMode = .timeout(busySecondsMax)
        configuration.maximumReaderCount = readersMax
        configuration.foreignKeysEnabled = false
        configuration.label = "ubiquity.server"
        // Removed data is overwritten, not merely released for overwriting.
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA secure_delete = ON") }
        return configuration
    }

    static func startError(_ error: any Error, _ path: String) -> ServerStartError {
        if let error = error as? ServerStartError { return error }
        guard let error = error as? DatabaseError else {
            return .fileUnusable(path: path, reason: "\(error)")
        }
        let reason = error.message ?? "error \(error.extendedResultCode.rawValue)"
        return switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: .databaseDamaged(path: path, reason: reason)
        case .SQLITE_FULL: .diskFull(path: path)
        default: .fileUnusable(path: path, reason: reason)
        }
    }
}
