// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

/// Erasing takes two steps. The first removes the rows, and SQLite overwrites them with zeros
/// (`secure_delete`). That leaves copies: in the write-ahead log, and in the unused middle of pages
/// whose rows were once moved to another page, which SQLite does not overwrite. So the second
/// writes the whole file anew (`VACUUM`), and empties the log. It may come later, even after the
/// process was killed: `chore` remembers it.
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
        ["record", "span", "passed"].map { table in
            """
            DELETE FROM \(table) WHERE store IN (SELECT id FROM store WHERE account = :account)
            """
        }
        + ["store", "device", "code", "identity"].map { table in
            "DELETE FROM \(table) WHERE account = :account"
        } + ["DELETE FROM account WHERE id = :account"]

    func scrub(pacedAt uptime: Int64?) throws(StorageError) {
        if let uptime, uptime < scrubs.withLock({ $0 }) { return }
        do {
            try database.writeWithoutTransaction { db in
                let isAsked = try Bool.fetchOne(
                    db.cachedStatement(sql: "SELECT 1 FROM chore WHERE name = 'scrub'"))
                guard isAsked ?? false else { return }
                let time = try ContinuousClock().measure { try scrub(db) }
                let pause = Int64(time / .milliseconds(1)) * Self.scrubPauseFactor
                if let uptime { scrubs.withLock { $0 = uptime + pause } }
            }
        } catch {
            // Not at every tick, where the disk is too full for a second copy.
            if let uptime { scrubs.withLock { $0 = uptime + Self.failedScrubPause } }
            throw StorageError(error)
        }
    }

    /// So that scrubbing takes a hundredth of the time at most, whoever erases.
    private static let scrubPauseFactor: Int64 = 100
    private static let failedScrubPause: Int64 = 60_000

    private func scrub(_ db: Database) throws {
        try db.execute(sql: "VACUUM")
        // Throws if a reader keeps the log busy.
        _ = try db.checkpoint(.truncate)
        try db.execute(sql: "DELETE FROM chore WHERE name = 'scrub'")
    }
}
