// SPDX-License-Identifier: Apache-2.0

/// The server's rule for a push: what is stored and a push in, what to write out.
///
/// A push that repeats itself changes nothing. Times are never rewritten: a write that is stamped
/// too far into the future refuses the whole push, and the device corrects its clock.
package struct PushAdmission: Sendable {
    package var limits: StoreLimits
    /// The server's milliseconds since 1970.
    package var now: Int64
    /// So many parts of a counter may be listed, besides what the server folds them to.
    package var partsMax: Int

    /// How far ahead of the server a write may be stamped, in milliseconds.
    package static let clockAheadMax: Int64 = 60_000
    /// How far beyond the newest stamp of the store where that is further ahead, in milliseconds: the
    /// server's clock was set back since, and a device that has seen the stamp must be able to write
    /// after it. What is written so makes no newer one, so that nobody gets ahead step by step.
    package static let aheadOfNewestMax: Int64 = 1_000

    package init(limits: StoreLimits, now: Int64, partsMax: Int = 60) {
        self.limits = limits
        self.now = now
        self.partsMax = partsMax
    }

    /// What the rule must know of a store.
    package struct Stored: Hashable, Sendable {
        /// What the store has of the keys in the push, deletions included, and all counts of
        /// ``Push/countedKeys``.
        package var records: [Key: Record]
        package var usage: Usage
        /// The greatest timestamp that the store ever accepted by its server's own time.
        package var newest: HybridTimestamp
        /// The greatest timestamp of a deletion that is no longer remembered: the tombstone horizon.
        package var newestForgotten: HybridTimestamp
        package var accepted: AcceptedTimes
        package var folds: Folds

        package init(
            records: [Key: Record] = [:], usage: Usage = Usage(), newest: HybridTimestamp = .zero,
            newestForgotten: HybridTimestamp = .zero, accepted: AcceptedTimes = AcceptedTimes(),
            folds: Folds = Folds()
        ) {
            self.records = records
            self.usage = usage
            self.newest = newest
            self.newestForgotten = newestForgotten
            self.accepted = accepted
            self.folds = folds
        }
    }

    /// The folded counts, as far as the rule must know them.
    package struct Folds: Hashable, Sendable {
        /// Those that match ``Push/foldedQueries(_:)``.
        package var increments: [FoldedIncrement]
        package var forgotten: FoldHorizon
        package var lineage: Lineage
        /// In which the push is committed.
        package var epoch: UInt64

        package init(
            increments: [FoldedIncrement] = [], forgotten: FoldHorizon = FoldHorizon(),
            lineage: Lineage = Lineage(), epoch: UInt64 = 0
        ) {
            self.increments = increments
            self.forgotten = forgotten
            self.lineage = lineage
            self.epoch = epoch
        }
    }

    package struct Decision: Hashable, Sendable {
        /// What to store, under one new revision; empty if the push changes nothing.
        package var writes: [Record]
        /// To be stored with them; those of an ID replace one another.
        package var folded: [FoldedIncrement]
        package var usage: Usage
        package var newest: HybridTimestamp
        package var accepted: AcceptedTimes
        package var results: [TransactionResult]
    }

    /// - Throws: ``ClockAhead`` if a write is stamped too far ahead; then nothing applies.
    /// - Complexity: O(*n*) in the number of writes.
    package func decide(_ push: Push, on stored: Stored) throws(ClockAhead) -> Decision {
        try checkClock(of: push, newest: stored.newest)
        let before = stored
        var stored = stored
        var counts = CountFolding(push, on: stored, partsMax: partsMax)
        let results = push.transactions.map { transaction in
            // By what was accepted before this push: its transactions are in no order of times.
            mayBringBack(transaction, before, stored.records, push.tellsHad)
                || counts.isTooOld(transaction, before, stored.records, tellsHad: push.tellsHad)
                ? .refused(.olderThanForgotten) : apply(transaction, to: &stored, &counts)
        }
        let folded = counts.finish(&stored)
        return Decision(
            writes: stored.records.values.filter { before.records[$0.key] != $0 }
                .sorted { $0.key < $1.key },
            folded: folded, usage: stored.usage,
            // By the server's own time: nobody gets ahead step by step.
            newest: max(before.newest, min(stored.newest, latest)), accepted: stored.accepted,
            results: zip(push.transactions, results).map { counted($0, $1, stored.records) })
    }

    /// Whether a transaction could bring back what was deleted, for the tombstone would have been
    /// dropped: a value from before the horizon, of what the store does not have, that its author had
    /// from here, or that may have been here itself.
    ///
    /// What was here has a timestamp that the store has decided about. A server that was restored from an
    /// older copy has not decided about what it lacks since. And what it never had is taken, however old.
    private func mayBringBack(
        _ transaction: Transaction, _ stored: Stored, _ records: [Key: Record], _ tellsHad: Bool
    ) -> Bool {
        guard stored.newestForgotten > .zero else { return false }
        return transaction.writes.contains { write in
            // Of counts, what was folded is remembered in another way.
            guard records[write.key] == nil, write.content != .deleted, !write.key.isCount,
                write.stamp.timestamp <= stored.newestForgotten
            else { return false }
            return !tellsHad || stored.accepted.mayContain(write.stamp)
                || transaction.had[write.key].map(stored.accepted.mayContain) ?? false
        }
    }

    /// The latest stamp by the server's own time.
    private var latest: HybridTimestamp {
        HybridTimestamp(milliseconds: now + Self.clockAheadMax, counter: .max)
    }

    private func checkClock(of push: Push, newest: HybridTimestamp) throws(ClockAhead) {
        let latest =
            newest > latest
            ? newest.milliseconds + Self.aheadOfNewestMax : latest.milliseconds
        for (number, transaction) in push.transactions.enumerated() {
            let index = transaction.writes.firstIndex {
                $0.stamp.timestamp.milliseconds > latest
            }
            guard let index else { continue }
            throw ClockAhead(serverMilliseconds: now, transaction: number, write: index)
        }
    }

    private func apply(
        _ transaction: Transaction, to stored: inout Stored, _ counts: inout CountFolding
    ) -> TransactionResult {
        // A copy of all records for each transaction would cost the square of the push.
        let before = (stored.usage, stored.newest, stored.accepted)
        var replaced: [(key: Key, record: Record?)] = []
        var results: [WriteResult] = []
        do {
            for write in transaction.writes {
                let old = stored.records[write.key]
                let isAbsorbed = counts.absorbs(write)
                if isAbsorbed { stored.accepted.note(write.stamp) }
                results.append(isAbsorbed ? .applied : merge(write, into: &stored))
                if stored.records[write.key] != old {
                    replaced.append((write.key, old))
                    try limits.check(write.key, write.content)
                }
            }
            try limits.check(
                from: before.0, to: stored.usage,
                by: transaction.writes.lazy.map { (key: $0.key, content: $0.content) })
        } catch {
            for (key, record) in replaced { stored.records[key] = record }
            (stored.usage, stored.newest, stored.accepted) = before
            return .refused(Refusal(error))
        }
        for write in transaction.writes { counts.take(write) }
        return .committed(results)
    }

    /// The answer with what became of counts in the end: they may have been folded by the same push.
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
                stored.accepted.note(write.stamp)
                return .superseded(by: old)
            }
        } else if write.content == .deleted, write.stamp.timestamp <= stored.newestForgotten {
            return .olderThanForgotten
        }
        stored.put(write)
        stored.accepted.note(write.stamp)
        return .applied
    }
}

/// A write was stamped too far into the future.
package struct ClockAhead: Error, Hashable, Sendable {
    package var serverMilliseconds: Int64
    /// Which transaction of the push, from 0 on, and which write of it.
    package var transaction = 0
    package var write = 0
}
