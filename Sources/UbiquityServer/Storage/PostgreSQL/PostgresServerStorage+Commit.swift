// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

extension PostgresServerStorage {
    func commit(
        _ pushes: [PendingPush], rules: CommitRules
    ) throws(StorageError) -> [Result<CommittedPush, PushRefusal>] {
        guard !pushes.isEmpty else { return [] }
        do { return try commit(pushes, rules, isPart: false) } catch .full {
            // Removals may still find room.
            full.withLock { $0.begin() }
            return try commit(pushes, rules, isPart: false)
        }
    }

    /// Commits all in one transaction, unless one of the stores may be what fails it: then each half
    /// of the stores by itself, so that the others do not suffer.
    /// - Parameters:
    ///   - isPart: Whether others wait for it, so that it does not wait long for a lock.
    ///   - mayBeRepeated: Whether it may have been committed as a part of a larger group.
    private func commit(
        _ pushes: [PendingPush], _ rules: CommitRules, isPart: Bool, mayBeRepeated: Bool = false
    ) throws(StorageError) -> [Result<CommittedPush, PushRefusal>] {
        let stores = Set(pushes.map(\.store)).sorted()
        var (isOfOneStore, mayBeRepeated) = (false, mayBeRepeated)
        do throws(StorageError) {
            return try commitOnce(
                pushes, rules, isPart: isPart, mayBeRepeated: mayBeRepeated
            ) { failure in
                mayBeRepeated = failure.isInDoubt
                isOfOneStore = failure.mayBeOfOneStore && stores.count > 1
                return isOfOneStore
            }
        } catch { guard isOfOneStore else { throw error } }
        let first = Set(stores.prefix(stores.count / 2))
        var results = [Result<CommittedPush, PushRefusal>?](repeating: nil, count: pushes.count)
        for isFirst in [true, false] {
            let indices = pushes.indices.filter { first.contains(pushes[$0].store) == isFirst }
            let half: [Result<CommittedPush, PushRefusal>]
            do throws(StorageError) {
                half = try commit(
                    indices.map { pushes[$0] }, rules, isPart: true, mayBeRepeated: mayBeRepeated)
            } catch {
                if error == .full { throw error }
                half = indices.map { _ in .failure(.failed(error)) }
            }
            for (index, result) in zip(indices, half) { results[index] = result }
        }
        return results.map { $0 ?? .failure(.unreadable) }
    }

    private func commitOnce(
        _ pushes: [PendingPush], _ rules: CommitRules, isPart: Bool, mayBeRepeated: Bool,
        givesUp: (PostgresFailure) -> Bool
    ) throws(StorageError) -> [Result<CommittedPush, PushRefusal>] {
        let waitingLittle = SQLStatement("SELECT set_config('lock_timeout', '200', true)")
        let beginning = isPart ? [Self.beginWriting, waitingLittle] : [Self.beginWriting]
        return try attempt(
            patience: isPart ? 500 : nil, isInDoubt: mayBeRepeated, givesUp: givesUp
        ) { mayBeRepeated in
            let floor = try checkHistory()
            let batch = try pool.with { connection in
                try self.batch(pushes, rules, mayBeRepeated, beginning, connection) { batch in
                    try note(batch.moment, batch.revisions, since: floor, on: connection)
                    for push in pushes {
                        guard let saved = push.push.saved.flatMap(Position.init) else { continue }
                        try refuseIfReplaced(
                            batch.moment, namedBy: saved, of: push.store, on: connection)
                    }
                }
            }
            let committed = batch.positions(areAllNew: mayBeRepeated)
            announce(committed.map { .committed($0.store, $0.position) })
            // This node has not published what an earlier attempt committed.
            if mayBeRepeated {
                for (store, position) in committed { news.hear(.committed(store, position)) }
            }
            return batch.results
        }
    }

    /// Runs a batch in one transaction, or in a second one if stores must be made first.
    private func batch(
        _ pushes: [PendingPush], _ rules: CommitRules, _ mayBeRepeated: Bool,
        _ beginning: [SQLStatement], _ connection: PostgresConnection,
        check: (PostgresBatch) throws -> Void
    ) throws -> PostgresBatch {
        var making: Set<StoreReference> = []
        var beginning = beginning
        while true {
            let transaction = PostgresTransaction(
                connection, beginning, guards: commitGuards,
                milliseconds: settings.answerMilliseconds, mayBeRepeated: mayBeRepeated)
            do {
                var batch = try PostgresBatch(
                    pushes, making: making, rules: rules, isFull: isFull, storage: self,
                    transaction)
                try check(batch)
                try batch.decide()
                guard !batch.missing.isEmpty else {
                    try batch.commit()
                    return batch
                }
                making.formUnion(batch.missing)
                if beginning[0] == Self.beginWriting {
                    beginning.insert(SQLStatement("ROLLBACK"), at: 0)
                }
            } catch {
                transaction.rollBack()
                throw error
            }
        }
    }

    /// The rules with this database's clock.
    func rules(_ rules: CommitRules, at moment: PostgresMoment) -> CommitRules {
        var rules = rules
        if !settings.usesOwnClock { rules.admission.now = moment.now }
        return rules
    }

    // MARK: - A full disk

    var isFull: Bool { full.withLock { $0.since != nil } }

    /// There is no way to ask, so it is tried twice a minute.
    func findRoom() -> Bool { full.withLock { $0.end() } }

    /// Whether the database's disk was full the last time that something was to be stored.
    struct Fullness {
        private(set) var since: ContinuousClock.Instant?

        mutating func begin() { since = .now }

        mutating func end() -> Bool {
            guard let since, .now - since > .seconds(30) else { return false }
            self.since = nil
            return true
        }
    }
}
