// SPDX-License-Identifier: Apache-2.0

/// The whole of a store, sealed with another key than before, which replaces what was read.
package struct WholeStore: Hashable, Sendable {
    /// The store's as it was read.
    package var cursor: Cursor
    /// The generation of the key that sealed the records.
    package var generation: UInt32
    /// Values alone.
    package var records: [Record]
    /// Of that key; nil if the device has not shown it.
    package var proof: Bytes32?

    package init(
        cursor: Cursor, generation: UInt32, records: [Record], proof: Bytes32? = nil
    ) {
        (self.cursor, self.generation) = (cursor, generation)
        (self.records, self.proof) = (records, proof)
    }
}

/// The reason a store was not replaced.
package enum WholeRefusal: Error, Hashable, Sendable {
    case sealing(SealingRefusal)
    /// A record is stamped too far ahead; ``ClockAhead/write`` is its number.
    case clockAhead(ClockAhead)
    /// A record cannot be in the store; the number is from 0.
    case record(Int, Refusal)
    /// All of them cannot.
    case tooLarge(Refusal)
}

extension StoreState {
    /// Whether a device with the key of this generation, or without one if it is 0, can read what the
    /// store has.
    package func isReadable(with generation: UInt32) -> Bool {
        contentGeneration.map { $0 == generation } ?? true
    }

    /// The generation of the key that sealed what the store has, 0 if it is not sealed; nil if there is
    /// nothing.
    package var contentGeneration: UInt32? {
        let isEmpty = usage == Usage() && deletions == 0 && folded == 0 && history.bytes == 0
        return isEmpty ? nil : generation
    }
}

extension StoreState {
    /// Replaces all records. The history and the tombstones are gone: cursors of before are forgotten,
    /// and what is not listed was deleted. The increments of folded counts stay, so that late counts
    /// still find their runs, and so does what the store has decided about.
    /// - Parameters:
    ///   - admission: With the generation of the account.
    ///   - epoch: The epoch of this run of the server.
    /// - Returns: The span to store with them, if the revision begins one.
    /// - Throws: ``WholeRefusal``; nothing has changed then.
    package mutating func replace(
        by whole: WholeStore, by admission: PushAdmission, in epoch: UInt64
    ) throws(WholeRefusal) -> Lineage.Span? {
        do throws(SealingRefusal) {
            try SealingRefusal.check(whole.generation, in: admission.generation)
        } catch { throw .sealing(error) }
        guard lineage.revision > 0, whole.generation > generation,
            whole.cursor == lineage.position.cursor
        else { throw .sealing(.storeChanged) }
        let (usage, last) = try check(whole.records, by: admission)
        generation = whole.generation
        newest = max(newest, min(last, admission.latest))
        return begin(with: usage, at: admission.now, in: epoch)
    }

    /// Removes everything, as if the account had never been sealed: records, history, and the increments
    /// of folded counts. Cursors of before are forgotten, so that no device offers anew what it had.
    /// - Returns: As ``replace(by:by:in:)``.
    package mutating func reset(at now: Int64, in epoch: UInt64) -> Lineage.Span? {
        generation = 0
        folded = 0
        foldsCompacted = FoldHorizon(
            timestamp: max(foldsCompacted.timestamp, newest), revision: lineage.revision)
        return begin(with: Usage(), at: now, in: epoch)
    }

    /// - Returns: The space that they take, and their greatest time.
    private func check(
        _ records: [Record], by admission: PushAdmission
    ) throws(WholeRefusal) -> (usage: Usage, last: HybridTimestamp) {
        let latest = admission.latestMilliseconds(after: newest)
        var usage = Usage()
        var last = HybridTimestamp.zero
        var keys: Set<Key> = []
        keys.reserveCapacity(records.count)
        for (number, record) in records.enumerated() {
            guard record.stamp.timestamp.milliseconds <= latest else {
                throw .clockAhead(ClockAhead(serverMilliseconds: admission.now, write: number))
            }
            guard record.content != .deleted, record.isSealed(with: admission.generation) else {
                throw .record(number, .notSealed)
            }
            guard keys.insert(record.key).inserted else { throw .record(number, .repeated) }
            do throws(LimitViolation) {
                try StoreLimits.ceiling.check(record.key, record.content)
            } catch { throw .record(number, Refusal(error)) }
            usage.replace(nil, by: record.content.value, of: record.key)
            last = max(last, record.stamp.timestamp)
        }
        // What is there may exceed a limit that was lowered since, and small values need boxes of more
        // than twice their size. A store that could not be sealed would be lost.
        var before = self.usage
        before.bytes *= 4
        do throws(LimitViolation) {
            try admission.limits.check(
                from: before, to: usage,
                by: records.lazy.map { (key: $0.key, content: $0.content) })
        } catch { throw .tooLarge(Refusal(error)) }
        return (usage, last)
    }

    /// As after a compaction of everything that the store had.
    private mutating func begin(
        with usage: Usage, at now: Int64, in epoch: UInt64
    ) -> Lineage.Span? {
        self.usage = usage
        deletions = 0
        newestCompacted = max(newestCompacted, newest)
        horizon = newestCompacted
        let span = lineage.advance(in: epoch)
        lineage.compactedRevision = lineage.revision
        history = HistoryState(
            floor: RecordVersion.Moment(revision: lineage.revision, milliseconds: now))
        return span
    }
}

extension Refusal {
    static let repeated = Refusal(code: "repeated", detail: "the key occurs twice")
}
