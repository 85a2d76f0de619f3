// SPDX-License-Identifier: Apache-2.0

// MARK: - Dropped increments

extension CountFolding {
    /// Whether what a write counts or removes may be among the increments already dropped. It could
    /// be counted twice, or stay although it was removed.
    /// - Parameters:
    ///   - before: The state before the push.
    ///   - records: The current state.
    func isTooOld(
        _ transaction: Transaction, _ before: PushAdmission.Stored, _ records: [Key: Record],
        tellsHad: Bool
    ) -> Bool {
        guard compacted.revision > 0 else { return false }
        let keys = Set(transaction.writes.lazy.filter { $0.key.isCount }.map(\.key))
        return transaction.writes.contains { write in
            isTooOld(write, transaction, keys, before, records, tellsHad)
        }
    }

    private func isTooOld(
        _ write: Record, _ transaction: Transaction, _ keys: Set<Key>,
        _ before: PushAdmission.Stored, _ records: [Key: Record], _ tellsHad: Bool
    ) -> Bool {
        guard write.key.isCount, let count = Count(write.content.value) else { return false }
        let removed = Count.removedFold(of: write.key.whole, in: records)
        let hasCompacted = removed.revision < compacted.revision
        if write.key.isOfFold {
            guard write.key.isRemoval, let place = place(of: count) else { return false }
            return hasCompacted && removed < place && place.revision < compacted.revision
                && place < fold(of: write.key.whole, records).mark
        }
        if let first = increments[write.key.run]?.first {
            return hasCompacted && write.key.isRemoval && first.after != FoldedIncrement.beginning
        }
        guard records[write.key]?.content.value == nil else { return false }
        if write.key.isRemoval {
            let run = write.key.run
            return hasCompacted && records[write.key.whole.part(.fold)] != nil
                && records[run]?.content.value == nil && !keys.contains(run)
        }
        let isRepeated =
            write.stamp.timestamp <= compacted.timestamp
            && (!tellsHad || before.accepted.mayContain(write.stamp))
        return isRepeated
            || transaction.had[write.key].map {
                $0.timestamp <= compacted.timestamp && before.accepted.mayContain($0)
            } ?? false
    }
}
