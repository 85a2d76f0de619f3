// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

extension SQLiteServerStorage {
    func replace(
        _ store: StoreReference, by whole: WholeStore, rights: DeviceRights?, rules: CommitRules
    ) throws(StorageError) -> Result<Position, PushRefusal> {
        try transact { db -> Result<Position, PushRefusal> in
            try forgetAfterForeignWrites(db)
            // Whatever becomes of it, the writer reads the store anew.
            memory.withLock { $0.stores.remove(store) }
            let refusal = try rules.refusal(of: rights) { try isSignedIn($0, db) }
            if let refusal { return .failure(refusal) }
            guard !isFull else { return .failure(.full) }
            let account = try Row.fetchOne(
                db, sql: "SELECT sealing, reset_at FROM account WHERE id = ?",
                arguments: [store.account.string])
            let sealing = try account.map { try SealingState($0, 0) } ?? SealingState()
            do throws(SealingRefusal) { try sealing.check(whole) } catch {
                return .failure(.sealing(error))
            }
            let rules = rules.of(rights, generation: sealing.generation)
            var found = try SQLiteStore.fetch(store, db) ?? SQLiteStore()
            var state = found.state
            do throws(WholeRefusal) {
                _ = try state.replace(
                    by: whole, by: rules.admission, in: store.epoch(inRun: rules.run ?? run))
            } catch { return .failure(PushRefusal(error)) }
            try found.begin(state, keepsFolded: true, db)
            guard let id = found.id else { throw StorageError.unreadable }
            let position = state.lineage.position
            for record in whole.records {
                let held = HeldRecord(
                    record: record, revision: position.revision, came: rules.admission.now)
                try SQLiteRecord.write(held, of: id, running: running, db)
            }
            return .success(position)
        } committed: { _, _ in
            positions.forget(store)
        }
    }

    func reset(
        _ account: AccountID, proof: Bytes32?, now: Int64, run: UInt64?, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        try doing(.accountChanged(account)) { transaction in
            try resetting(account, proof: proof, now: now, by: actor, transaction) {
                let stores = try Row.fetchAll(
                    transaction.db, sql: "SELECT identifier FROM store WHERE account = ?",
                    arguments: [account.string])
                for row in stores {
                    let name = StoreReference(account: account, identifier: try row.store(0))
                    guard var store = try SQLiteStore.fetch(name, transaction.db) else { continue }
                    var state = store.state
                    _ = state.reset(at: now, in: name.epoch(inRun: run ?? self.run))
                    try store.begin(state, keepsFolded: false, transaction.db)
                }
            }
        }
    }
}
