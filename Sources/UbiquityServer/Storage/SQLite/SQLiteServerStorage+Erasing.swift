// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

/// Erasing takes two steps. The first removes the rows, which SQLite overwrites with zeros
/// (`secure_delete`). That leaves copies: in the write-ahead log, and in the unused middle of pages
/// whose rows were once moved to another page, which SQLite does not overwrite. So the second step
/// rewrites the whole file (`VACUUM`) and empties the log, which requires that no program is
/// reading an older state. It may happen later, even after the process was killed: `chore` records
/// it.
///
/// Deleted and replaced data is only overwritten in the file itself, so the log is emptied every
/// few seconds in which something was written.
extension SQLiteServerStorage {
    func erase(
        _ account: AccountID, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let isErased = try writing { db in
            guard try fetchAccount(db, "id = ?", account.string) != nil else { return false }
            for statement in Self.erasing {
                try db.execute(sql: statement, arguments: ["account": account.string])
            }
            try db.execute(sql: "INSERT OR IGNORE INTO chore (name) VALUES ('scrub')")
            try record(.accountErased, of: account, now: now, by: actor, db)
            return true
        }
        // The row number of a store may be reused by another store: see `states`.
        if isErased { forgetStates() }
        return isErased
    }

    private static let erasing =
        ["record", "span", "passed", "accepted", "folded"].map { table in
            """
            DELETE FROM \(table) WHERE store IN (SELECT id FROM store WHERE account = :account)
            """
        }
        + ["store", "device", "code", "identity"].map { table in
            "DELETE FROM \(table) WHERE account = :account"
        } + ["DELETE FROM account WHERE id = :account"]

    func scrub(pacedAt uptime: Int64?) throws(StorageError) {
        if let uptime, uptime < scrubs.withLock({ $0 }) { return }
        let start = ContinuousClock.now
        var pause: Int64 = 0
        // Counted from its end, and longer the longer it took, successful or not: a full disk is
        // only detected after a while.
        defer {
            if let uptime {
                let took = Int64((ContinuousClock.now - start) / .milliseconds(1))
                let next = uptime + took + max(pause, took * Self.scrubPauseFactor)
                scrubs.withLock { $0 = next }
            }
        }
        do { try database.writeWithoutTransaction { try scrub($0) } } catch let error
            as DatabaseError where error.resultCode == .SQLITE_BUSY
        {
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
    /// How long pushes wait for a reader of the old file, each time.
    private static let readerMilliseconds = 100

    private func scrub(_ db: Database) throws {
        if try isAsked("scrub", db) {
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
        guard isDue, FileStatus(path: database.path + "-wal")?.bytes ?? 0 > 0 else { return }
        do {
            try database.writeWithoutTransaction { try truncateLog($0, waitingFor: 0) }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            return
        } catch { throw StorageError(error) }
    }

    private static let logPause: Int64 = 3_000

    private func isAsked(_ chore: String, _ db: Database) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT 1 FROM chore WHERE name = ?")
        return try Bool.fetchOne(statement, arguments: [chore]) ?? false
    }

    private func truncateLog(_ db: Database, waitingFor milliseconds: Int) throws {
        try db.execute(sql: "PRAGMA busy_timeout = \(milliseconds)")
        defer {
            let milliseconds = Int(SQLiteFile.busySecondsMax * 1_000)
            try? db.execute(sql: "PRAGMA busy_timeout = \(milliseconds)")
        }
        _ = try db.checkpoint(.truncate)
    }
}
