// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

extension PostgresServerStorage {
    func commit(
        _ pushes: [PendingPush], rules: CommitRules
    ) throws(StorageError) -> [Result<CommittedPush, PushRefusal>] {
        guard !pushes.isEmpty else { return [] }
        var group = Group(of: pushes.map(\.store), patience: settings.patienceMilliseconds)
        while let part = group.part {
            let wasFull = isFull
            do { group.committed(try commit(part, of: pushes, rules, isFull: wasFull)) } catch {
                try proceed(with: &group, part, wasFull: wasFull, after: error)
            }
        }
        return group.results
    }

    private typealias Group = GroupCommit<StoreReference, Result<CommittedPush, PushRefusal>>

    /// Waits for the next attempt, if there is one.
    /// - Parameter wasFull: Whether the one that failed stored removals only.
    /// - Throws: If the whole group is given up.
    private func proceed(
        with group: inout Group, _ part: Group.Part, wasFull: Bool, after error: any Error
    ) throws(StorageError) {
        var error = error
        if var failure = error as? PostgresFailure {
            if failure.isOfFullDisk {
                // Removals may still find room.
                full.withLock { $0.begin() }
                if !wasFull, !failure.isInDoubt { return }
            }
            let pause = group.failed(
                CommitFailure(
                    isTransient: failure.isTransient, isInDoubt: failure.isInDoubt,
                    mayBeOfOneStore: failure.mayBeOfOneStore), now: Self.uptime)
            if let pause { return Self.rest(atMost: pause) }
            failure.isInDoubt = group.part?.mayBeRepeated ?? false
            error = failure
        }
        let reason = StorageError(postgres: error)
        guard part.isHalf else { throw reason }
        group.giveUp(.failure(reason == .full ? .full : .failed(reason)))
    }

    /// Commits the pushes of a part in one transaction.
    private func commit(
        _ part: Group.Part, of pushes: [PendingPush], _ rules: CommitRules, isFull: Bool
    ) throws -> [Result<CommittedPush, PushRefusal>] {
        let pushes = part.pushes.map { pushes[$0] }
        let waitingLittle = SQLStatement("SELECT set_config('lock_timeout', '200', true)")
        let beginning = part.isHalf ? [Self.beginWriting, waitingLittle] : [Self.beginWriting]
        let floor = try checkHistory()
        let batch = try pool.with { connection in
            try self.batch(pushes, rules, part.mayBeRepeated, isFull, beginning, connection) {
                batch in
                try note(batch.moment, batch.revisions, since: floor, on: connection)
                for push in pushes {
                    guard let saved = push.push.saved.flatMap(Position.init) else { continue }
                    try refuseIfReplaced(
                        batch.moment, namedBy: saved, of: push.store, on: connection)
                }
            }
        }
        let committed = batch.positions(areAllNew: part.mayBeRepeated)
        announce(committed.map { .committed($0.store, $0.position) })
        // This node has not published what an earlier attempt committed.
        if part.mayBeRepeated {
            for (store, position) in committed { news.hear(.committed(store, position)) }
        }
        return batch.results
    }

    /// Runs a batch in one transaction, or in a second one if stores must be made first.
    private func batch(
        _ pushes: [PendingPush], _ rules: CommitRules, _ mayBeRepeated: Bool, _ isFull: Bool,
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
