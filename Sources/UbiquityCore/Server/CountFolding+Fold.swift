// SPDX-License-Identifier: Apache-2.0

// MARK: - Listed counts

extension CountFolding {
    /// A run's parts.
    struct Listed {
        var count: Record?
        var removal: Record?

        var parts: Int { (count == nil ? 0 : 1) + (removal == nil ? 0 : 1) }
        var stamp: Stamp { [count, removal].compactMap { $0?.stamp }.max()! }
    }

    /// The listed runs of each counted key. Values that are not counts are not added up.
    func listedCounts(_ stored: PushAdmission.Stored) -> [Key: [Key: Listed]] {
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

    /// Folds runs if too many are listed: those untouched for longest go first, until half are
    /// left.
    mutating func fold(
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
    func write(_ key: Key, _ change: Change, _ stored: inout PushAdmission.Stored) {
        guard let added = change.added, let stamp = change.addedStamp else { return }
        let part = key.part(.fold)
        let content = Count(
            times: mark.rawValue, total: fold(of: key, stored.records).sum + added, seal: seals[key]
        )
        // Later than a deletion of it, or nobody would see it.
        let old = stored.records[part].map {
            $0.content == .deleted ? $0.stamp.following : $0.stamp
        }
        stored.put(
            Record(key: part, content: .value(content.value), stamp: max(old ?? stamp, stamp)))
    }

    /// - Parameter removal: The pushed removal of the fold that reaches furthest.
    func take(
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
        if left.isEmpty, mark.revision >= compacted.revision || mark >= last {
            (mark, removed) = (max(mark, last), sum)
        }
        let content = Count(times: mark.rawValue, total: .zero - removed, seal: seals[key]).value
        if let write = removal?.write, write.content == .value(content) { return stored.put(write) }
        let stamp = [old?.stamp, change.removedStamp, removal?.write.stamp].compactMap { $0 }.max()!
        stored.put(Record(key: part, content: .value(content), stamp: stamp.following))
    }
}

extension PushAdmission.Stored {
    mutating func put(_ record: Record) {
        let old = records.updateValue(record, forKey: record.key)
        state.usage.replace(old?.content.value, by: record.content.value, of: record.key)
        state.newest = max(state.newest, record.stamp.timestamp)
    }

    /// Makes sure that the key is not listed, as if deleted later than a write.
    /// - Parameter anew: Writes the deletion even if there is one already.
    mutating func bury(_ key: Key, under stamp: Stamp, anew: Bool = false) {
        var stamp = stamp
        if let old = records[key], old.content == .deleted {
            if old.stamp > stamp, !anew { return }
            stamp = max(stamp, old.stamp)
        }
        put(Record(key: key, content: .deleted, stamp: stamp.following))
    }
}
