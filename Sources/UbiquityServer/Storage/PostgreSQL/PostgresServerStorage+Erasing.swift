// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// Erasing takes two steps. The first removes the account's own rows, and records the numbers of its
/// stores. The second removes the content of these stores in slices, because it may be gigabytes; any
/// node may do it, each other stores.
///
/// From then on no query returns the data. Unlike with SQLite, copies of it remain: PostgreSQL only
/// marks a removed row as dead, and `VACUUM` frees its space, which keeps the bytes until something
/// else is written there: ``vacuum(pacedAt:)`` asks for that. The write-ahead log has them until it is recycled, and so have its
/// archive, the standbys and the backups for as long as the operator keeps them. So
/// ``scrub(pacedAt:)`` and ``emptyLog(pacedAt:)`` do nothing here: `docs/OPERATING.md` says what an
/// operator can do.
extension PostgresServerStorage {
    struct VacuumState {
        /// Whether anything was removed since the last time.
        var isNeeded = false
        /// In milliseconds of uptime.
        var next = Int64.min
    }

    /// Skips the stores that another node is removing.
    func eraseRest(for milliseconds: Int64) throws(StorageError) -> Bool {
        let start = ContinuousClock.now
        let isAny = try reading(SQLStatement("SELECT 1 FROM ubiquity.erased LIMIT 1")) {
            !$0.rows.isEmpty
        }
        guard isAny else { return false }
        while try removeSome() {
            if ContinuousClock.now - start >= .milliseconds(milliseconds) { return true }
        }
        return false
    }

    /// Removes some rows of a store, and takes it off the list with the last ones.
    /// - Returns: Whether there was anything to do.
    private func removeSome() throws(StorageError) -> Bool {
        try writing { transaction in
            let next = try transaction.run(
                "SELECT account, store FROM ubiquity.erased LIMIT 1 FOR UPDATE SKIP LOCKED"
            ).rows.first
            guard let next else { return false }
            let store: [SQLValue] = [.text(try next.text(0)), .integer(try next.integer(1))]
            let removed = try transaction.run(
                Self.removing.map { SQLStatement($0, store) })
            if removed.allSatisfy({ $0.changes < Self.removedAtOnce }) {
                try transaction.run([
                    SQLStatement(
                        "DELETE FROM ubiquity.erased WHERE account = $1 AND store = $2", store)
                ])
                vacuuming.withLock { $0.isNeeded = true }
            }
            return true
        }
    }

    /// On a connection of its own, because it may take minutes. Small tables are rewritten, for which
    /// pushes wait some tenths of a second: PostgreSQL does not overwrite what it frees in the others.
    /// What a node that ends has not vacuumed, PostgreSQL does by itself, later.
    func vacuum(pacedAt uptime: Int64) throws(StorageError) -> Bool {
        let isDue = vacuuming.withLock { state in
            guard state.isNeeded, uptime >= state.next else { return false }
            state = VacuumState(next: uptime &+ Self.vacuumMilliseconds)
            return true
        }
        guard isDue else { return false }
        do {
            let connection = try PostgresConnection(settings)
            // Whoever waits for a table that is in use holds up everybody who comes after.
            let results = try connection.run(
                [
                    SQLStatement("SET statement_timeout = 0"),
                    SQLStatement("SET lock_timeout = 1000"), Self.readingVacuumedBytes,
                ], milliseconds: settings.answerMilliseconds)
            func vacuum(_ options: String) throws(PostgresFailure) {
                let tables = Self.vacuumed.joined(separator: ", ")
                _ = try connection.run(
                    [SQLStatement("VACUUM \(options) \(tables)")],
                    milliseconds: Self.vacuumMilliseconds)
            }
            let isSmall = try results[2].rows[0].integer(0) <= Self.rewrittenBytesMax
            do throws(PostgresFailure) { try vacuum(isSmall ? "(FULL)" : "") } catch {
                guard isSmall else { throw error }
                try vacuum("")
            }
        } catch { throw StorageError(postgres: error) }
        return true
    }

    private static let vacuumed = ["ubiquity.record", "ubiquity.version", "ubiquity.folded"]
    private static let rewrittenBytesMax: Int64 = 16 << 20
    private static let readingVacuumedBytes = SQLStatement(
        "SELECT sum(pg_total_relation_size(name::regclass))::bigint FROM unnest($1::text[]) AS name",
        .texts(vacuumed))

    /// The least time between two beginnings, which also is the most that one may take.
    private static let vacuumMilliseconds: Int64 = 3_600_000

    /// One statement for each table with a store's content. The rows are found by their places, which
    /// nobody moves: who would needs the store, which is locked or gone.
    private static let removing = ["record", "version", "folded", "passed", "span"].map { table in
        """
        DELETE FROM ubiquity.\(table) WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM ubiquity.\(table) WHERE account = $1 AND store = $2
            LIMIT \(removedAtOnce)))
        """
    }

    /// The number of rows removed between two checks of the time.
    private static let removedAtOnce = 64

    func removeAuditEntries(_ numbers: [Int64]) throws(StorageError) {
        guard !numbers.isEmpty else { return }
        try writing { transaction in
            _ = try transaction.run(
                "DELETE FROM ubiquity.audit WHERE number = ANY($1)", .integers(numbers))
        }
    }

    /// Removes the rest, unless it is to be done at a pace; nothing more, see above.
    func scrub(pacedAt uptime: Int64?) throws(StorageError) {
        if uptime == nil { while try eraseRest(for: 100) {} }
    }

    /// Does nothing, see above.
    func emptyLog(pacedAt uptime: Int64) throws(StorageError) {}
}
