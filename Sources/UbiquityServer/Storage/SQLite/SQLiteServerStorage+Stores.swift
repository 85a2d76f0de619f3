// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

extension SQLiteServerStorage {
    func stores(of account: AccountID) throws(StorageError) -> [StoreSummary] {
        try reading { db in
            let identifiers = try String.fetchAll(
                db.cachedStatement(
                    sql: "SELECT identifier FROM store WHERE account = ? ORDER BY identifier"),
                arguments: [account.string])
            return try identifiers.compactMap { text in
                let identifier = try StoreIdentifier(text)
                let key = StoreKey(account: account, identifier: identifier)
                guard let store = try SQLiteStore.fetch(key, db) else { return nil }
                return StoreSummary(
                    identifier: identifier, usage: store.state.usage,
                    position: store.state.lineage.position)
            }
        }
    }

    func read(_ store: StoreKey, since: Position?) throws(StorageError) -> StoreRead {
        try reading { db in
            let stored = try SQLiteStore.fetch(store, db) ?? SQLiteStore()
            let lineage = stored.state.lineage
            let after: Int64?
            switch since.map(lineage.resumption) {
            case nil: after = nil
            case .after(let revision): after = revision
            case .otherHistory: return .otherHistory
            case .forgotten: return .forgotten
            }
            let records = try stored.id.map { id in
                try SQLiteRecord.fetch(of: id, after: after, db)
            }
            return .changes(
                records ?? [], position: lineage.position, isWhole: after == nil)
        }
    }

    func forget(_ rule: ForgettingRule, now: Int64) throws(StorageError) -> Int {
        let count = try writing { db in
            let stores = try Int64.fetchAll(db, sql: "SELECT id FROM store WHERE deletions > 0")
            return try stores.reduce(0) { try $0 + forget(rule, in: $1, now: now, db) }
        }
        if count > 0 { states.withLock { $0.removeAll() } }
        return count
    }

    private func forget(
        _ rule: ForgettingRule, in store: Int64, now: Int64, _ db: Database
    ) throws -> Int {
        let deletions = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT revision, committed FROM record
                    WHERE store = ? AND value IS NULL ORDER BY revision
                    """), arguments: [store]
        ).map { ForgettingRule.Deletion(revision: $0[0], committed: $0[1]) }
        let passed = try leastPassed(of: store, liveSince: now - rule.liveMilliseconds, db)
        guard let horizon = rule.horizon(of: deletions, passed: passed, now: now) else { return 0 }
        return try forgetDeletions(of: store, upTo: horizon, db)
    }

    private func leastPassed(of store: Int64, liveSince: Int64, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT min(passed.revision) FROM passed
                    JOIN store ON store.id = passed.store
                    JOIN device ON device.account = store.account AND device.id = passed.device
                    WHERE passed.store = ? AND device.revoked IS NULL AND device.seen >= ?
                    """), arguments: [store, liveSince])
    }

    private func forgetDeletions(
        of store: Int64, upTo horizon: Int64, _ db: Database
    ) throws -> Int {
        let times = try Int64.fetchAll(
            db, sql: "SELECT time FROM record WHERE store = ? AND value IS NULL AND revision <= ?",
            arguments: [store, horizon])
        let newest = times.map { UInt64(bitPattern: $0) }.max() ?? 0
        try db.execute(
            sql: "DELETE FROM record WHERE store = ? AND value IS NULL AND revision <= ?",
            arguments: [store, horizon])
        // Timestamps have 48 bits of milliseconds, so the sign bit stays clear until the year
        // 6429 and SQLite's order is theirs.
        try db.execute(
            sql: """
                UPDATE store SET deletions = deletions - ?,
                    newest_forgotten = max(newest_forgotten, ?),
                    forgotten_revision = max(forgotten_revision, ?)
                WHERE id = ?
                """,
            arguments: [times.count, Int64(bitPattern: newest), horizon, store])
        return times.count
    }
}
