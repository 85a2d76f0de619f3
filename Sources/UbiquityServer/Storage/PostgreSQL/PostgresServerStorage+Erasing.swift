// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Erasing takes two steps. The first removes the account's own rows, and records the numbers of its
/// stores. The second removes the content of these stores in slices, because it may be gigabytes; any
/// node may do it, each other stores.
///
/// From then on no query returns the data. Unlike with SQLite, copies of it remain: PostgreSQL only
/// marks a removed row as dead, and `VACUUM` frees its space, which keeps the bytes until something
/// else is written there. The write-ahead log has them until it is recycled, and so have its
/// archive, the standbys and the backups for as long as the operator keeps them. So
/// ``scrub(pacedAt:)`` and ``emptyLog(pacedAt:)`` do nothing here: `docs/OPERATING.md` says what an
/// operator can do.
extension PostgresServerStorage {
    /// Locks the directory, the account, its stores and its devices, so that no push, sign-in or
    /// chore of the account is committed afterwards.
    func erase(
        _ account: AccountID, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(.accountErased, of: account, by: actor)
        let owner: [PostgresValue] = [.text(account.string)]
        let wasThere = try doing { transaction in
            let found = try transaction.run([
                Directory.locking, Self.locking(account), Self.lockingStores(of: account),
                PostgresStatement(
                    "SELECT 1 FROM ubiquity.device WHERE account = $1 ORDER BY id FOR UPDATE", owner
                ),
                PostgresAudit.reading(event),
            ])
            guard !found[1].rows.isEmpty else { return false }
            try checkActor(actor, of: account, transaction)
            try transaction.run(
                Self.erasing.map { PostgresStatement($0, owner) } + [Directory.adding(-1)]
                    + PostgresAudit.writing(event, at: now, after: found[4]))
            return true
        }
        if wasThere { announce([.accountChanged(account)]) }
        return wasThere
    }

    private static let erasing =
        [
            """
            INSERT INTO ubiquity.erased (account, store)
            SELECT account, number FROM ubiquity.store WHERE account = $1
            """
        ]
        + ["store", "device", "code", "sign_in_request", "identity"].map { table in
            "DELETE FROM ubiquity.\(table) WHERE account = $1"
        } + ["DELETE FROM ubiquity.account WHERE id = $1"]

    /// Skips the stores that another node is removing.
    func eraseRest(for milliseconds: Int64) throws(StorageError) -> Bool {
        let start = ContinuousClock.now
        let isAny = try reading(PostgresStatement("SELECT 1 FROM ubiquity.erased LIMIT 1")) {
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
            let store: [PostgresValue] = [.text(try next.text(0)), .integer(try next.integer(1))]
            let removed = try transaction.run(
                Self.removing.map { PostgresStatement($0, store) })
            if removed.allSatisfy({ $0.changes < Self.removedAtOnce }) {
                try transaction.run([
                    PostgresStatement(
                        "DELETE FROM ubiquity.erased WHERE account = $1 AND store = $2", store)
                ])
            }
            return true
        }
    }

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

    /// Removes the rest, unless it is to be done at a pace; nothing more, see above.
    func scrub(pacedAt uptime: Int64?) throws(StorageError) {
        if uptime == nil { while try eraseRest(for: 100) {} }
    }

    /// Does nothing, see above.
    func emptyLog(pacedAt uptime: Int64) throws(StorageError) {}
}
