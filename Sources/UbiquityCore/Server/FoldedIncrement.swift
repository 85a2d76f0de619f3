// SPDX-License-Identifier: Apache-2.0

/// A step of a run's count that the server has folded: it is in the sum ``PartID/fold``, and the
/// run's part is no longer listed.
///
/// The rows of a run follow one another in the order of their times, and separate late news from
/// what is already there.
package struct FoldedIncrement: Hashable, Sendable {
    package struct ID: Hashable, Sendable {
        package var run: Key
        package var times: Int64
    }

    /// The part in which the run counted.
    package var run: Key
    /// The number of times that the previous row goes up to, or ``beginning`` for the run's first
    /// row.
    package var after: Int64
    /// The number of times that this row goes up to.
    package var times: Int64
    package var amount: Number
    /// The run's count up to this row.
    package var total: Number
    /// The moment of folding.
    package var mark: FoldMark
    /// Whether someone who had seen it as the run's own removed it, before or after the folding.
    package var isRemoved: Bool
    /// The timestamp of the write that brought it.
    package var timestamp: HybridTimestamp

    package static let beginning = Int64.min

    package init(
        run: Key, after: Int64, times: Int64, amount: Number, total: Number, mark: FoldMark,
        isRemoved: Bool, timestamp: HybridTimestamp
    ) {
        self.run = run
        self.after = after
        self.times = times
        self.amount = amount
        self.total = total
        self.mark = mark
        self.isRemoved = isRemoved
        self.timestamp = timestamp
    }

    package var id: ID { ID(run: run, times: times) }
}

/// A moment in a counter's folding, used as the number of times of ``PartID/fold``: the revision,
/// and 24 bits of the epoch in which it was committed. These bits tell it from marks of another
/// history, such as that of a server since restored from a backup.
package struct FoldMark: Hashable, Comparable, Sendable {
    private static let tagBits: Int64 = 24
    package static let zero = FoldMark(rawValue: 0)

    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }

    package init(revision: Int64, epoch: UInt64) {
        rawValue = revision << Self.tagBits | Self.tag(epoch)
    }

    package var revision: Int64 { rawValue >> Self.tagBits }

    fileprivate var tag: Int64 { rawValue & (1 << Self.tagBits - 1) }

    fileprivate static func tag(_ epoch: UInt64) -> Int64 {
        Int64(truncatingIfNeeded: epoch & (1 << UInt64(tagBits) - 1))
    }

    package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

extension Lineage {
    /// Translates a mark of a possibly branched history into one of this history, such that whoever
    /// has seen that has seen this; nil if there is no such mark.
    func place(of mark: FoldMark) -> FoldMark? {
        guard mark.rawValue > 0 else { return nil }
        let begun = spans.prefix { $0.firstRevision <= mark.revision }
        if let last = begun.last, mark.revision <= revision, FoldMark.tag(last.epoch) == mark.tag {
            return mark
        }
        guard let index = begun.lastIndex(where: { FoldMark.tag($0.epoch) == mark.tag }) else {
            return nil
        }
        let end = index + 1 < spans.count ? spans[index + 1].firstRevision - 1 : revision
        return FoldMark(revision: end, epoch: spans[index].epoch)
    }
}

/// The end of a store's folded increments that have been dropped.
package struct FoldHorizon: Hashable, Sendable {
    /// The greatest timestamp of a dropped increment.
    package var timestamp: HybridTimestamp
    /// All increments up to this revision are dropped; 0 if none are.
    package var revision: Int64

    package init(timestamp: HybridTimestamp = .zero, revision: Int64 = 0) {
        (self.timestamp, self.revision) = (timestamp, revision)
    }
}

/// The folded increments of a key that the server must look up for a push.
package struct FoldedQuery: Hashable, Sendable {
    package var key: Key
    /// All increments of these runs.
    package var runs: Set<Key> = []
    /// The increments of any run from after this mark on that are not removed; nil to select those
    /// of `runs` only.
    package var after: FoldMark?

    package func matches(_ increment: FoldedIncrement) -> Bool {
        guard increment.run.whole == key else { return false }
        return runs.contains(increment.run)
            || after.map { !increment.isRemoved && increment.mark > $0 } ?? false
    }
}

extension Push {
    /// The keys under which the push counts something. All their listed counts decide what is
    /// folded.
    package var countedKeys: Set<Key> {
        transactions.reduce(into: []) { keys, transaction in
            for write in transaction.writes where write.key.isCount { keys.insert(write.key.whole) }
        }
    }

    /// - Parameter records: The stored records of the push's keys, and of ``countedKeys`` all counts,
    ///   with ``Key/partsOfFold`` also if they are deleted: the server's own writes must be later.
    package func foldedQueries(_ records: [Key: Record]) -> [FoldedQuery] {
        var queries: [Key: FoldedQuery] = [:]
        for write in transactions.lazy.flatMap(\.writes) where write.key.isCount {
            let whole = write.key.whole
            if !write.key.isOfFold {
                queries[whole, default: FoldedQuery(key: whole)].runs.insert(write.key.run)
            }
            if write.key.isTakenAway(by: write.content) {
                queries[whole, default: FoldedQuery(key: whole)].after =
                    Count.removedFold(of: whole, in: records)
            }
        }
        return queries.values.sorted { $0.key < $1.key }
    }
}

extension Key {
    /// The ranges that contain the bytes of the key and of all of its parts.
    package var boundsOfEntries: [(lower: [UInt8], upper: [UInt8])] {
        let parts = whole.part(PartID(String(MergePolicy.counter.rawValue))!).bytes.dropLast()
        return [(whole.bytes, whole.bytes + [0]), (Array(parts), parts + [.max])]
    }

    /// The range that contains the bytes of all of the key's counts.
    package var boundsOfCounts: (lower: [UInt8], upper: [UInt8]) {
        let kind = part(PartID(String(MergePolicy.counter.rawValue))!).bytes
        return (kind, kind.dropLast() + [kind.last! + 1])
    }

    /// The key's fold and the fold's removal.
    package var partsOfFold: [Key] { [part(.fold), part(PartID.fold.removal)] }

    /// Whether it is a counter's fold or the fold's removal.
    var isOfFold: Bool { part == .fold || part == PartID.fold.removal }

    /// The key of the count, for a run's count or its removal.
    package var run: Key {
        guard let part, part.isRemoval else { return self }
        let name = String(part.name.unicodeScalars.dropFirst())
        return PartID("\(MergePolicy.counter.rawValue)\(name)").map { whole.part($0) } ?? self
    }

    /// The key of the removal, for a run's count.
    var removal: Key { part.map { whole.part($0.removal) } ?? self }
}

extension Count {
    /// The mark up to which a key's fold is removed.
    static func removedFold(of key: Key, in records: [Key: Record]) -> FoldMark {
        let removal = Count(records[key.part(PartID.fold.removal)]?.content.value)
        return FoldMark(rawValue: removal?.times ?? 0)
    }

    /// A greater count would make the sum inexact for good, so it is not folded.
    private static let foldedMax = 9_007_199_254_740_992.0

    var canBeFolded: Bool { abs(total.real) <= Self.foldedMax }
}
