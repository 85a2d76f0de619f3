// SPDX-License-Identifier: Apache-2.0

/// What a push does to counters of which the server has folded runs, and which runs it folds with it.
///
/// Each run of an app that counts leaves a part, and each removal another one. The server alone sees all
/// in one order, so it alone may put a run's count into a sum, ``PartID/fold``, and list it no more. What
/// then comes late of that run, a copy or what it counted since, meets the ``FoldedIncrement``s
/// and is in the sum once.
///
/// Of a fold [N, X] and its removal [M, -Y]: X is all that was ever folded and not removed by then, and Y
/// what was removed since: all up to the mark M, and of what was folded after it each increment that
/// somebody removed who had seen it as its run's own.
///
/// The writes are taken first, each with its transaction, and change nothing but at the end of the push.
struct CountFolding {
    private struct Late {
        var count: Count
        var stamp: Stamp
    }

    /// What came of a key.
    private struct Counter {
        var counts: [Key: Late] = [:]
        var removals: [Key: Late] = [:]
        /// Of the fold.
        var removal: (mark: FoldMark, write: Record)?
        /// What devices wrote as the fold or its removal.
        var ofFold: [Record] = []
    }

    private let partsMax: Int
    private let lineage: Lineage
    private let mark: FoldMark
    private let forgotten: FoldHorizon
    /// Of each run, in the order of their times.
    private var increments: [Key: [FoldedIncrement]] = [:]
    private var counters: [Key: Counter] = [:]
    private var changed: [FoldedIncrement.ID: FoldedIncrement] = [:]

    init(_ push: Push, on stored: PushAdmission.Stored, partsMax: Int) {
        self.partsMax = partsMax
        let folds = stored.folds
        (lineage, forgotten) = (folds.lineage, folds.forgotten)
        mark = FoldMark(revision: lineage.revision + 1, epoch: folds.epoch)
        for increment in folds.increments {
            increments[increment.run, default: []].append(increment)
        }
        for run in increments.keys { increments[run]?.sort { $0.times < $1.times } }
    }

    // MARK: - Each write

    /// Whether a write is not to be listed: its run is folded, or it is of the fold itself.
    func absorbs(_ write: Record) -> Bool {
        guard write.key.isCount else { return false }
        return write.key.isOfFold
            || increments[write.key.run] != nil && Count(write.content.value) != nil
    }

    /// Whether what a write counts, or removes, may be among the increments that are forgotten: it could be
    /// counted twice, or stay though it was removed.
    /// - Parameters:
    ///   - before: What was stored before the push.
    ///   - records: What is by now.
    func isTooOld(
        _ transaction: Transaction, _ before: PushAdmission.Stored, _ records: [Key: Record],
        tellsHad: Bool
    ) -> Bool {
        guard forgotten.revision > 0 else { return false }
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
        let hasForgotten = removed.revision < forgotten.revision
        if write.key.isOfFold {
            guard write.key.isRemoval, let place = place(of: count) else { return false }
            return hasForgotten && removed < place && place.revision < forgotten.revision
                && place < fold(of: write.key.whole, records).mark
        }
        if let first = increments[write.key.run]?.first {
            return hasForgotten && write.key.isRemoval && first.after != FoldedIncrement.beginning
        }
        guard records[write.key]?.content.value == nil else { return false }
        if write.key.isRemoval {
            let run = write.key.run
            return hasForgotten && records[write.key.whole.part(.fold)] != nil
                && records[run]?.content.value == nil && !keys.contains(run)
        }
        let isRepeated =
            write.stamp.timestamp <= forgotten.timestamp
            && (!tellsHad || before.accepted.mayContain(write.stamp))
        return isRepeated
            || transaction.had[write.key].map {
                $0.timestamp <= forgotten.timestamp && before.accepted.mayContain($0)
            } ?? false
    }

    /// Takes a write that it ``absorbs(_:)``, or another one of a count.
    mutating func take(_ write: Record) {
        guard write.key.isCount else { return }
        let whole = write.key.whole
        var counter = counters.removeValue(forKey: whole) ?? Counter()
        defer { counters[whole] = counter }
        guard absorbs(write) else { return }
        if write.key.isOfFold {
            counter.ofFold.append(write)
            // A deletion would not say up to where, and more when it is repeated.
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

    /// Of a run, that which has come furthest.
    private static func keep(_ late: Late, of run: Key, in all: inout [Key: Late]) {
        if let other = all[run], other.count.times >= late.count.times { return }
        all[run] = late
    }

    /// Up to where the author of a removal of the fold has seen it; nil: nothing that is here.
    private func place(of removal: Count) -> FoldMark? {
        lineage.place(of: FoldMark(rawValue: removal.times))
    }

    private func fold(of key: Key, _ records: [Key: Record]) -> (mark: FoldMark, sum: Number) {
        let fold = Count(records[key.part(.fold)]?.content.value)
        return (FoldMark(rawValue: fold?.times ?? 0), fold?.total ?? .zero)
    }

    // MARK: - All of them

    /// What the push makes of each counter in the end.
    /// - Returns: The increments to be stored.
    mutating func finish(_ stored: inout PushAdmission.Stored) -> [FoldedIncrement] {
        let runs = Dictionary(grouping: increments.keys, by: \.whole)
        let listed = listedCounts(stored)
        for key in counters.keys.sorted() {
            finish(key, runs[key] ?? [], listed[key] ?? [:], &stored)
        }
        return changed.values.sorted { ($0.run, $0.times) < ($1.run, $1.times) }
    }

    /// What changes of a counter's fold.
    private struct Change {
        /// What was added that nobody had removed, and the greatest stamp of it.
        var added: Number?
        var addedStamp: Stamp?
        /// What was removed of that which the fold shows.
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

    /// A count that comes when its run is folded.
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

    /// A removal that comes when its run is folded. An increment within which it falls becomes two.
    /// - Parameter mark: Up to where the fold is removed with all that is in it.
    /// - Returns: Whether it goes beyond all that its run has counted.
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

    private mutating func append(_ increment: FoldedIncrement) {
        increments[increment.run, default: []].append(increment)
        changed[increment.id] = increment
    }
}

// MARK: - What is listed

extension CountFolding {
    /// A run's parts.
    struct Listed {
        var count: Record?
        var removal: Record?

        var parts: Int { (count == nil ? 0 : 1) + (removal == nil ? 0 : 1) }
        var stamp: Stamp { [count, removal].compactMap { $0?.stamp }.max()! }
    }

    /// Of each counted key, by the runs. What is no count, nobody adds up.
    private func listedCounts(_ stored: PushAdmission.Stored) -> [Key: [Key: Listed]] {
        var all: [Key: [Key: Listed]] = [:]
        guard !counters.isEmpty else { return all }
        for (key, record) in stored.records where key.isCount && !key.isOfFold {
            guard counters[key.whole] != nil, let count = Count(record.content.value),
                count.canBeFolded
            else { continue }
            if key.isRemoval {
                all[key.whole, default: [:]][key.run, default: Listed()].removal = record
            } else {
                all[key.whole, default: [:]][key, default: Listed()].count = record
            }
        }
        return all
    }

    /// Where too many are listed, those that nobody has touched for longest go, until half are left.
    private mutating func fold(
        _ listed: [Key: Listed], _ change: inout Change, _ stored: inout PushAdmission.Stored
    ) {
        var count = listed.values.reduce(0) { $0 + $1.parts }
        guard count > partsMax else { return }
        for (run, parts) in listed.sorted(by: {
            ($0.value.stamp, $0.key) < ($1.value.stamp, $1.key)
        }) {
            guard count > partsMax / 2 else { return }
            count -= parts.parts
            fold(run, parts, &change)
            change.runs.append(run)
            for record in [parts.count, parts.removal].compactMap({ $0 }) {
                stored.bury(record.key, under: record.stamp)
            }
        }
    }

    private mutating func fold(_ run: Key, _ parts: Listed, _ change: inout Change) {
        var (times, total) = (FoldedIncrement.beginning, Number.zero)
        if let removal = parts.removal, let removed = Count(removal.content.value) {
            append(
                FoldedIncrement(
                    run: run, after: times, times: removed.times, amount: .zero - removed.total,
                    total: .zero - removed.total, mark: mark, isRemoved: true,
                    timestamp: removal.stamp.timestamp))
            (times, total) = (removed.times, .zero - removed.total)
        }
        guard let record = parts.count, let count = Count(record.content.value),
            count.times > times || parts.removal == nil
        else { return }
        append(
            FoldedIncrement(
                run: run, after: times, times: count.times, amount: count.total - total,
                total: count.total, mark: mark, isRemoved: false,
                timestamp: record.stamp.timestamp))
        change.add(count.total - total, record.stamp)
    }
}

// MARK: - The fold

extension CountFolding {
    private func write(_ key: Key, _ change: Change, _ stored: inout PushAdmission.Stored) {
        guard let added = change.added, let stamp = change.addedStamp else { return }
        let part = key.part(.fold)
        let content = Count(times: mark.rawValue, total: fold(of: key, stored.records).sum + added)
        let old = stored.records[part]?.stamp
        stored.put(
            Record(key: part, content: .value(content.value), stamp: max(old ?? stamp, stamp)))
    }

    /// - Parameter removal: The furthest of the fold that was pushed.
    private func take(
        _ removal: (mark: FoldMark, write: Record)?, of key: Key, _ runs: [Key], _ change: Change,
        _ stored: inout PushAdmission.Stored
    ) {
        let part = key.part(PartID.fold.removal)
        let old = stored.records[part]
        let known = Count(old?.content.value)
        let before = FoldMark(rawValue: known?.times ?? 0)
        let (last, sum) = fold(of: key, stored.records)
        var mark = max(before, removal?.mark ?? before)
        guard last > .zero, mark > before || change.removed != nil else { return }
        let left = runs.lazy.flatMap { increments[$0] ?? [] }
            .filter { !$0.isRemoved && $0.mark > mark }
        var removed = (change.removed ?? .zero) - (known?.total ?? .zero)
        if mark > before { removed = sum - left.map(\.amount).reduce(.zero, +) }
        if left.isEmpty, mark.revision >= forgotten.revision || mark >= last {
            (mark, removed) = (max(mark, last), sum)
        }
        let content = Count(times: mark.rawValue, total: .zero - removed).value
        if let write = removal?.write, write.content == .value(content) { return stored.put(write) }
        let stamp = [old?.stamp, change.removedStamp, removal?.write.stamp].compactMap { $0 }.max()!
        stored.put(Record(key: part, content: .value(content), stamp: stamp.following))
    }
}

extension Key {
    fileprivate var isRemoval: Bool { part?.isRemoval ?? false }
}

extension PushAdmission.Stored {
    mutating func put(_ record: Record) {
        let old = records.updateValue(record, forKey: record.key)
        usage.replace(old?.content.value, by: record.content.value, of: record.key)
        newest = max(newest, record.stamp.timestamp)
    }

    /// Sees to it that nothing is listed there, as of a deletion later than a write.
    /// - Parameter anew: Although it is so already.
    fileprivate mutating func bury(_ key: Key, under stamp: Stamp, anew: Bool = false) {
        var stamp = stamp
        if let old = records[key], old.content == .deleted {
            if old.stamp > stamp, !anew { return }
            stamp = max(stamp, old.stamp)
        }
        put(Record(key: key, content: .deleted, stamp: stamp.following))
    }
}

extension Stamp {
    /// Later than this one, and not than any that its author makes later.
    var following: Stamp { Stamp(timestamp.next, .unassigned) }
}
