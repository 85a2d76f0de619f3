// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// On the server, the later write wins, by time and then by device; a transaction applies all or
/// nothing; only pushed writes change anything, and nothing is stamped far in the future. Deleted
/// keys stay deleted even if the server has dropped the tombstone. A write is never refused for
/// that if its author made it anew and the server never had it.
package final class CommitChecker: Checker {
    /// The latest write of each key, unless the server becomes an older copy of itself.
    private(set) var latest: [StoreReference: [Key: Record]] = [:]
    /// The apps' writes that each store has refused.
    private(set) var refused: [StoreReference: Set<Int>] = [:]
    /// The apps' writes that each store has ever committed.
    private(set) var committed: [StoreReference: Set<Int>] = [:]
    /// The same for the current server: an older copy of it has not decided about what it lacks.
    private(set) var known: [StoreReference: Set<Int>] = [:]
    /// The greatest milliseconds that each store accepted by its server's own time. A server whose
    /// clock was set back accepts writes up to a second after that.
    private(set) var newest: [StoreReference: Int64] = [:]
    /// The latest time of each author that it has decided about, for or against. Clones write in
    /// the same name, and a write that lost was there as well.
    private(set) var lastOfAuthors: [StoreReference: [DeviceID: HybridTimestamp]] = [:]
    /// The final stamps of the apps' writes on disks.
    private(set) var stamps: [Int: Stamp] = [:]
    /// The writes that lost to another one.
    private(set) var superseded: [StoreReference: Set<Record>] = [:]
    /// The last write before each time that a device heard from the server, by disk.
    private(set) var heard: [DiskReference: [Int]] = [:]
    private var lastWrite = 0
    /// Whether an older copy of a server continued: it does not know what its devices had from it.
    private(set) var hasGoneBack = false
    private var greatestServerMilliseconds: Int64 = 0
    private(set) var hasClockGoneBack = false

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .committed(let commit):
            noteKnown(commit.before, on: commit.store)
            if commit.serverMilliseconds < greatestServerMilliseconds { hasClockGoneBack = true }
            greatestServerMilliseconds = max(
                greatestServerMilliseconds, commit.serverMilliseconds)
            defer { note(commit) }
            if commit.isWhole { return lostBySealing(commit) }
            return checkTransactions(of: commit) ?? checkChanges(in: commit)
                ?? wonAtLast(in: commit) ?? revived(in: commit, history)
                ?? wronglyRefused(in: commit, history) ?? tooManyParts(in: commit)
        case .serverRestored:
            latest = [:]
            superseded = [:]
            known = [:]
            hasGoneBack = true
        case .wrote(_, let writes): lastWrite = writes.last?.number ?? lastWrite
        case .saves(_, let entries, _):
            for case let write? in entries.map(\.pending) where write.provisional == nil {
                if let mark = Mark(write.record.content.value) {
                    stamps[mark.number] = write.record.stamp
                }
            }
        case .received(let process, _, _, _, _):
            if let disk = history.disks[process] { heard[disk, default: []].append(lastWrite) }
        default: break
        }
        return nil
    }

    private func note(_ commit: Commit) {
        for write in commit.writes {
            latest[commit.store, default: [:]][write.key] = write
            newest[commit.store] = max(
                newest[commit.store] ?? 0,
                min(write.stamp.timestamp.milliseconds, commit.serverMilliseconds + 60_000))
            if let mark = Mark(write.content.value) {
                committed[commit.store, default: []].insert(mark.number)
            }
        }
        noteKnown(commit.after, on: commit.store)
        for case (let transaction, .refused) in zip(commit.push.transactions, commit.results) {
            refused[commit.store, default: []].formUnion(
                transaction.writes.compactMap { Mark($0.content.value)?.number })
        }
        for case (let transaction, .committed(let results)) in zip(
            commit.push.transactions, commit.results)
        {
            for (write, result) in zip(transaction.writes, results) {
                if case .superseded = result { superseded[commit.store, default: []].insert(write) }
                if result != .olderThanCompacted { noteDecided(write.stamp, on: commit.store) }
            }
        }
    }

    private func noteKnown(_ records: [Key: Record], on store: StoreReference) {
        known[store, default: []].formUnion(
            records.values.lazy.compactMap { Mark($0.content.value)?.number })
    }

    private func noteDecided(_ stamp: Stamp, on store: StoreReference) {
        let last = lastOfAuthors[store]?[stamp.device] ?? .zero
        lastOfAuthors[store, default: [:]][stamp.device] = max(last, stamp.timestamp)
    }

    // MARK: - The order of writes

    /// Whether it is a count, which must not be lost and is hardly ever deleted.
    func isCount(_ write: Record) -> Bool { write.key.part?.text.string.first == "c" }

    /// By the contract: the time, then the device. Equal ones do not matter here.
    /// - Parameter isSealed: Whether the server compares maxima and minima, which it cannot read, by
    ///   their times.
    func isLater(_ a: Record, than b: Record, isSealed: Bool) -> Bool {
        switch (a.key.part?.text.string.first, a.content.value, b.content.value) {
        // Of a run's counts, the one with more times.
        case ("c", .array(let a)?, .array(let b)?) where a[0] != b[0]: return a[0] > b[0]
        // Of a run's maxima or minima, the better one; of equal ones, the removed one.
        case ("x", let mine?, let other?) where mine != other && !isSealed:
            return place(mine) > place(other)
        case ("n", let mine?, let other?) where mine != other && !isSealed:
            let (a, b) = (place(mine), place(other))
            return a.0 != b.0 ? a.0 < b.0 : a.1 > b.1
        default: break
        }
        return isLater(a.stamp, than: b.stamp)
    }

    private func place(_ value: PropertyListValue) -> (Double, Int) {
        if case .array(let removed) = value { return (removed.first?.amount ?? 0, 1) }
        return (value.amount ?? 0, 0)
    }

    private func isLater(_ a: Stamp, than b: Stamp) -> Bool {
        let (time, other) = (a.timestamp.rawValue, b.timestamp.rawValue)
        return time != other ? time > other : a.device.rawValue > b.device.rawValue
    }
}

extension Key {
    /// Whether it is a part of a dictionary, a maximum or a minimum.
    package var isRenamedBySealing: Bool { "dxn".contains(part?.text.string.first ?? "-") }

    /// Whether it is a server's fold of a counter's runs, or of their removals.
    var isOfFold: Bool { ["c+", "c-+"].contains(part?.text.string) }
}

extension CommitChecker {
    func checkTransactions(of commit: Commit) -> String? {
        guard commit.push.transactions.count == commit.results.count else {
            return "a push of \(commit.push.transactions.count) transactions got "
                + "\(commit.results.count) results"
        }
        for (transaction, result) in zip(commit.push.transactions, commit.results) {
            for write in transaction.writes {
                if write.stamp.timestamp.milliseconds > commit.serverMilliseconds + 60_000,
                    write.stamp.timestamp.milliseconds > (newest[commit.store] ?? 0) + 1_000
                {
                    return "\(commit.store) took a write from the future under \(write.key)"
                }
                if let complaint = check(write, result, in: commit) { return complaint }
            }
        }
        return nil
    }

    private func check(
        _ write: Record, _ result: TransactionResult, in commit: Commit
    ) -> String? {
        let (before, after) = (commit.before[write.key], commit.after[write.key])
        switch result {
        case .refused:
            // The same write may be in another transaction of the same push.
            if after == write, before != write,
                commit.push.transactions.count(where: { $0.writes.contains(write) }) == 1
            {
                return "\(commit.store) has \(write.key) of a transaction that it refused"
            }
        case .committed:
            // A removal of a fold in another history reaches less far here.
            if write.key.isOfFold { return nil }
            guard let after else {
                return write.content == .deleted
                    && write.stamp.timestamp <= commit.newestCompacted
                    ? nil : "\(commit.store) has nothing under \(write.key), which it took"
            }
            // Of two counts, the one with more times may be the earlier write, and be folded at once.
            let lostToFolded =
                after.content == .deleted && isFolded(after, in: commit)
                && (before.map { isLater($0, than: write, isSealed: commit.isSealed) } ?? false)
            if isLater(write, than: after, isSealed: commit.isSealed), !lostToFolded {
                return "\(commit.store) has an earlier write under \(write.key) than it took"
            }
        }
        return nil
    }

    func checkChanges(in commit: Commit) -> String? {
        let pushed = Set(commit.push.transactions.flatMap(\.writes))
        for (key, after) in commit.after where commit.before[key] != after {
            if !pushed.contains(after), !isFolded(after, in: commit) {
                return "\(commit.store) invented \(key)"
            }
            // Of two counts, the one with more times may be the earlier write, and be folded at once.
            let isOfLater = pushed.contains { write in
                write.key == key
                    && (commit.before[key].map {
                        isLater(write, than: $0, isSealed: commit.isSealed)
                    } ?? true)
            }
            if let before = commit.before[key],
                isLater(before, than: after, isSealed: commit.isSealed),
                pushed.contains(after) || !isOfLater
            {
                return "\(commit.store) replaced \(key) by an earlier write"
            }
        }
        for key in commit.before.keys where commit.after[key] == nil {
            return "\(commit.store) lost \(key)"
        }
        return nil
    }

    /// Whoever seals a whole store keeps each value with its time, unless it has a later one that the store
    /// had before the server became an older copy of itself; only parts of dictionaries, maxima and minima
    /// may get other names, or give way to them.
    func lostBySealing(_ commit: Commit) -> String? {
        for (key, before) in commit.before {
            guard before.content.value != nil, !key.isRenamedBySealing else { continue }
            guard let after = commit.after[key],
                after.content == before.content
                    && after.stamp.withoutDigest == before.stamp.withoutDigest
                    || isLater(after, than: before, isSealed: commit.isSealed)
                        && wasBroughtBack(after, in: commit.store)
            else { return "\(commit.store) has lost \(key) when it was sealed" }
        }
        for (key, after) in commit.after {
            if after.content == .deleted { return "\(commit.store) was sealed with a deletion" }
            let isKept = commit.before.values.contains {
                $0.stamp.withoutDigest == after.stamp.withoutDigest
                    && $0.key.whole == key.whole && $0.content != .deleted
            }
            let isListed = commit.before.contains {
                $0.key.whole == key.whole && $0.value.content != .deleted
            }
            if !isKept, !isListed || !wasBroughtBack(after, in: commit.store) {
                return "\(commit.store) was sealed with \(key), which it did not have"
            }
        }
        return nil
    }

    /// Whether the store had the value, and its server may lack it. Of counts and maxima, the write is not
    /// known.
    private func wasBroughtBack(_ record: Record, in store: StoreReference) -> Bool {
        guard hasGoneBack else { return false }
        guard let mark = Mark(record.content.value) else { return record.key.isPart }
        return committed[store]?.contains(mark.number) ?? false
    }

    /// Whether a server may have made it of the pushed counts.
    private func isFolded(_ record: Record, in commit: Commit) -> Bool {
        guard isCount(record), record.key.isOfFold || record.content == .deleted else {
            return false
        }
        return commit.push.transactions.contains { transaction in
            transaction.writes.contains { isCount($0) && $0.key.whole == record.key.whole }
        }
    }

    /// At most this many parts of each counter are listed, however many runs have counted.
    func tooManyParts(in commit: Commit) -> String? {
        let keys = Set(commit.writes.filter(isCount).map(\.key.whole)).sorted()
        for key in keys {
            let parts = commit.after.values.filter {
                $0.key.whole == key && isCount($0) && !$0.key.isOfFold
                    && AppOperation.count(in: $0.content.value) != nil
            }
            if parts.count > commit.partsMax {
                return "\(commit.store) lists \(parts.count) parts of \(key), and at most "
                    + "\(commit.partsMax) besides their fold are to be"
            }
        }
        return nil
    }
}
