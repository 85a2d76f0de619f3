// SPDX-License-Identifier: Apache-2.0

/// What a store knows of its history without reading it.
package struct HistoryState: Hashable, Sendable {
    /// The bytes of the versions, or more than that: those that are removed between two prunings are
    /// not subtracted.
    package var bytes: Int
    /// What the store was before is not known. The time is 0 if it is not known either.
    package var floor: RecordVersion.Moment
    /// When the oldest version ended, in milliseconds since 1970, or earlier; 0 if there is none.
    package var oldest: Int64

    package init(
        bytes: Int = 0, floor: RecordVersion.Moment = .start, oldest: Int64 = 0
    ) {
        self.bytes = bytes
        self.floor = floor
        self.oldest = oldest
    }

    /// Takes in what a push has decided.
    /// - Parameters:
    ///   - records: The stored records from before the push.
    ///   - moment: The store's revision after the push, and the server's time.
    mutating func take(
        _ decision: PushAdmission.Decision, over records: [Key: Record],
        at moment: RecordVersion.Moment, within limits: HistoryLimits
    ) -> HistoryChange {
        var change = HistoryChange(at: moment)
        change.unkept = decision.unkept.filter { key in
            decision.writes.contains { $0.key.whole == key }
                || decision.passing.contains { $0.record.key.whole == key }
        }
        for key in change.unkept { add(HistoryRule.bytes(key: key.bytesCount, value: 0), moment) }
        let replaced = decision.writes.lazy.map(\.key).filter { records[$0] != nil }
        guard !limits.isOff else {
            if !replaced.isEmpty { floor = moment }
            return change
        }
        if floor.revision > 0, floor.milliseconds == 0, moment.revision > floor.revision {
            floor.milliseconds = moment.milliseconds
        }
        for key in replaced where !change.unkept.contains(key.whole) {
            change.replaced.insert(key)
            add(records[key]?.pushBytes ?? 0, moment)
        }
        var lost: Set<Record> = []
        for write in decision.passing where !change.unkept.contains(write.record.key.whole) {
            guard !write.isLost || lost.insert(write.record).inserted else { continue }
            change.passing.append(write)
            add(write.record.pushBytes, moment)
        }
        change.isOverLimit = bytes > limits.bytesMax
        return change
    }

    private mutating func add(_ count: Int, _ moment: RecordVersion.Moment) {
        if bytes == 0 { oldest = moment.milliseconds }
        bytes += count
    }

    /// Whether there is something to prune that has been there for long enough. An active store has
    /// some version that is just too old at any time, so these wait for one another for a while.
    /// - Parameter now: The server's milliseconds since 1970.
    package func isDue(within limits: HistoryLimits, now: Int64) -> Bool {
        guard bytes > 0 else { return false }
        return limits.isOff || now - oldest > limits.milliseconds + limits.milliseconds / 30
    }
}

/// What a push adds to a store's history.
package struct HistoryChange: Hashable, Sendable {
    /// The revision with which all of it happened, and when.
    package var moment: RecordVersion.Moment
    /// The entries whose stored record becomes a version, unless it is one that must not be kept.
    /// Then it is only noted that what the entry was is not known.
    package var replaced: Set<Key> = []
    /// Further writes. One that has lost is not added again if it was there already.
    package var passing: [PushAdmission.PassingWrite] = []
    /// The keys of which all versions are removed, with their parts, and of which it is noted that
    /// what they were is not known. The push's records of them must not be kept later.
    package var unkept: Set<Key> = []
    /// Whether the versions may take more bytes than they should, so that they are to be pruned.
    package var isOverLimit = false

    package init(at moment: RecordVersion.Moment) { self.moment = moment }

    package var isEmpty: Bool { replaced.isEmpty && passing.isEmpty && unkept.isEmpty }

    /// The stamp of the write that replaced an entry's stored record.
    /// - Parameter record: The one that the push stores in its place.
    package func replacement(of record: Record) -> Stamp {
        passing.first { !$0.isLost && $0.record.key == record.key }?.record.stamp ?? record.stamp
    }

    /// When a record of the push came, in milliseconds since 1970; nil if it must not be kept.
    package func came(_ record: Record) -> Int64? {
        unkept.contains(record.key.whole) ? nil : moment.milliseconds
    }
}

extension RecordVersion.Moment {
    /// Before everything.
    package static let start = RecordVersion.Moment(revision: 0, milliseconds: 0)
}
