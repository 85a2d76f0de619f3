// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

extension SQLiteServerStorage {
    func versions(
        of store: StoreReference, key: Key?, currentOnly: Bool,
        _ choose: (StoreState, [HistoryRule.Line]) -> [Int]
    ) throws(StorageError) -> [StoredVersion] {
        try reading { db in
            let stored = try SQLiteStore.fetch(store, db) ?? SQLiteStore()
            guard let id = stored.id else {
                _ = choose(stored.state, [])
                return []
            }
            let found =
                currentOnly
                ? SQLiteVersion.Found() : try SQLiteVersion.found(of: stored, key: key, db)
            let lines = try found.lines + SQLiteVersion.currentLines(of: id, key: key, db)
            return try choose(stored.state, lines).map { place in
                let line = lines[place]
                let value =
                    if let packed = found.packed(place) {
                        packed.value
                    } else { try SQLiteVersion.value(of: line, in: id, db) }
                return StoredVersion(line: line, value: value)
            }
        }
    }

    func storesToPrune(_ rule: HistoryRule) throws(StorageError) -> [StoreReference] {
        try reading { db in
            try Row.fetchAll(db, sql: Self.storesWithHistory).compactMap { row in
                guard let id = try? row.integer(0), let account = try? row.account(1),
                    let identifier = try? row.store(2),
                    let state = try? SQLiteStore.head(of: id, db).state,
                    let limits = try? AccountLimits(stored: row.valueIfAny(3)),
                    state.history.isDue(within: rule.of(limits).limits, now: rule.now)
                else { return nil }
                return StoreReference(account: account, identifier: identifier)
            }
        }
    }

    /// Goes from store to store in the index, and not through all versions.
    private static let storesWithHistory = """
        WITH RECURSIVE
            kept (id) AS (
                SELECT min(store) FROM version
                UNION ALL
                SELECT (SELECT min(store) FROM version WHERE store > id)
                FROM kept WHERE id IS NOT NULL)
        SELECT store.id, store.account, store.identifier, account.limits
        FROM store JOIN account ON account.id = store.account
        WHERE store.id IN (SELECT id FROM kept)
        """

    /// Makes a row of each version of all stores.
    func unpackHistory() throws(StorageError) {
        try transact { db in
            memory.withLock { $0.forgetAll() }
            try SQLiteVersion.unpackAll(db)
        }
    }

    func pruneHistory(
        _ rule: HistoryRule, of store: StoreReference
    ) throws(StorageError) -> Int {
        try transact { db in
            memory.withLock { $0.stores.remove(store) }
            guard var stored = try SQLiteStore.fetch(store, db) else { return 0 }
            let account = try SQLiteTransaction(db: db).run([.account(store.account)])[0].rows.first
            let limits = try account.map(Account.init)?.limits ?? AccountLimits()
            let count = try SQLiteVersion.prune(rule.of(limits), in: &stored, db)
            try stored.update(db)
            return count
        }
    }
}
