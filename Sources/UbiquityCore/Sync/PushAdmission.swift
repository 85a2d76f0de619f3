// SPDX-License-Identifier: Apache-2.0

/// The server's rule for a push: what is stored and a push in, what to write out.
///
/// A push that repeats itself changes nothing. Times are never rewritten: a write that is stamped
/// too far into the future refuses the whole push, and the device corrects its clock.
package struct PushAdmission: Sendable {
    package var limits: StoreLimits
    /// The server's milliseconds since 1970.
    package var now: Int64

    /// How far ahead of the server a write may be stamped, in milliseconds.
    package static let clockAheadMax: Int64 = 60_000
    /// How far beyond the newest stamp of the store where that is further ahead, in milliseconds: the
    /// server's clock was set back since, and a device that has seen the stamp must be able to write
    /// after it. What is written so makes no newer one, so that nobody gets ahead step by step.
    package static let aheadOfNewestMax: Int64 = 1_000

    package init(limits: StoreLimits, now: Int64) {
        self.limits = limits
        self.now = now
    }

    /// What the rule must know of a store.
    package struct Stored: Hashable, Sendable {
        /// What the store has of the keys in the push, deletions included.
        package var records: [Key: Record]
        package var usage: Usage
        /// The greatest timestamp that the store ever accepted by its server's own time.
        package var newest: HybridTimestamp
        /// The greatest timestamp of a deletion that is no longer remembered: the tombstone horizon.
        package var newestForgotten: HybridTimestamp
        package var accepted: AcceptedTimes

        package init(
            records: [Key: Record] = [:], usage: Usage = Usage(), newest: HybridTimestamp = .zero,
            newestForgotten: HybridTimestamp = .zero, accepted: AcceptedTimes = AcceptedTimes()
        ) {
            self.records = records
            self.usage = usage
            self.newest = newest
            self.newestForgotten = newestForgotten
            self.accepted = accepted
        }
    }

    package struct Decision: Hashable, Sendable {
        /// What to store, under one new revision; empty if the push changes nothing.
        package var writes: [Record]
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
        var changed = Set<Key>()
        let results = push.transactions.map { transaction in
            // By what was accepted before this push: its transactions are in no order of times.
            mayBringBack(transaction, before, stored.records, push.tellsHad)
                ? .refused(.olderThanForgotten)
                : apply(transaction, to: &stored, changed: &changed)
        }
        return Decision(
            writes: changed.sorted().compactMap { stored.records[$0] },
            usage: stored.usage, newest: stored.newest, accepted: stored.accepted,
            results: results)
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
        for transaction in push.transactions {
            for write in transaction.writes where write.stamp.timestamp.milliseconds > latest {
                throw ClockAhead(serverMilliseconds: now)
            }
        }
    }

    private func apply(
        _ transaction: Transaction, to stored: inout Stored, changed: inout Set<Key>
    ) -> TransactionResult {
        // A copy of all records for each transaction would cost the square of the push.
        let before = (stored.usage, stored.newest, stored.accepted)
        var replaced: [(key: Key, record: Record?)] = []
        var results: [WriteResult] = []
        do {
            for write in transaction.writes {
                let old = stored.records[write.key]
                let result = merge(write, into: &stored)
                results.append(result)
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
        changed.formUnion(replaced.map(\.key))
        return .committed(results)
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
        stored.records[write.key] = write
        stored.usage.replace(old?.content.value, by: write.content.value, of: write.key)
        stored.newest = max(stored.newest, min(write.stamp.timestamp, latest))
        stored.accepted.note(write.stamp)
        return .applied
    }
}

/// A write was stamped too far into the future.
package struct ClockAhead: Error, Hashable, Sendable {
    package var serverMilliseconds: Int64
}
