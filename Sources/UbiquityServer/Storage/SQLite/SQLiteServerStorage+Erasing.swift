// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

/// Erasing takes three steps. The first removes the account's own rows, and records the numbers of
/// its stores. The second removes the content of these stores in slices, because it may be
/// gigabytes. SQLite overwrites removed rows with zeros (`secure_delete`). That leaves copies: in
/// the write-ahead log, and in the unused middle of pages whose rows were once moved to another
/// page, which SQLite does not overwrite. So the third step rewrites the whole file (`VACUUM`), if
/// nobody has to wait long for that, and empties the log, which requires that no program is reading
/// an older state. The second and third steps may happen later, even after the process was killed:
/// `erased` and `chore` record them.
///
/// Deleted and replaced data is only overwritten in the file itself, so the log is emptied every
/// few seconds in which something was written, unless it has been overwritten in them.
extension SQLiteServerStorage {
    func eraseRest(for milliseconds: Int64) throws(StorageError) -> Bool {
        guard try readingWithoutTransaction({ try nextErased($0) }) != nil else { return false }
        return try transact { db in
            let start = ContinuousClock.now
            while let store = try nextErased(db) {
                if try !removeSome(of: store, db) {
                    try db.execute(sql: "DELETE FROM erased WHERE store = ?", arguments: [store])
                }
                if ContinuousClock.now - start >= .milliseconds(milliseconds) {
                    return try nextErased(db) != nil
                }
            }
            return false
        }
    }

    private func nextErased(_ db: Database) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: "SELECT store FROM erased LIMIT 1"))
    }

    /// - Returns: Whether there were any rows.
    private func removeSome(of store: Int64, _ db: Database) throws -> Bool {
        for (table, key) in Self.held {
            let statement = try db.cachedStatement(
                sql: """
                    DELETE FROM \(table) WHERE store = ?1 AND (\(key)) IN (
                        SELECT \(key) FROM \(table) WHERE store = ?1 LIMIT \(Self.removedAtOnce))
                    """)
            try statement.execute(arguments: [store])
            if db.changesCount > 0 { return true }
        }
        return false
    }

    /// The tables with a store's content, and the columns that identify their rows.
    private static let held = [
        ("record", "key"), ("version", "ended, key, time, device, digest"),
        ("folded", "key, run, times"), ("passed", "device"),
        ("span", "first_revision"),
    ]
    /// The number of rows removed between two checks of the time.
    private static let removedAtOnce = 16

    func removeAuditEntries(_ numbers: [Int64]) throws(StorageError) {
        try transact { db in
            let statement = try db.cachedStatement(sql: "DELETE FROM audit WHERE number = ?")
            for number in numbers { try statement.execute(arguments: [number]) }
        }
    }

    /// Does nothing: a page that is freed is overwritten.
    func vacuum(pacedAt uptime: Int64) throws(StorageError) -> Bool { false }

    func scrub(pacedAt uptime: Int64?) throws(StorageError) {
        if let uptime {
            guard try mayScrub(at: uptime) else { return }
        } else {
            while try eraseRest(for: 100) {}
        }
        let start = ContinuousClock.now
        var pause: Int64 = 0
        // Counted from its end, and longer the longer it took, successful or not: a full disk is
        // only detected after a while.
        defer {
            if let uptime {
                let took = Int64((ContinuousClock.now - start) / .milliseconds(1))
                let next = uptime + took + max(pause, took * Self.scrubPauseFactor)
                scrubs.withLock { $0.next = next }
            }
        }
        let quiet = uptime.map(quietMilliseconds)
        do {
            try database.writeWithoutTransaction { try scrub($0, quietMilliseconds: quiet) }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            // Another program is reading what is to be overwritten. The wait is short, so that no
            // answer is delayed.
            pause = Self.busyScrubPause
            throw .failed("the database is being read by another program")
        } catch {
            pause = Self.failedScrubPause
            throw StorageError(error)
        }
    }

    /// In milliseconds, for example if the disk has no space for a second copy.
    private static let failedScrubPause: Int64 = 60_000
    private static let busyScrubPause: Int64 = 1_000
    /// So that scrubbing takes at most a hundredth of the time, however often accounts are erased.
    private static let scrubPauseFactor: Int64 = 100
    /// The time for which pushes wait for a reader of the old file, each time.
    private static let readerMilliseconds = 100

    private func mayScrub(at uptime: Int64) throws(StorageError) -> Bool {
        guard uptime >= scrubs.withLock({ $0.next }) else { return false }
        return try readingWithoutTransaction { try nextErased($0) } == nil
    }

    /// How long nobody has pushed, as far as is known.
    private func quietMilliseconds(at uptime: Int64) -> Int64 {
        scrubs.withLock { scrubs in
            let since = scrubs.quietSince ?? uptime
            scrubs.quietSince = since
            return uptime - since
        }
    }

    /// Whether the file can be rewritten without a noticeable delay for others.
    private func mayRewrite(quietMilliseconds: Int64) -> Bool {
        let bytes = FileStatus(path: database.path)?.bytes ?? .max
        return bytes <= Self.rewrittenAtOnceBytesMax
            || quietMilliseconds >= Self.quietMillisecondsMin && bytes <= Self.rewrittenBytesMax
    }

    /// Takes some tenths of a second.
    private static let rewrittenAtOnceBytesMax = 16 << 20
    /// Takes some seconds.
    private static let rewrittenBytesMax = 256 << 20
    private static let quietMillisecondsMin: Int64 = 600_000

    /// - Parameter quietMilliseconds: As ``quietMilliseconds(at:)``; nil if nobody else uses the file.
    private func scrub(_ db: Database, quietMilliseconds: Int64?) throws {
        if try isAsked("scrub", db), quietMilliseconds.map(mayRewrite) ?? true {
            try db.execute(
                sql: """
                    VACUUM; INSERT OR IGNORE INTO chore (name) VALUES ('truncate');
                    DELETE FROM chore WHERE name = 'scrub'
                    """)
        }
        guard try isAsked("truncate", db) else { return }
        try truncateLog(db, waitingFor: Self.readerMilliseconds)
        try db.execute(sql: "DELETE FROM chore WHERE name = 'truncate'")
    }

    /// Moves written data into the file and empties the log, which may contain older data. Not
    /// while another program reads an older state; then at the next time.
    func emptyLog(pacedAt uptime: Int64) throws(StorageError) {
        let isDue = logEmptying.withLock { next in
            guard uptime >= next else { return false }
            next = uptime + Self.logPause
            return true
        }
        guard isDue, case let bytes = logBytes, bytes > 0 else { return }
        switch checkpointer?.emptying(fileBytes: bytes) {
        case .needless: return
        case .later: return logEmptying.withLock { $0 = uptime }
        case .now, nil: break
        }
        do {
            try database.writeWithoutTransaction { try truncateLog($0, waitingFor: 0) }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            return
        } catch { throw StorageError(error) }
    }

    /// The size of the log's file.
    var logBytes: Int { FileStatus(path: database.path + "-wal")?.bytes ?? 0 }

    private static let logPause: Int64 = 3_000

    private func isAsked(_ chore: String, _ db: Database) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT 1 FROM chore WHERE name = ?")
        return try Bool.fetchOne(statement, arguments: [chore]) ?? false
    }

    func truncateLog(_ db: Database, waitingFor milliseconds: Int) throws {
        checkpointer?.stop()
        try db.execute(sql: "PRAGMA busy_timeout = \(milliseconds)")
        defer {
            let milliseconds = Int(ServerDatabase.busySecondsMax * 1_000)
            try? db.execute(sql: "PRAGMA busy_timeout = \(milliseconds)")
        }
        try Checkpointer.move(.truncate, db)
    }
}
