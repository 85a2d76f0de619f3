// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

extension SQLiteServerStorage {
    func commit(
        _ pushes: [PendingPush], rules: CommitRules
    ) throws(StorageError) -> [Result<CommittedPush, PushRefusal>] {
        let batch = try transact { db in
            try forgetAfterForeignWrites(db)
            var batch = SQLiteBatch(db: db, rules: rules, storage: self)
            for push in pushes {
                let isTaken = !isFull || push.push.onlyTakesAway
                batch.results.append(isTaken ? try batch.commit(push) : .failure(.full))
            }
            try batch.finish()
            return (results: batch.results, touched: batch.touched)
        } committed: { db, batch in
            memory.withLock { memory in
                for (key, store) in batch.touched { memory.remember(store, as: key) }
            }
            for (key, store) in batch.touched { positions.note(store.state, of: key) }
            moveLog(db)
        }
        scrubs.withLock { $0.quietSince = nil }
        return batch.results
    }

    /// Asked in the same transaction: a push after a revocation stores nothing.
    func isSignedIn(_ device: DeviceReference, _ db: Database) throws -> Bool {
        if memory.withLock({ $0.devices.value(device) }) != nil { return true }
        guard try Self.isSignedIn(device, db) else { return false }
        memory.withLock { $0.remember(device) }
        return true
    }

    /// The generation of the account's key; 0 for none, and for no such account. Asked in the same
    /// transaction: a push after the mark stores nothing in clear.
    func generation(of account: AccountID, _ db: Database) throws -> UInt32 {
        if let known = memory.withLock({ $0.generations.value(account) }) { return known }
        let statement = try RawStatement(
            "SELECT \(SealingState.generationColumn) FROM account WHERE id = ?", db)
        statement.bind(text: account.string, at: 1)
        var generation: UInt32 = 0
        try statement.run { generation = try SealingState.generation($0, 0) }
        memory.withLock { $0.generations.set(account, generation, bytes: 0) }
        return generation
    }

    /// Moves the log. What fails is made up for after another commit.
    private func moveLog(_ db: Database) {
        switch checkpointer?.committed() {
        case nil, .nothing: break
        case .move:
            checkpointer?.stop()
            _ = try? db.checkpoint(.passive)
        case .empty: try? truncateLog(db, waitingFor: 0)
        }
    }
}

/// The pushes of one transaction. New state of stores is kept only if it commits.
private struct SQLiteBatch {
    let db: Database
    let rules: CommitRules
    let storage: SQLiteServerStorage
    var touched: [StoreReference: SQLiteStore] = [:]
    var results: [Result<CommittedPush, PushRefusal>] = []
    /// Whether a history was pruned.
    var hasPruned = false
    /// The keys that must not be kept, and are still in the rows of histories.
    private var unkept: [StoreReference: Unkept] = [:]

    private struct Unkept {
        /// Each key with the last row that may have something of it.
        var keys: [Key: Int64] = [:]
        /// The number of the first push with one, which is charged for all.
        let push: Int
    }

    init(db: Database, rules: CommitRules, storage: SQLiteServerStorage) {
        (self.db, self.rules, self.storage) = (db, rules, storage)
    }

    /// - Throws: ``StorageError``, GRDB's errors; the transaction must be rolled back then.
    mutating func commit(
        _ waiting: PendingPush
    ) throws -> Result<CommittedPush, PushRefusal> {
        do { return .success(try decide(waiting)) } catch let refusal as PushRefusal {
            return .failure(refusal)
        } catch StorageError.unreadable { return .failure(.unreadable) }
    }

    /// - Throws: Also ``PushRefusal`` and ``StorageError/unreadable``, before anything of the push is
    ///   written.
    private mutating func decide(_ waiting: PendingPush) throws -> CommittedPush {
        let refusal = try rules.refusal(of: waiting.rights) { try storage.isSignedIn($0, db) }
        if let refusal { throw refusal }
        let rules = rules.of(
            waiting.rights, generation: try storage.generation(of: waiting.store.account, db))
        var store = try known(waiting.store)
        try rules.checkSealing(waiting.push, of: store.state)
        if store.state.history.exceeds(rules.admission.history, byFar: hasPruned) {
            // Before rows get other numbers.
            try removeUnkept()
            store = try known(waiting.store)
            _ = try SQLiteVersion.prune(rules.admission.historyRule, in: &store, db)
            hasPruned = true
            touched[waiting.store] = store
        }
        let keys = waiting.push.transactions.lazy.flatMap { $0.writes.lazy.map(\.key) }
        let counted = waiting.push.countedKeys
        var held: [Key: HeldRecord] = [:]
        var folded: [FoldedIncrement] = []
        if let id = store.id { held = try SQLiteRecord.fetch(keys, of: id, db) }
        var records = held.mapValues(\.record)
        guard rules.mayAnswer(waiting.push, over: records) else { throw PushRefusal.answerTooLarge }
        if let id = store.id, !counted.isEmpty {
            held.merge(try SQLiteRecord.fetchCounts(of: counted, of: id, db)) { $1 }
            records = held.mapValues(\.record)
            let queries = waiting.push.foldedQueries(records)
            folded = try SQLiteFoldedIncrement.fetch(queries, of: id, db)
        }
        var state = store.state
        let committed: CommittedPush
        do {
            committed = try state.admit(
                waiting.push, records: records, folded: folded, by: rules.admission,
                in: waiting.store.epoch(inRun: rules.run ?? storage.run))
        } catch { throw PushRefusal.clockAhead(error) }
        if !committed.isEmpty || state != store.state { store.state = state }
        if !committed.isEmpty {
            if store.id == nil { store.id = try makeStore(waiting.store) }
            let last = committed.history.unkept.isEmpty ? 0 : try SQLiteVersion.lastRow(db)
            try write(committed, over: held, to: &store)
            for key in committed.history.unkept {
                unkept[waiting.store, default: Unkept(push: results.count)].keys[key] = last
            }
        }
        if store.id != nil { touched[waiting.store] = store }
        return committed
    }

    /// Reads each history once for all pushes of the group: that takes milliseconds.
    private mutating func removeUnkept() throws {
        for (name, unkept) in unkept {
            guard var store = touched[name] else { continue }
            let bytes = try SQLiteVersion.remove(unkept.keys, of: &store, db)
            touched[name] = store
            guard case .success(var push) = results[unkept.push] else { continue }
            push.searchedBytes = bytes
            results[unkept.push] = .success(push)
        }
        unkept = [:]
    }

    mutating func finish() throws {
        try removeUnkept()
        for store in touched.keys { try touched[store]?.update(db) }
    }

    private func known(_ store: StoreReference) throws -> SQLiteStore {
        try touched[store] ?? storage.memory.withLock { $0.stores.value(store) }
            ?? SQLiteStore.fetch(store, db) ?? SQLiteStore()
    }

    /// - Returns: The number of the new store's row.
    private func makeStore(_ key: StoreReference) throws -> Int64? {
        let account: StatementArguments = [key.account.string]
        let exists = try Bool.fetchOne(
            db, sql: "SELECT 1 FROM account WHERE id = ?", arguments: account)
        guard exists ?? false else { throw PushRefusal.noSuchAccount }
        let count = try Int.fetchOne(
            db, sql: "SELECT count(*) FROM store WHERE account = ?", arguments: account)
        guard count ?? 0 < rules.storesPerAccountMax else { throw PushRefusal.tooManyStores }
        return try SQLiteStore.insert(key, db)
    }

    private func write(
        _ push: CommittedPush, over held: [Key: HeldRecord], to store: inout SQLiteStore
    ) throws {
        guard let id = store.id else { return }
        try SQLiteVersion.write(push, over: held, of: &store, db)
        for record in push.writes {
            try SQLiteRecord.write(
                HeldRecord(record, of: push), of: id, running: storage.running, db)
        }
        for increment in push.folded {
            try SQLiteFoldedIncrement.write(increment, of: id, running: storage.running, db)
        }
    }
}
