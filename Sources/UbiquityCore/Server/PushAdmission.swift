// SPDX-License-Identifier: Apache-2.0

/// The server's rule for a push: from the stored state and the push, decides what to write.
///
/// A repeated push changes nothing. Timestamps are never rewritten: if a write is stamped too far
/// into the future, the whole push is refused and the device corrects its clock.
package struct PushAdmission: Sendable {
    package var limits: StoreLimits
    /// The server's milliseconds since 1970.
    package var now: Int64
    /// The most parts of a counter that may be listed, in addition to the fold.
    package var partsMax: Int
    package var history: HistoryLimits
    /// The generation of the key that the account is sealed with; 0 if it is not.
    package var generation: UInt32 = 0

    /// The furthest that a write may be beyond the store's newest stamp if that is further ahead,
    /// in milliseconds. The server's clock was set back then, and a device that has seen the stamp
    /// must be able to write after it. Such writes do not advance the newest stamp, so nobody gets
    /// ahead step by step.
    package static let aheadOfNewestMax: Int64 = 1_000

    package init(
        limits: StoreLimits, now: Int64, partsMax: Int = 60,
        history: HistoryLimits = HistoryLimits()
    ) {
        self.limits = limits
        self.now = now
        self.partsMax = partsMax
        self.history = history
    }

    /// The rule by which a push prunes. It removes nothing for its age: the clock may be wrong, which
    /// housekeeping considers.
    package var historyRule: HistoryRule { HistoryRule(history, now: 0) }

    /// The store that the rule decides on.
    struct Stored: Hashable, Sendable {
        /// The stored records of the push's keys, tombstones included, and all counts of
        /// ``Push/countedKeys``.
        var records: [Key: Record]
        var state: StoreState
        /// The increments that match ``Push/foldedQueries(_:)``.
        let increments: [FoldedIncrement]
        /// The epoch in which the push is committed.
        let epoch: UInt64
    }

    struct Decision: Hashable, Sendable {
        /// The records to store under one new revision; empty if the push changes nothing.
        var writes: [Record]
        /// The increments to store with them. They replace stored ones of the same ID.
        var folded: [FoldedIncrement]
        var usage: Usage
        var newest: HybridTimestamp
        var accepted: VersionVector
        var results: [TransactionResult]
        /// The writes of the push that took place, but that the store does not hold after it.
        var passing: [PassingWrite]
        /// The keys, without their parts, that the history must not contain.
        var unkept: Set<Key>
    }

    /// A write that a push brought and that another one has replaced or defeated since.
    package struct PassingWrite: Hashable, Sendable {
        package var record: Record
        package var by: Stamp
        /// Whether the other one was there before.
        package var isLost: Bool
    }

    /// - Throws: ``ClockAhead`` if a write is stamped too far ahead; then nothing applies.
    /// - Complexity: O(*n*) in the number of writes.
    func decide(_ push: Push, on stored: Stored) throws(ClockAhead) -> Decision {
        try checkClock(of: push, newest: stored.state.newest)
        let before = stored
        var stored = stored
        var counts = CountFolding(push, on: stored, partsMax: partsMax)
        var passing: [PassingWrite] = []
        let results = push.transactions.map { transaction in
            // Uses what was accepted before this push: its transactions are not in the order of
            // their times.
            mayBringBack(transaction, before, stored.records, push.tellsHad)
                || counts.isTooOld(transaction, before, stored.records, tellsHad: push.tellsHad)
                ? .refused(.olderThanCompacted)
                : apply(transaction, to: &stored, &counts, before.records, &passing)
        }
        let folded = counts.finish(&stored)
        let changed = stored.records.values.filter { before.records[$0.key] != $0 }
        return Decision(
            // To sort the records themselves would copy two for each comparison.
            writes: changed.indices.sorted { changed[$0].key < changed[$1].key }.map {
                changed[$0]
            },
            folded: folded, usage: stored.state.usage,
            // Limited by the server's own clock, so that nobody gets ahead step by step.
            newest: max(before.state.newest, min(stored.state.newest, latest)),
            accepted: stored.state.accepted,
            results: zip(push.transactions, results).map { counted($0, $1, stored.records) },
            passing: passing, unkept: Self.unkept(push, results))
    }

    private static func unkept(_ push: Push, _ results: [TransactionResult]) -> Set<Key> {
        var keys: Set<Key> = []
        for (transaction, result) in zip(push.transactions, results) {
            guard !transaction.unkept.isEmpty, case .committed = result else { continue }
            keys.formUnion(transaction.unkept.lazy.map(\.whole))
        }
        return keys
    }

    /// Whether a transaction could bring back something deleted whose tombstone may have been
    /// dropped: a value from before the horizon, under a key that the store does not have, if its
    /// author had the key's value from here, or if the value itself may have been here.
    ///
    /// A value that was here has a timestamp that the store has decided about. A server restored
    /// from a backup has not decided about what it lost. What it never had is accepted, however
    /// old.
    private func mayBringBack(
        _ transaction: Transaction, _ stored: Stored, _ records: [Key: Record], _ tellsHad: Bool
    ) -> Bool {
        guard stored.state.newestCompacted > .zero else { return false }
        return transaction.writes.contains { write in
            // Folded counts are remembered in another way.
            guard records[write.key] == nil, write.content != .deleted, !write.key.isCount,
                write.stamp.timestamp <= stored.state.newestCompacted
            else { return false }
            return !tellsHad || stored.state.accepted.mayContain(write.stamp)
                || transaction.had[write.key].map(stored.state.accepted.mayContain) ?? false
        }
    }

    /// The latest acceptable stamp by the server's own clock.
    var latest: HybridTimestamp {
        HybridTimestamp(milliseconds: now + HybridTimestamp.aheadMax, counter: .max)
    }

    /// The greatest acceptable milliseconds of a write.
    /// - Parameter newest: The store's ``StoreState/newest``.
    func latestMilliseconds(after newest: HybridTimestamp) -> Int64 {
        newest > latest ? newest.milliseconds + Self.aheadOfNewestMax : latest.milliseconds
    }

    private func checkClock(of push: Push, newest: HybridTimestamp) throws(ClockAhead) {
        let latest = latestMilliseconds(after: newest)
        for (number, transaction) in push.transactions.enumerated() {
            let index = transaction.writes.firstIndex {
                $0.stamp.timestamp.milliseconds > latest
            }
            guard let index else { continue }
            throw ClockAhead(serverMilliseconds: now, transaction: number, write: index)
        }
    }

    private func apply(
        _ transaction: Transaction, to stored: inout Stored, _ counts: inout CountFolding,
        _ first: [Key: Record], _ passing: inout [PassingWrite]
    ) -> TransactionResult {
        guard transaction.writes.allSatisfy({ $0.isSealed(with: generation) }) else {
            return .refused(Refusal(unsealedIn: generation))
        }
        // Copying all records for each transaction would make a push quadratic.
        let before = stored.state
        let passingCount = passing.count
        var replaced: [(key: Key, record: Record?)] = []
        var results: [WriteResult] = []
        do {
            for write in transaction.writes {
                let old = stored.records[write.key]
                let isAbsorbed = counts.absorbs(write)
                if isAbsorbed { stored.state.accepted.note(write.stamp) }
                results.append(isAbsorbed ? .applied : merge(write, into: &stored))
                if case .superseded = results.last, let old, old.stamp != write.stamp {
                    passing.append(PassingWrite(record: write, by: old.stamp, isLost: true))
                } else if let old, old != first[write.key], stored.records[write.key] != old {
                    passing.append(PassingWrite(record: old, by: write.stamp, isLost: false))
                }
                if stored.records[write.key] != old {
                    replaced.append((write.key, old))
                    try limits.check(write.key, write.content)
                }
            }
            try limits.check(
                from: before.usage, to: stored.state.usage,
                by: transaction.writes.lazy.map { (key: $0.key, content: $0.content) })
        } catch {
            for (key, record) in replaced { stored.records[key] = record }
            stored.state = before
            passing.removeSubrange(passingCount...)
            return .refused(Refusal(error))
        }
        for write in transaction.writes { counts.take(write) }
        return .committed(results)
    }

    /// The result with the final state of counts, which the same push may have folded.
    private func counted(
        _ transaction: Transaction, _ result: TransactionResult, _ records: [Key: Record]
    ) -> TransactionResult {
        guard case .committed(let results) = result,
            transaction.writes.contains(where: \.key.isCount)
        else { return result }
        return .committed(
            zip(transaction.writes, results).map { write, result in
                guard write.key.isCount, let held = records[write.key] else { return result }
                return held == write ? .applied : .superseded(by: held)
            })
    }

    private func merge(_ write: Record, into stored: inout Stored) -> WriteResult {
        let old = stored.records[write.key]
        if let old {
            if old == write { return .applied }
            if !write.wins(over: old) {
                stored.state.accepted.note(write.stamp)
                return .superseded(by: old)
            }
        } else if write.content == .deleted, write.stamp.timestamp <= stored.state.newestCompacted {
            return .olderThanCompacted
        }
        stored.put(write)
        stored.state.accepted.note(write.stamp)
        return .applied
    }
}

/// The error for a write stamped too far into the future.
package struct ClockAhead: Error, Hashable, Sendable {
    package var serverMilliseconds: Int64
    /// The position of the transaction in the push, and of the write in the transaction, both from
    /// 0.
    package var transaction = 0
    package var write = 0
}
