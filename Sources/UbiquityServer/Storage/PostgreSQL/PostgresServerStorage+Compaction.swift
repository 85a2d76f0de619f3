// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Compaction works on a store under the lock of its row, on what it reads there: any node may do it
/// at any time.
extension PostgresServerStorage {
    /// Reads the heads of all stores, some at a time, each time of another moment. An index of
    /// tombstones would make every push slower: PostgreSQL would have to change all of a row's index
    /// entries with each revision.
    func storesWithDeletions() throws(StorageError) -> [StoreReference] {
        try stores { state, _ in state.deletions > 0 || state.folded > 0 }
    }

    /// The stores with such states, in accounts with such limits.
    func stores(
        where isWanted: (StoreState, AccountLimits) -> Bool
    ) throws(StorageError) -> [StoreReference] {
        var found: [StoreReference] = []
        var last: PostgresRow?
        repeat {
            let statement = SQLStatement(
                """
                SELECT account, identifier, revision, newest, head,
                    (SELECT limits FROM ubiquity.account a WHERE a.id = s.account)
                FROM ubiquity.store s
                WHERE (account, identifier) > ($1, $2)
                ORDER BY account, identifier LIMIT $3
                """, .text(try last?.text(0) ?? ""), .text(try last?.text(1) ?? ""),
                .integer(Int64(Self.headsAtOnce)))
            let page = try reading(statement, \.rows)
            for row in page {
                guard
                    let state = try? StoreHead.state(
                        row.bytes(4), newest: row.timestamp(3), revision: row.revision(2)
                    ).state, let limits = try? AccountLimits(stored: row.textIfAny(5)),
                    isWanted(state, limits),
                    let account = try? row.account(0), let identifier = try? row.store(1)
                else { continue }
                found.append(StoreReference(account: account, identifier: identifier))
            }
            last = page.last
        } while last != nil
        return found
    }

    private static let headsAtOnce = 2_000

    /// Locks the store's row and reads it and what else decides in one flight, and removes rows and
    /// writes the store's in another.
    func compact(
        _ rule: CompactionRule, folded: CompactionRule, in store: StoreReference, now: Int64
    ) throws(StorageError) -> Int {
        func look(isLocking: Bool) -> [SQLStatement] {
            PostgresStore.reading([store], isLocking: isLocking) + [
                Self.tombstones(of: store),
                Self.leastPassed(of: store, liveSince: now - rule.liveMilliseconds),
                Self.increments(of: store),
                SQLStatement("SELECT milliseconds FROM ubiquity.running"),
            ]
        }
        /// The statements to run, and the number of tombstones that they drop; nil if there is
        /// nothing to do.
        func judge(
            _ results: [PostgresResult]
        ) throws -> (statements: [SQLStatement], count: Int)? {
            let found = try PostgresStore.read([store], from: results[0...1])[store]
            guard var found = try found?.get() else { return nil }
            guard let time = results[5].rows.first else { throw StorageError.unreadable }
            let running = try time.time(0)
            let passed = try results[3].rows.first.flatMap { row in
                row.isNull(0) ? nil : try row.revision(0)
            }
            let compacted = found.state.compact(
                try results[2].rows.map { try CompactionRule.Tombstone($0) }, by: rule,
                passed: passed, running: running)
            let dropped = found.state.compactFolded(
                try results[4].rows.map(CompactionRule.Tombstone.init(increment:)), by: folded,
                running: running)
            guard compacted != nil || dropped != nil else { return nil }
            let removing = [
                compacted.map { Self.removingTombstones(of: found, through: $0.revision) },
                dropped.map { Self.removingIncrements(of: found, through: $0.revision) },
            ].compactMap(\.self)
            return (removing + PostgresStore.updating([found]), compacted?.count ?? 0)
        }
        // Mostly there is nothing to do: then nothing is locked, and no commit is waited for.
        let isAny = try reading(look(isLocking: false)) { results, _ in try judge(results) != nil }
        guard isAny else { return 0 }
        return try writing { transaction in
            let results = try transaction.run(look(isLocking: true))
            guard let (statements, count) = try judge(results) else { return 0 }
            try transaction.run(statements)
            return count
        }
    }

    private static func tombstones(of store: StoreReference) -> SQLStatement {
        SQLStatement(
            """
            SELECT record.revision, record.committed, record.time, octet_length(record.key)
            FROM ubiquity.store JOIN ubiquity.record
                ON record.account = store.account AND record.store = store.number
            WHERE store.account = $1 AND store.identifier = $2 AND record.value IS NULL
            ORDER BY record.revision
            """, .text(store.account.string), .text(store.identifier.string))
    }

    private static func removingTombstones(
        of store: PostgresStore, through revision: Int64
    ) -> SQLStatement {
        SQLStatement(
            """
            DELETE FROM ubiquity.record
            WHERE account = $1 AND store = $2 AND value IS NULL AND revision <= $3
            """, .text(store.reference.account.string), .integer(store.number),
            .integer(revision))
    }

    /// The smallest revision that a live device of the store is known to have.
    private static func leastPassed(
        of store: StoreReference, liveSince: Int64
    ) -> SQLStatement {
        SQLStatement(
            """
            SELECT min(passed.revision) FROM ubiquity.store
            JOIN ubiquity.passed ON passed.account = store.account AND passed.store = store.number
            JOIN ubiquity.device ON device.account = passed.account AND device.id = passed.device
            WHERE store.account = $1 AND store.identifier = $2 AND device.seen >= $3
            """, .text(store.account.string), .text(store.identifier.string), .integer(liveSince))
    }

    /// In the order in which they were folded.
    private static func increments(of store: StoreReference) -> SQLStatement {
        SQLStatement(
            """
            SELECT folded.mark, folded.committed, folded.time
            FROM ubiquity.store JOIN ubiquity.folded
                ON folded.account = store.account AND folded.store = store.number
            WHERE store.account = $1 AND store.identifier = $2 ORDER BY folded.mark
            """, .text(store.account.string), .text(store.identifier.string))
    }

    private static func removingIncrements(
        of store: PostgresStore, through revision: Int64
    ) -> SQLStatement {
        SQLStatement(
            "DELETE FROM ubiquity.folded WHERE account = $1 AND store = $2 AND mark < $3",
            .text(store.reference.account.string), .integer(store.number),
            .integer(FoldMark(revision: revision + 1, epoch: 0).rawValue))
    }

    /// Only by the node that has the lease: the time of several would be added up.
    func addRunningTime(_ milliseconds: Int64) throws(StorageError) {
        try writing { transaction in
            // Rather too little than twice: tombstones may be kept a minute longer.
            guard !transaction.mayBeRepeated else { return }
            try transaction.run(
                "UPDATE ubiquity.running SET milliseconds = milliseconds + $1",
                .integer(milliseconds))
        }
    }
}
