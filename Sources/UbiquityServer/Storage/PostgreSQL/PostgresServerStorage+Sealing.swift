// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension PostgresServerStorage {
    /// Locks the store, and reads the mark then, as a push does.
    func replace(
        _ store: StoreReference, by whole: WholeStore, rights: DeviceRights?, rules: CommitRules
    ) throws(StorageError) -> Result<Position, PushRefusal> {
        let asked = PostgresStore.reading([store], isLocking: true)
        let device = rights.map { rights in
            SQLStatement(
                "SELECT 1 FROM ubiquity.device WHERE account = $1 AND id = $2",
                rights.reference.values)
        }
        return try writing { transaction -> Result<Position, PushRefusal> in
            let results = try transaction.run(
                asked + [.account(store.account), momentStatement] + (device.map { [$0] } ?? []))
            let moment = try PostgresMoment(results[asked.count + 1])
            let general = self.rules(rules, at: moment)
            let refusal = general.refusal(of: rights) { _ in !results[asked.count + 2].rows.isEmpty
            }
            if let refusal { return .failure(refusal) }
            guard !isFull else { return .failure(.full) }
            let account = try results[asked.count].rows.first.map(Account.init)
            let sealing = account?.sealing ?? SealingState()
            do throws(SealingRefusal) { try sealing.check(whole) } catch {
                return .failure(.sealing(error))
            }
            let own = general.of(rights, generation: sealing.generation)
            let found = try PostgresStore.read([store], from: results[..<asked.count])[store]
            var state = try found?.get().state ?? StoreState()
            do throws(WholeRefusal) {
                _ = try state.replace(
                    by: whole, by: own.admission,
                    in: own.run.map(store.epoch(inRun:)) ?? moment.epoch(of: store))
            } catch { return .failure(PushRefusal(error)) }
            guard var replaced = try found?.get() else { throw StorageError.unreadable }
            try transaction.run(replaced.begin(state, keepsFolded: true))
            let position = state.lineage.position
            var slice: [(store: PostgresStore, written: HeldRecord)] = []
            var bytes = 0
            for (number, record) in whole.records.enumerated() {
                let held = HeldRecord(
                    record: record, revision: position.revision, came: own.admission.now)
                slice.append((replaced, held))
                bytes += record.pushBytes
                guard bytes >= Self.sliceBytes || number == whole.records.count - 1 else {
                    continue
                }
                try transaction.run([PostgresRecords.writing(slice, running: moment.running)])
                (slice, bytes) = ([], 0)
            }
            return .success(position)
        } news: { result in
            (try? result.get()).map { [.committed(store, $0)] } ?? []
        }
    }

    /// The least bytes of records that are written at once.
    private static let sliceBytes = 8 << 20

    func reset(
        _ account: AccountID, proof: Bytes32?, now: Int64, run: UInt64?, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        try doing(.accountChanged(account)) { transaction in
            try resetting(account, proof: proof, now: now, by: actor, transaction) {
                let names = try transaction.run(
                    "SELECT identifier FROM ubiquity.store WHERE account = $1 ORDER BY identifier",
                    .text(account.string)
                ).rows.map { StoreReference(account: account, identifier: try $0.store(0)) }
                let asked = PostgresStore.reading(names, isLocking: true)
                let results = try transaction.run(asked + [momentStatement])
                let moment = try PostgresMoment(results[asked.count])
                for (name, found) in try PostgresStore.read(names, from: results[..<asked.count]) {
                    var store = try found.get()
                    var state = store.state
                    _ = state.reset(
                        at: now, in: run.map(name.epoch(inRun:)) ?? moment.epoch(of: name))
                    try transaction.run(store.begin(state, keepsFolded: false))
                }
            }
        }
    }
}
