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

    package init() {}

    package init(
        lineage: Lineage, usage: Usage, newest: HybridTimestamp, newestCompacted: HybridTimestamp,
        deletions: Int, accepted: VersionVector, horizon: HybridTimestamp, folded: Int,
        foldsCompacted: FoldHorizon, history: HistoryState
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
    }

    /// - Parameters:
    ///   - records: The stored records of the push's keys, and all counts of ``Push/countedKeys``.
    ///   - folded: The increments that match ``Push/foldedQueries(_:)``.
    ///   - epoch: The epoch of this run of the server.
    /// - Throws: ``ClockAhead``; nothing has changed then.
    package mutating func admit(
        _ push: Push, records: [Key: Record], folded known: [FoldedIncrement],
        by admission: PushAdmission, in epoch: UInt64
    ) throws(ClockAhead) -> CommittedPush {
        let stored = PushAdmission.Stored(
            records: records, usage: usage, newest: newest, newestCompacted: newestCompacted,
            accepted: accepted,
            folds: PushAdmission.Folds(
                increments: known, compacted: foldsCompacted, lineage: lineage, epoch: epoch))
        let decision = try admission.decide(push, on: stored)
        let previous = lineage.position
        let passed = push.saved.flatMap { lineage.passed($0) }
        var span: Lineage.Span?
        accepted = decision.accepted
        if !decision.writes.isEmpty {
            usage = decision.usage
            newest = decision.newest
            keepHorizon(below: decision.writes)
            deletions += Self.deletions(in: decision.writes, replacing: records)
            folded += Set(decision.folded.map(\.id)).subtracting(known.lazy.map(\.id)).count
            span = lineage.advance(in: epoch)
        }
        let moment = RecordVersion.Moment(
            revision: lineage.revision, milliseconds: admission.now)
        let change = history.take(
            decision, over: records, after: stored.accepted, at: moment, within: admission.history)
        return CommittedPush(
            writes: decision.writes, folded: decision.folded, span: span, results: decision.results,
            previous: previous, position: lineage.position, serverMilliseconds: admission.now,
            horizon: horizon,
            deletions: deletions, foldedCount: folded, history: change, passed: passed)
    }

    /// Records that the tombstones up to a revision have been dropped.
    /// - Parameter known: All tombstones before that.
    package mutating func compact(
        through revision: Int64, of known: [CompactionRule.Tombstone]
    ) {
        let kept = known.filter { $0.revision > revision }
        deletions = kept.reduce(0) { $0 + $1.weight }
        newestCompacted = known.lazy.filter { $0.revision <= revision }.map(\.timestamp)
            .reduce(newestCompacted, max)
        lineage.compactedRevision = max(lineage.compactedRevision, revision)
        let oldest = kept.map(\.timestamp).min()
        horizon = oldest.map { min(newestCompacted, $0.previous) } ?? newestCompacted
    }

    /// Records that the increments up to a revision have been dropped.
    /// - Parameter increments: The timestamps of the dropped ones.
    package mutating func compactFolded(_ increments: [HybridTimestamp], through revision: Int64) {
        folded -= increments.count
        foldsCompacted = FoldHorizon(
            timestamp: increments.reduce(foldsCompacted.timestamp, max),
            revision: max(foldsCompacted.revision, revision))
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
            let weight = CompactionRule.Tombstone.weight(of: write.key)
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
    package var passed: Int64? = nil

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
