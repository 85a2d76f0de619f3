// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

extension SQLiteServerStorage {
    func commit(
        _ pushes: [PendingPush], rules: CommitRules
    ) throws(StorageError) -> [PushOutcome] {
        let batch = try writing { db in
            try discardStatesAfterForeignWrites(db)
            var batch = SQLiteBatch(db: db, rules: rules, storage: self)
            for push in pushes {
                let isTaken = !isFull || push.push.onlyTakesAway
                batch.outcomes.append(isTaken ? try batch.commit(push) : .full)
            }
            try batch.finish()
            return (outcomes: batch.outcomes, touched: batch.touched)
        }
        scrubs.withLock { $0.quietSince = nil }
        states.withLock { states in
            if states.count + batch.touched.count > Self.rememberedStoresMax { states.removeAll() }
            states.merge(batch.touched) { $1 }
        }
        return batch.outcomes
    }
}

/// The pushes of one transaction. New state of stores is kept only if it commits.
private struct SQLiteBatch {
    let db: Database
    let rules: CommitRules
    let storage: SQLiteServerStorage
    var touched: [StoreReference: SQLiteStore] = [:]
    var outcomes: [PushOutcome] = []

    mutating func commit(_ waiting: PendingPush) throws -> PushOutcome {
        do { return try decide(waiting) } catch StorageError.unreadable { return .unreadable }
    }

    /// - Throws: ``StorageError/unreadable``, before anything is written.
    private mutating func decide(_ waiting: PendingPush) throws -> PushOutcome {
        if let refusal = try refusal(of: waiting) { return .notAllowed(refusal) }
        var store = try known(waiting.store)
        let keys = waiting.push.transactions.lazy.flatMap { $0.writes.lazy.map(\.key) }
        let counted = waiting.push.countedKeys
        var records: [Key: UbiquityCore.Record] = [:]
        var folded: [FoldedIncrement] = []
        if let id = store.id { records = try SQLiteRecord.fetch(keys, of: id, db) }
        guard rules.mayAnswer(waiting.push, over: records) else { return .tooLarge }
        if let id = store.id, !counted.isEmpty {
            records.merge(try SQLiteRecord.fetchCounts(of: counted, of: id, db)) { $1 }
            let queries = waiting.push.foldedQueries(records)
            folded = try SQLiteFoldedIncrement.fetch(queries, of: id, db)
        }
        let admitted: StoreState.Admitted
        do {
            admitted = try store.state.admit(
                waiting.push, records: records, folded: folded, by: rules.admission,
                in: rules.epoch(of: waiting.store))
        } catch { return .clockAhead(error) }
        if !admitted.writes.isEmpty {
            if let problem = try makeSure(of: waiting.store, &store) { return problem }
            try write(admitted, to: store.id!)
        }
        if store.id != nil { touched[waiting.store] = store }
        return .committed(
            CommittedPush(
                position: admitted.position, results: admitted.results, writes: admitted.writes,
                serverMilliseconds: rules.admission.now, deletions: store.state.deletions,
                folded: store.state.folded, horizon: store.state.horizon))
    }

    mutating func finish() throws {
        for store in touched.keys { try touched[store]?.update(db) }
    }

    /// Checked in the same transaction: a push after a revocation stores nothing.
    private func refusal(of waiting: PendingPush) throws -> AccessRefusal? {
        guard let rights = waiting.rights else { return nil }
        guard !rights.hasExpired(at: rules.admission.now) else { return .credentialExpired }
        let isSignedIn = try SQLiteServerStorage.isSignedIn(rights.reference, db)
        return isSignedIn ? nil : .credentialInvalid
    }

    private func known(_ store: StoreReference) throws -> SQLiteStore {
        try touched[store] ?? storage.states.withLock { $0[store] }
            ?? SQLiteStore.fetch(store, db) ?? SQLiteStore()
    }

    /// - Returns: The reason the store still has no row; nil if it has one.
    private func makeSure(of key: StoreReference, _ store: inout SQLiteStore) throws -> PushOutcome?
    {
        guard store.id == nil else { return nil }
        let account: StatementArguments = [key.account.string]
        let exists = try Bool.fetchOne(
            db, sql: "SELECT 1 FROM account WHERE id = ?", arguments: account)
        guard exists ?? false else { return .noSuchAccount }
        let count = try Int.fetchOne(
            db, sql: "SELECT count(*) FROM store WHERE account = ?", arguments: account)
        guard count ?? 0 < rules.storesPerAccountMax else { return .tooManyStores }
        store.id = try SQLiteStore.insert(key, db).id
        return nil
    }

    private func write(_ admitted: StoreState.Admitted, to store: Int64) throws {
        for record in admitted.writes {
            try SQLiteRecord.write(
                record, of: store, revision: admitted.position.revision,
                running: storage.running, db)
        }
        for increment in admitted.folded {
            try SQLiteFoldedIncrement.write(increment, of: store, running: storage.running, db)
        }
        guard let span = admitted.span else { return }
        try db.execute(
            sql: "INSERT INTO span (store, first_revision, epoch) VALUES (?, ?, ?)",
            arguments: [store, span.firstRevision, Int64(bitPattern: span.epoch)])
    }
}
