// SPDX-License-Identifier: Apache-2.0

/// The server's state of a store besides its records. Being a value, it is unchanged after a failed
/// commit.
package struct StoreState: Hashable, Sendable {
    package var lineage = Lineage()
    package var usage = Usage()
    /// The greatest timestamp accepted within the limit of the server's own clock.
    package var newest = HybridTimestamp.zero
    /// The greatest timestamp of a dropped tombstone.
    package var newestCompacted = HybridTimestamp.zero
    /// The weight of the remaining tombstones, see ``CompactionRule/Tombstone``.
    package var deletions = 0
    package var accepted = VersionVector()
    /// All tombstones up to this timestamp have been dropped. ``newestCompacted`` may be later: a
    /// deletion made offline arrives late, and its tombstone is kept from then on.
    package var horizon = HybridTimestamp.zero
    /// The number of stored increments of folded counts.
    package var folded = 0
    package var foldsCompacted = FoldHorizon()
    package var history = HistoryState()
    /// The generation of the key that the values are sealed with; 0 if they are not.
    package var generation: UInt32 = 0

    package init() {}

    package init(
        lineage: Lineage, usage: Usage, newest: HybridTimestamp, newestCompacted: HybridTimestamp,
        deletions: Int, accepted: VersionVector, horizon: HybridTimestamp, folded: Int,
        foldsCompacted: FoldHorizon, history: HistoryState, generation: UInt32 = 0
    ) {
        self.lineage = lineage
        self.usage = usage
        self.newest = newest
        self.newestCompacted = newestCompacted
        self.deletions = deletions
        self.accepted = accepted
        self.horizon = horizon
        self.folded = folded
        self.foldsCompacted = foldsCompacted
        self.history = history
        self.generation = generation
    }

    /// - Parameters:
    ///   - records: The stored records of the push's keys, and all counts of ``Push/countedKeys``.
    ///   - folded: The increments that match ``Push/foldedQueries(_:)``.
    ///   - admission: With the generation of the account, with which the store must be readable.
    ///   - epoch: The epoch of this run of the server.
    /// - Throws: ``ClockAhead``; nothing has changed then.
    package mutating func admit(
        _ push: Push, records: [Key: Record], folded known: [FoldedIncrement],
        by admission: PushAdmission, in epoch: UInt64
    ) throws(ClockAhead) -> CommittedPush {
        let stored = PushAdmission.Stored(
            records: records, state: self, increments: known, epoch: epoch)
        let decision = try admission.decide(push, on: stored)
        let previous = lineage.position
        let passed = push.saved.flatMap { lineage.passed($0) }
        var span: Lineage.Span?
        accepted = decision.accepted
        if !decision.writes.isEmpty {
            usage = decision.usage
            generation = admission.generation
            newest = decision.newest
            keepHorizon(below: decision.writes)
            deletions += Self.deletions(in: decision.writes, replacing: records)
            folded += Set(decision.folded.map(\.id)).subtracting(known.lazy.map(\.id)).count
            span = lineage.advance(in: epoch)
        }
        let moment = RecordVersion.Moment(
            revision: lineage.revision, milliseconds: admission.now)
        let change = history.take(
            decision, over: records, after: stored.state.accepted, at: moment,
            within: admission.history)
        return CommittedPush(
            writes: decision.writes, folded: decision.folded, span: span, results: decision.results,
            previous: previous, position: lineage.position, serverMilliseconds: admission.now,
            horizon: horizon,
            deletions: deletions, foldedCount: folded, history: change, passed: passed)
    }

    /// Drops tombstones as far as the rule permits.
    /// - Parameters:
    ///   - tombstones: All tombstones of the store, in the order of their revisions.
    ///   - passed: As for ``CompactionRule/horizon(of:passed:running:newest:)``.
    /// - Returns: The revision up to which tombstones are dropped, and their number; nil if none are.
    package mutating func compact(
        _ tombstones: [CompactionRule.Tombstone], by rule: CompactionRule, passed: Int64?,
        running: Int64
    ) -> (revision: Int64, count: Int)? {
        let last = rule.horizon(of: tombstones, passed: passed, running: running, newest: newest)
        guard let last else { return nil }
        let dropped = tombstones.prefix { $0.revision <= last }
        let kept = tombstones.dropFirst(dropped.count)
        deletions = kept.reduce(0) { $0 + $1.weight }
        newestCompacted = dropped.lazy.map(\.timestamp).reduce(newestCompacted, max)
        lineage.compactedRevision = max(lineage.compactedRevision, last)
        let oldest = kept.lazy.map(\.timestamp).min()
        horizon = oldest.map { min(newestCompacted, $0.previous) } ?? newestCompacted
        return (last, dropped.count)
    }

    /// Drops increments of folded counts as far as the rule permits.
    /// - Parameter increments: All increments of the store, in the order in which they were folded.
    /// - Returns: The revision up to which increments are dropped, and their number; nil if none are.
    package mutating func compactFolded(
        _ increments: [CompactionRule.Tombstone], by rule: CompactionRule, running: Int64
    ) -> (revision: Int64, count: Int)? {
        let last = rule.horizon(of: increments, passed: nil, running: running, newest: newest)
        guard let last else { return nil }
        let dropped = increments.prefix { $0.revision <= last }
        folded -= dropped.count
        foldsCompacted = FoldHorizon(
            timestamp: dropped.lazy.map(\.timestamp).reduce(foldsCompacted.timestamp, max),
            revision: max(foldsCompacted.revision, last))
        return (last, dropped.count)
    }

    private mutating func keepHorizon(below writes: [Record]) {
        for write in writes where write.content == .deleted {
            horizon = min(horizon, write.stamp.timestamp.previous)
        }
    }

    private static func deletions(in writes: [Record], replacing old: [Key: Record]) -> Int {
        writes.reduce(0) { sum, write in
            let wasDeleted = old[write.key]?.content == .deleted
            guard wasDeleted != (write.content == .deleted) else { return sum }
            let weight = write.key.tombstoneWeight
            return wasDeleted ? sum - weight : sum + weight
        }
    }
}

/// A push as a store commits it: the changes to store, and the answers to the device and to the
/// store's listeners.
package struct CommittedPush: Hashable, Sendable {
    /// The records to store under the revision of ``position`` and to send to listeners; empty if
    /// the push changes nothing and makes no revision.
    package var writes: [Record]
    /// The increments to store with them. They replace stored ones of the same ID.
    package var folded: [FoldedIncrement]
    /// The span to store with them, if the revision begins one.
    package var span: Lineage.Span?
    package var results: [TransactionResult]
    /// The store's position before the push.
    package var previous: Position
    /// The store's position after the push.
    package var position: Position
    package var serverMilliseconds: Int64
    /// The store's tombstone horizon.
    package var horizon: HybridTimestamp
    /// The weight of the store's tombstones.
    package var deletions: Int
    /// The number of the store's increments of folded counts.
    package var foldedCount: Int
    /// The changes to the history that go with them.
    package var history: HistoryChange
    /// The revision up to which the device says it has saved the store; nil if it does not say.
    package var passed: Position? = nil
    /// The bytes of the history that were read to remove what must not be kept, which the device is
    /// charged for. Those of several pushes that are committed together are read once.
    package var searchedBytes = 0

    /// Whether there is nothing to store.
    package var isEmpty: Bool { writes.isEmpty && history.isEmpty }

    /// The answer to the device that pushed.
    package var answer: PushAnswer {
        PushAnswer(
            cursor: position.cursor, serverMilliseconds: serverMilliseconds, results: results)
    }

    /// The changes to send to the store's listeners.
    package var changes: ChangeSet {
        ChangeSet(
            records: writes, cursor: position.cursor, serverMilliseconds: serverMilliseconds,
            isWhole: false, horizon: horizon)
    }
}
