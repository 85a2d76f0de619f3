// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

/// Erasing takes two steps. The first removes the rows, and SQLite overwrites them with zeros
/// (`secure_delete`). That leaves copies: in the write-ahead log, and in the unused middle of pages
/// whose rows were once moved to another page, which SQLite does not overwrite. So the second
/// writes the whole file anew (`VACUUM`), and empties the log, for which no program may be reading an
/// older state. It may come later, even after the process was killed: `chore` remembers it.
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
        // The row of a store has a number, which another store may get: see `states`.
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
        var pause = Self.failedScrubPause
        defer { if let uptime { scrubs.withLock { $0 = uptime + pause } } }
        do {
            let time = try ContinuousClock().measure {
                try database.writeWithoutTransaction { try scrub($0) }
            }
            pause = Int64(time / .milliseconds(1)) * Self.scrubPauseFactor
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            // Somebody reads what is to be overwritten. Not so long that an answer would wait.
            pause = Self.busyScrubPause
            throw .failed("the database is being read by another program")
        } catch { throw StorageError(error) }
    }

    /// In milliseconds: where the disk has no room for a second copy, say.
    private static let failedScrubPause: Int64 = 60_000
    private static let busyScrubPause: Int64 = 1_000
    /// So that scrubbing takes a hundredth of the time at most, whoever erases how often.
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
        try truncateLog(db)
        try db.execute(sql: "DELETE FROM chore WHERE name = 'truncate'")
    }

    private func isAsked(_ chore: String, _ db: Database) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT 1 FROM chore WHERE name = ?")
        return try Bool.fetchOne(statement, arguments: [chore]) ?? false
    }

    private func truncateLog(_ db: Database) throws {
        try db.execute(sql: "PRAGMA busy_timeout = \(Self.readerMilliseconds)")
        defer {
            let milliseconds = Int(SQLiteFile.busySecondsMax * 1_000)
            try? db.execute(sql: "PRAGMA busy_timeout = \(milliseconds)")
        }
        _ = try db.checkpoint(.truncate)
    }
}
