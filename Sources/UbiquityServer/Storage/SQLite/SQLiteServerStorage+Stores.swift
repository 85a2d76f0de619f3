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
            try SQLiteStore.fetchRemembering(db).reduce(0) { sum, store in
                sum + (try forget(rule, in: store, now: now, db))
            }
        }
        if count > 0 { forgetStates() }
        return count
    }

    private func forget(
        _ rule: ForgettingRule, in store: SQLiteStore, now: Int64, _ db: Database
    ) throws -> Int {
        guard let id = store.id else { return 0 }
        let deletions = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT revision, committed FROM record
                    WHERE store = ? AND value IS NULL ORDER BY revision
                    """), arguments: [id]
        ).map { ForgettingRule.Deletion(revision: $0[0], committed: $0[1]) }
        let passed = try leastPassed(of: id, liveSince: now - rule.liveMilliseconds, db)
        guard let horizon = rule.horizon(of: deletions, passed: passed, now: now) else { return 0 }
        let times = try removeDeletions(of: id, upTo: horizon, db)
        var store = store
        store.state.forget(times, through: horizon)
        try store.update(db)
        return times.count
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

    /// - Returns: Their timestamps.
    private func removeDeletions(
        of store: Int64, upTo horizon: Int64, _ db: Database
    ) throws -> [HybridTimestamp] {
        let times = try Int64.fetchAll(
            db, sql: "SELECT time FROM record WHERE store = ? AND value IS NULL AND revision <= ?",
            arguments: [store, horizon])
        try db.execute(
            sql: "DELETE FROM record WHERE store = ? AND value IS NULL AND revision <= ?",
            arguments: [store, horizon])
        return times.map { HybridTimestamp(rawValue: UInt64(bitPattern: $0)) }
    }
}
