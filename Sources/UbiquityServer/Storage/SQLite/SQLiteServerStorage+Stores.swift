// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

extension SQLiteServerStorage {
    func stores(of account: AccountID) throws(StorageError) -> [StoreSummary] {
        try reading { db in
            let rows = try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT identifier, name FROM store LEFT JOIN app USING (identifier)
                        WHERE account = ? ORDER BY identifier
                        """),
                arguments: [account.string])
            return try rows.compactMap { row in
                let identifier = try row.store(0)
                let key = StoreReference(account: account, identifier: identifier)
                guard let store = try SQLiteStore.fetch(key, db) else { return nil }
                return StoreSummary(
                    identifier: identifier, usage: store.state.usage,
                    position: store.state.lineage.position, appName: try row.textIfAny(1),
                    contentGeneration: store.state.contentGeneration)
            }
        }
    }

    func positions(
        of stores: [StoreReference]
    ) throws(StorageError) -> [StoreReference: Position] {
        try reading { db in
            var positions: [StoreReference: Position] = [:]
            for store in stores {
                positions[store] = try SQLiteStore.fetch(store, db)?.state.lineage.position
            }
            return positions
        }
    }

    func unchanged(
        _ store: StoreReference, since position: Position, sealedWith generation: UInt32?
    ) -> StoreRead? {
        guard let head = positions.head(of: store), head.position == position,
            generation == nil || head.generation == nil || generation == head.generation
        else { return nil }
        return .changes([], position: position, isWhole: false, horizon: head.horizon)
    }

    func read(
        _ store: StoreReference, since: Position?, sealedWith generation: UInt32?
    ) throws(StorageError) -> StoreRead {
        if let since, let read = unchanged(store, since: since, sealedWith: generation) {
            return read
        }
        let removals = positions.generation
        return try reading { db in
            let stored = try SQLiteStore.fetch(store, db) ?? SQLiteStore()
            if stored.id != nil { positions.note(stored.state, of: store, since: removals) }
            if let generation, !stored.state.isReadable(with: generation) { return .unsealed }
            let lineage = stored.state.lineage
            let after: Int64?
            switch since.map(lineage.resumption) {
            case nil: after = nil
            case .after(let revision): after = revision
            case .otherHistory: return .otherHistory
            case .compacted: return .compacted
            }
            let records = try stored.id.map { id in
                try SQLiteRecord.fetch(of: id, after: after, db)
            }
            return .changes(
                records ?? [], position: lineage.position, isWhole: after == nil,
                horizon: stored.state.horizon)
        }
    }

    func storesWithDeletions() throws(StorageError) -> [StoreReference] {
        try reading { db in
            try Row.fetchAll(db, sql: Self.storesWithDeletions).compactMap { row in
                try? StoreReference(account: row.account(0), identifier: row.store(1))
            }
        }
    }

    /// Goes from store to store in the indexes, and not through all records.
    private static let storesWithDeletions = """
        WITH RECURSIVE
            deleting (id) AS (
                SELECT min(store) FROM record WHERE value IS NULL
                UNION ALL
                SELECT (SELECT min(store) FROM record WHERE value IS NULL AND store > id)
                FROM deleting WHERE id IS NOT NULL),
            folding (id) AS (
                SELECT min(store) FROM folded
                UNION ALL
                SELECT (SELECT min(store) FROM folded WHERE store > id)
                FROM folding WHERE id IS NOT NULL)
        SELECT account, identifier FROM store
        WHERE id IN (SELECT id FROM deleting UNION SELECT id FROM folding)
        """

    func compact(
        _ rule: CompactionRule, folded: CompactionRule, in store: StoreReference, now: Int64
    ) throws(StorageError) -> Int {
        try transact { db in
            memory.withLock { $0.stores.remove(store) }
            guard var found = try SQLiteStore.fetch(store, db), let id = found.id else { return 0 }
            let passed = try leastPassed(of: id, liveSince: now - rule.liveMilliseconds, db)
            let compacted = found.state.compact(
                try tombstones(of: id, db), by: rule, passed: passed, running: running)
            let dropped = found.state.compactFolded(
                try SQLiteFoldedIncrement.ages(of: id, db), by: folded, running: running)
            guard compacted != nil || dropped != nil else { return 0 }
            if let compacted {
                try db.execute(
                    sql: "DELETE FROM record WHERE store = ? AND value IS NULL AND revision <= ?",
                    arguments: [id, compacted.revision])
            }
            if let dropped {
                try SQLiteFoldedIncrement.compact(through: dropped.revision, of: id, db)
            }
            try found.update(db)
            return compacted?.count ?? 0
        } committed: { _, _ in
            positions.forget(store)
        }
    }

    /// In the order of their revisions.
    private func tombstones(
        of store: Int64, _ db: Database
    ) throws -> [CompactionRule.Tombstone] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT revision, committed, time, length(key) FROM record
                    WHERE store = ? AND value IS NULL ORDER BY revision
                    """), arguments: [store]
        ).map { try CompactionRule.Tombstone($0) }
    }

    private func leastPassed(of store: Int64, liveSince: Int64, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT min(passed.revision) FROM passed
                    JOIN store ON store.id = passed.store
                    JOIN device ON device.account = store.account AND device.id = passed.device
                    WHERE passed.store = ? AND device.seen >= ?
                    """), arguments: [store, liveSince])
    }

    func addRunningTime(_ milliseconds: Int64) throws(StorageError) {
        let sum = try transact { db in
            try Int64.fetchOne(
                db,
                sql: "UPDATE running SET milliseconds = milliseconds + ? RETURNING milliseconds",
                arguments: [milliseconds])
        }
        runningTime.withLock { $0 = sum ?? $0 }
    }
}
