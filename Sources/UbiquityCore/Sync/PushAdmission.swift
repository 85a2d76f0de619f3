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
    /// How far beyond the newest stamp of the store, in milliseconds: a device that has seen it
    /// must be able to write after it, also where the server's clock was set back since.
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
        /// The greatest timestamp that the store ever accepted.
        package var newest: HybridTimestamp
        /// The greatest timestamp of a deletion that is no longer remembered.
        package var newestForgotten: HybridTimestamp

        package init(
            records: [Key: Record] = [:], usage: Usage = Usage(), newest: HybridTimestamp = .zero,
            newestForgotten: HybridTimestamp = .zero
        ) {
            self.records = records
            self.usage = usage
            self.newest = newest
            self.newestForgotten = newestForgotten
        }
    }

    package struct Decision: Hashable, Sendable {
        /// What to store, under one new revision; empty if the push changes nothing.
        package var writes: [Record]
        package var usage: Usage
        package var newest: HybridTimestamp
        package var results: [TransactionResult]
    }

    /// - Throws: ``ClockAhead`` if a write is stamped too far ahead; then nothing applies.
    /// - Complexity: O(*n*) in the number of writes.
    package func decide(_ push: Push, on stored: Stored) throws(ClockAhead) -> Decision {
        try checkClock(of: push, newest: stored.newest)
        var stored = stored
        var changed = Set<Key>()
        let results = push.transactions.map { transaction in
            apply(transaction, to: &stored, changed: &changed)
        }
        return Decision(
            writes: changed.sorted().compactMap { stored.records[$0] },
            usage: stored.usage, newest: stored.newest, results: results)
    }

    private func checkClock(of push: Push, newest: HybridTimestamp) throws(ClockAhead) {
        let latest = max(now + Self.clockAheadMax, newest.milliseconds + Self.aheadOfNewestMax)
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
        let before = (usage: stored.usage, newest: stored.newest)
        let yields = yields(transaction, to: stored)
        var replaced: [(key: Key, record: Record?)] = []
        var results: [WriteResult] = []
        do {
            for write in transaction.writes {
                let old = stored.records[write.key]
                let result = merge(write, into: &stored, yields: yields)
                results.append(result)
                if stored.records[write.key] != old {
                    replaced.append((write.key, old))
                    try limits.check(write.key, write.content)
                }
            }
            try limits.check(
                from: before.usage, to: stored.usage,
                by: transaction.writes.lazy.map { (key: $0.key, content: $0.content) })
        } catch {
            for (key, record) in replaced { stored.records[key] = record }
            stored.usage = before.usage
            stored.newest = before.newest
            return .refused(Refusal(error))
        }
        changed.formUnion(replaced.map(\.key))
        return .committed(results)
    }

    /// Whether a transaction loses its ties. Only a cloned device, which shares its name, gives two
    /// of them one stamp; the greater content wins, but by one key for all, or the two would mix.
    private func yields(_ transaction: Transaction, to stored: Stored) -> Bool {
        let ties = transaction.writes.filter { write in
            guard !write.key.hasPartOrder, let old = stored.records[write.key] else {
                return false
            }
            return old.stamp == write.stamp && old.content != write.content
        }
        guard let first = ties.min(by: { $0.key < $1.key }), let old = stored.records[first.key]
        else { return false }
        return old.wins(over: first)
    }

    private func merge(
        _ write: Record, into stored: inout Stored, yields: Bool
    ) -> WriteResult {
        let old = stored.records[write.key]
        if let old {
            if old == write { return .applied }
            if old.stamp == write.stamp && !write.key.hasPartOrder
                ? yields : !write.wins(over: old)
            {
                return .superseded(by: old)
            }
        } else if write.stamp.timestamp < stored.newestForgotten, !write.key.isCount {
            return .olderThanForgotten
        }
        stored.records[write.key] = write
        stored.usage.replace(old?.content.value, by: write.content.value, of: write.key)
        stored.newest = max(stored.newest, write.stamp.timestamp)
        return .applied
    }
}

/// A write was stamped too far into the future.
package struct ClockAhead: Error, Hashable, Sendable {
    package var serverMilliseconds: Int64
}
