// SPDX-License-Identifier: Apache-2.0

/// Applies a push to the counters whose runs the server has folded, and folds further runs.
///
/// Each run of an app that counts leaves a part, and each removal another one. Only the server sees
/// all writes in one order, so only the server may move a run's count into a sum, ``PartID/fold``,
/// and stop listing the run. A late write of that run, a copy or a continued count, is compared
/// with the ``FoldedIncrement``s, so that everything is in the sum once.
///
/// For a fold [N, X] and its removal [M, -Y]: X is everything that was ever folded and had not been
/// removed at that time. Y is everything removed since: all up to the mark M, and, of later
/// increments, each one whose remover had seen it as its run's own.
///
/// The writes are collected first, each with its transaction, and take effect at the end of the
/// push.
struct CountFolding {
    struct Late {
        var count: Count
        var stamp: Stamp
    }

    /// The writes of a counter that are not listed.
    struct Counter {
        var counts: [Key: Late] = [:]
        var removals: [Key: Late] = [:]
        /// The removal that has seen the most of the fold.
        var removal: (mark: FoldMark, write: Record)?
        /// The devices' writes to the fold and its removal.
        var ofFold: [Record] = []
    }

    let partsMax: Int
    private let lineage: Lineage
    let mark: FoldMark
    let compacted: FoldHorizon
    /// The increments of each run, ordered by their times.
    private(set) var increments: [Key: [FoldedIncrement]] = [:]
    private(set) var counters: [Key: Counter] = [:]
    /// For the sums of counters in a sealed store: of all counts of each, the seal of the greatest
    /// generation.
    private(set) var seals: [Key: SealedCount.Seal] = [:]
    private var changed: [FoldedIncrement.ID: FoldedIncrement] = [:]

    init(_ push: Push, on stored: PushAdmission.Stored, partsMax: Int) {
        self.partsMax = partsMax
        (lineage, compacted) = (stored.state.lineage, stored.state.foldsCompacted)
        mark = FoldMark(revision: lineage.revision + 1, epoch: stored.epoch)
        for increment in stored.increments {
            increments[increment.run, default: []].append(increment)
        }
        for run in increments.keys { increments[run]?.sort { $0.times < $1.times } }
    }

    // MARK: - Each write

    /// Whether a write is not to be listed, because its run is folded or because it belongs to the
    /// fold itself.
    func absorbs(_ write: Record) -> Bool {
        guard write.key.isCount else { return false }
        return write.key.isOfFold
            || increments[write.key.run] != nil && Count(write.content.value) != nil
    }

    /// Collects a write that it ``absorbs(_:)``, or another write of a count.
    mutating func take(_ write: Record) {
        guard write.key.isCount else { return }
        let whole = write.key.whole
        var counter = counters.removeValue(forKey: whole) ?? Counter()
        defer { counters[whole] = counter }
        noteSeal(of: write)
        guard absorbs(write) else { return }
        if write.key.isOfFold {
            counter.ofFold.append(write)
            // A deletion does not say how far it reaches, and would reach further when repeated.
            guard write.key.isRemoval, let place = Count(write.content.value).flatMap(place)
            else { return }
            if counter.removal.map({ $0.mark < place }) ?? true { counter.removal = (place, write) }
        } else if let count = Count(write.content.value) {
            let late = Late(count: count, stamp: write.stamp)
            if write.key.isRemoval {
                Self.keep(late, of: write.key.run, in: &counter.removals)
            } else {
                Self.keep(late, of: write.key, in: &counter.counts)
            }
        }
    }

    private mutating func noteSeal(of record: Record) {
        guard let seal = Count(record.content.value)?.seal else { return }
        seals[record.key.whole] = max(seals[record.key.whole] ?? seal, seal)
    }

    /// Keeps the write of a run that has come furthest.
    private static func keep(_ late: Late, of run: Key, in all: inout [Key: Late]) {
        if let other = all[run], other.count.times >= late.count.times { return }
        all[run] = late
    }

    /// The mark up to which the author of a removal has seen the fold; nil if that mark is not in
    /// this history.
    func place(of removal: Count) -> FoldMark? {
        lineage.place(of: FoldMark(rawValue: removal.times))
    }

    func fold(of key: Key, _ records: [Key: Record]) -> (mark: FoldMark, sum: Number) {
        let fold = Count(records[key.part(.fold)]?.content.value)
        return (FoldMark(rawValue: fold?.times ?? 0), fold?.total ?? .zero)
    }

    // MARK: - All of them

    /// Brings each counter to its state after the push.
    /// - Returns: The increments to store.
    mutating func finish(_ stored: inout PushAdmission.Stored) -> [FoldedIncrement] {
        let runs = Dictionary(grouping: increments.keys, by: \.whole)
        for (key, record) in stored.records where key.isCount && counters[key.whole] != nil {
            noteSeal(of: record)
        }
        let listed = listedCounts(stored)
        for key in counters.keys.sorted() {
            finish(key, runs[key] ?? [], listed[key] ?? [:], &stored)
        }
        return changed.values.sorted { ($0.run, $0.times) < ($1.run, $1.times) }
    }

    /// The changes of a counter's fold.
    struct Change {
        /// The sum of what was added and not yet removed by anyone, and its greatest stamp.
        var added: Number?
        var addedStamp: Stamp?
        /// The sum of what was removed from the fold's visible total.
        var removed: Number?
        var removedStamp: Stamp?
        /// The runs that are folded for the first time.
        var runs: [Key] = []

        mutating func add(_ amount: Number, _ stamp: Stamp) {
            added = (added ?? .zero) + amount
            addedStamp = max(addedStamp ?? stamp, stamp)
        }

        mutating func remove(_ amount: Number, _ stamp: Stamp) {
            removed = (removed ?? .zero) + amount
            removedStamp = max(removedStamp ?? stamp, stamp)
        }
    }

    private mutating func finish(
        _ key: Key, _ runs: [Key], _ listed: [Key: Listed], _ stored: inout PushAdmission.Stored
    ) {
        guard let counter = counters[key] else { return }
        let removed = Count.removedFold(of: key, in: stored.records)
        var change = Change()
        for (run, late) in counter.counts.sorted(by: { $0.key < $1.key }) {
            add(late, of: run, &change)
            stored.bury(run, under: late.stamp)
        }
        for (run, late) in counter.removals.sorted(by: { $0.key < $1.key }) {
            let isNew = remove(late, of: run, after: removed, &change)
            stored.bury(run.removal, under: late.stamp, anew: isNew)
        }
        fold(listed, &change, &stored)
        write(key, change, &stored)
        take(counter.removal, of: key, runs + change.runs, change, &stored)
        for write in counter.ofFold where stored.records[write.key] == nil {
            stored.bury(write.key, under: write.stamp)
        }
    }

    /// Adds a count that arrives after its run was folded.
    private mutating func add(_ late: Late, of run: Key, _ change: inout Change) {
        guard let last = increments[run]?.last, late.count.times > last.times,
            late.count.total.real.isFinite
        else { return }
        let amount = late.count.total - last.total
        append(
            FoldedIncrement(
                run: run, after: last.times, times: late.count.times, amount: amount,
                total: late.count.total, mark: mark, isRemoved: false,
                timestamp: late.stamp.timestamp))
        change.add(amount, late.stamp)
    }

    /// Applies a removal that arrives after its run was folded. If it ends within an increment,
    /// that increment is split in two.
    /// - Parameter mark: The mark up to which the whole fold is removed.
    /// - Returns: Whether the removal goes beyond everything that its run has counted.
    private mutating func remove(
        _ late: Late, of run: Key, after mark: FoldMark, _ change: inout Change
    ) -> Bool {
        guard let rows = increments[run], let last = rows.last, late.count.total.real.isFinite
        else { return false }
        let (times, total) = (late.count.times, .zero - late.count.total)
        for (index, row) in rows.enumerated() where !row.isRemoved && row.mark > mark {
            if row.times <= times {
                increments[run]?[index].isRemoved = true
                changed[row.id] = increments[run]?[index]
                change.remove(row.amount, late.stamp)
            } else if row.after < times {
                var (first, second) = (row, row)
                (first.times, first.total, first.isRemoved) = (times, total, true)
                first.amount = total - (row.total - row.amount)
                (second.after, second.amount) = (times, row.total - total)
                increments[run]?.replaceSubrange(index...index, with: [first, second])
                (changed[first.id], changed[second.id]) = (first, second)
                change.remove(first.amount, late.stamp)
                break
            }
        }
        guard times > last.times else { return false }
        append(
            FoldedIncrement(
                run: run, after: last.times, times: times, amount: total - last.total, total: total,
                mark: self.mark, isRemoved: true, timestamp: late.stamp.timestamp))
        return true
    }

    mutating func append(_ increment: FoldedIncrement) {
        increments[increment.run, default: []].append(increment)
        changed[increment.id] = increment
    }
}

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
            && (!tellsHad || before.state.accepted.mayContain(write.stamp))
        return isRepeated
            || transaction.had[write.key].map {
                $0.timestamp <= compacted.timestamp && before.state.accepted.mayContain($0)
            } ?? false
    }
}
