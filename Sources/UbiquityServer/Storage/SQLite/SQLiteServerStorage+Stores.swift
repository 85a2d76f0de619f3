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
                    sql: "SELECT identifier FROM store WHERE account = ? ORDER BY identifier"),
                arguments: [account.string])
            return try rows.compactMap { row in
                let identifier = try row.store(0)
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
                records ?? [], position: lineage.position, isWhole: after == nil,
                horizon: stored.state.horizon)
        }
    }

    func storesWithDeletions() throws(StorageError) -> [StoreKey] {
        try reading { db in
            try Row.fetchAll(
                db, sql: "SELECT account, identifier FROM store WHERE deletions > 0 OR folded > 0"
            ).compactMap { row in
                try? StoreKey(account: row.account(0), identifier: row.store(1))
            }
        }
    }

    func forget(
        _ rule: ForgettingRule, in store: StoreKey, now: Int64
    ) throws(StorageError) -> Int {
        let count = try writing { db in
            try SQLiteStore.fetch(store, db).map { try forget(rule, in: $0, now: now, db) } ?? 0
        }
        if count > 0 { states.withLock { $0[store] = nil } }
        return count
    }

    private func forget(
        _ rule: ForgettingRule, in store: SQLiteStore, now: Int64, _ db: Database
    ) throws -> Int {
        guard let id = store.id else { return 0 }
        let deletions = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT revision, committed, time, key FROM record
                    WHERE store = ? AND value IS NULL ORDER BY revision
                    """), arguments: [id]
        ).map { row in
            ForgettingRule.Deletion(
                revision: try row.revision(0), committed: try row.time(1),
                timestamp: try row.timestamp(2),
                weight: ForgettingRule.Deletion.weight(bytes: (try row.value(3) as Data).count))
        }
        let passed = try leastPassed(of: id, liveSince: now - rule.liveMilliseconds, db)
        let horizon = rule.horizon(
            of: deletions, passed: passed, running: running, newest: store.state.newest)
        guard let horizon else { return 0 }
        try db.execute(
            sql: "DELETE FROM record WHERE store = ? AND value IS NULL AND revision <= ?",
            arguments: [id, horizon])
        var store = store
        store.state.forget(through: horizon, of: deletions)
        try store.update(db)
        return deletions.lazy.filter { $0.revision <= horizon }.count
    }

    func forgetFolded(
        _ rule: ForgettingRule, in store: StoreKey
    ) throws(StorageError) -> Int {
        let count = try writing { db in
            try SQLiteStore.fetch(store, db).map { try forgetFolded(rule, in: $0, db) } ?? 0
        }
        if count > 0 { states.withLock { $0[store] = nil } }
        return count
    }

    private func forgetFolded(
        _ rule: ForgettingRule, in store: SQLiteStore, _ db: Database
    ) throws -> Int {
        guard let id = store.id else { return 0 }
        let all = try SQLiteFolded.ages(of: id, db)
        let horizon = rule.horizon(
            of: all, passed: nil, running: running, newest: store.state.newest)
        guard let horizon else { return 0 }
        let forgotten = all.filter { $0.revision <= horizon }
        try SQLiteFolded.forget(through: horizon, of: id, db)
        var store = store
        store.state.forgetFolded(forgotten.map(\.timestamp), through: horizon)
        try store.update(db)
        return forgotten.count
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
        let sum = try writing { db in
            try Int64.fetchOne(
                db,
                sql: "UPDATE running SET milliseconds = milliseconds + ? RETURNING milliseconds",
                arguments: [milliseconds])
        }
        runningTime.withLock { $0 = sum ?? $0 }
    }
}
