// SPDX-License-Identifier: Apache-2.0

/// The facts about a store's history that are known without reading it.
package struct HistoryState: Hashable, Sendable {
    /// The bytes of the versions, or more than that: those that are removed between two prunings are
    /// not subtracted.
    package var bytes: Int
    /// The moment before which the history is unknown.
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

    /// Takes in what a push has decided. A write that lost is kept unless the store may have decided
    /// about it before: a push may be repeated, and versions that were removed must not come back.
    /// - Parameters:
    ///   - records: The stored records from before the push.
    ///   - accepted: What the store had decided about before the push.
    ///   - moment: The store's revision after the push, and the server's time.
    mutating func take(
        _ decision: PushAdmission.Decision, over records: [Key: Record],
        after accepted: VersionVector, at moment: RecordVersion.Moment,
        within limits: HistoryLimits
    ) -> HistoryChange {
        var change = HistoryChange(at: moment)
        if !decision.unkept.isEmpty {
            change.unkept = decision.unkept.intersection(
                decision.writes.map(\.key.whole) + decision.passing.map(\.record.key.whole))
        }
        for key in change.unkept { add(HistoryRule.bytes(key: key.bytesCount, value: 0), moment) }
        let replaced = decision.writes.filter { records[$0.key] != nil }
        guard !limits.isOff else {
            if !replaced.isEmpty { floor = moment }
            return change
        }
        // The push may have replaced what replaced it.
        let first = Dictionary(
            decision.passing.lazy.filter { !$0.isLost }.map { ($0.record.key, $0.record.stamp) },
            uniquingKeysWith: { first, _ in first })
        for write in replaced where !change.unkept.contains(write.key.whole) {
            change.replaced[write.key] = first[write.key] ?? write.stamp
            add(records[write.key]?.pushBytes ?? 0, moment)
        }
        var kept: Set<Record> = []
        for write in decision.passing where !change.unkept.contains(write.record.key.whole) {
            if write.isLost, accepted.mayContain(write.record.stamp) { continue }
            // A push may bring a write again that it has replaced itself.
            guard kept.insert(write.record).inserted else { continue }
            change.passing.append(write)
            add(write.record.pushBytes, moment)
        }
        return change
    }

    private mutating func add(_ count: Int, _ moment: RecordVersion.Moment) {
        if bytes == 0 { oldest = moment.milliseconds }
        bytes += count
    }

    /// Whether the store's next push prunes it first. That takes long, so of a group of pushes one does it,
    /// and others only if their histories are over the limit by an eighth, or off.
    /// - Parameter byFar: Whether the group has pruned another history.
    package func exceeds(_ limits: HistoryLimits, byFar: Bool) -> Bool {
        let bytesMax = limits.isOff ? 0 : limits.bytesMax
        return bytes - bytesMax > (byFar ? bytesMax / 8 : 0)
    }

    /// Whether it is to be pruned without a push: because it is too large, or has something that has been
    /// too old for a while. An active store has some version that is just too old at any time, so these
    /// wait for one another.
    /// - Parameter now: The server's milliseconds since 1970.
    package func isDue(within limits: HistoryLimits, now: Int64) -> Bool {
        guard bytes > 0 else { return false }
        return exceeds(limits, byFar: false)
            || now - oldest > limits.milliseconds + limits.milliseconds / 30
    }
}

/// The changes that a push makes to a store's history.
package struct HistoryChange: Hashable, Sendable {
    /// The revision with which all of it happened, and when.
    package var moment: RecordVersion.Moment
    /// The entries whose stored record becomes a version, with the stamp of the write that replaced it.
    /// If it is a record that must not be kept, it is only noted that what the entry was is not known.
    package var replaced: [Key: Stamp] = [:]
    /// Further writes.
    package var passing: [PushAdmission.PassingWrite] = []
    /// The keys whose versions are all removed, with their parts, and whose earlier values are
    /// noted as unknown. The push's records of them must not be kept later.
    package var unkept: Set<Key> = []

    package init(at moment: RecordVersion.Moment) { self.moment = moment }

    package var isEmpty: Bool { replaced.isEmpty && passing.isEmpty && unkept.isEmpty }

    /// When a record of the push came, in milliseconds since 1970; nil if it must not be kept.
    package func came(_ record: Record) -> Int64? {
        unkept.contains(record.key.whole) ? nil : moment.milliseconds
    }
}

extension RecordVersion.Moment {
    /// Before everything.
    package static let start = RecordVersion.Moment(revision: 0, milliseconds: 0)
}
