// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// On the server, the later write wins by time and then by device; a transaction happens wholly or
/// not at all; nothing changes but what was pushed, and nothing is stamped far in the future. What
/// was deleted stays so, also where the server has forgotten the deletion; and what its author made,
/// and the server never had, is never refused for that.
package final class CommitChecker: Checker {
    /// The latest write that each key ever had, as long as the server is not an older copy of itself.
    private(set) var latest: [StoreName: [Key: Record]] = [:]
    /// What each store has refused of what apps wrote.
    private(set) var refused: [StoreName: Set<Int>] = [:]
    /// What each store has ever committed of what apps wrote.
    private(set) var committed: [StoreName: Set<Int>] = [:]
    /// The same, of the server as it is: an older copy of it has not decided about what it lacks.
    private(set) var known: [StoreName: Set<Int>] = [:]
    /// The greatest milliseconds that each store took by its server's own time: one whose clock was set back
    /// takes what comes a second after.
    private(set) var newest: [StoreName: Int64] = [:]
    /// The latest time of each author that it has decided about, for or against: clones write in the
    /// same name, and a write that lost has been there as well as one that won.
    private(set) var lastOfAuthors: [StoreName: [DeviceID: HybridTimestamp]] = [:]
    /// The final stamps under which disks had what apps wrote.
    private(set) var stamps: [Int: Stamp] = [:]
    /// The writes that lost to another one.
    private(set) var superseded: [StoreName: Set<Record>] = [:]
    /// The last write before each time that a device heard of the server, by disks.
    private(set) var heard: [DiskName: [Int]] = [:]
    private var lastWrite = 0
    /// Whether an older copy of a server went on: it does not know what its devices had from there.
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
                if result != .olderThanForgotten { noteDecided(write.stamp, on: commit.store) }
            }
        }
    }

    private func noteKnown(_ records: [Key: Record], on store: StoreName) {
        known[store, default: []].formUnion(
            records.values.lazy.compactMap { Mark($0.content.value)?.number })
    }

    private func noteDecided(_ stamp: Stamp, on store: StoreName) {
        let last = lastOfAuthors[store]?[stamp.device] ?? .zero
        lastOfAuthors[store, default: [:]][stamp.device] = max(last, stamp.timestamp)
    }

    // MARK: - The order of writes

    /// What was counted is not to be lost; hardly anybody deletes it.
    func isCount(_ write: Record) -> Bool { write.key.part?.text.string.first == "c" }

    /// By the contract's word: the time, then the device; equal ones are nobody's business here.
    func isLater(_ a: Record, than b: Record) -> Bool {
        switch (a.key.part?.text.string.first, a.content.value, b.content.value) {
        // Of a run's counts, the one that was counted more often.
        case ("c", .array(let a)?, .array(let b)?) where a[0] != b[0]: return a[0] > b[0]
        // Of what a run raised, the better one, and of the same that which is removed.
        case ("x", let mine?, let other?) where mine != other: return place(mine) > place(other)
        case ("n", let mine?, let other?) where mine != other:
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
    /// Whether it is what a server has made of a counter's runs, or of the removals of that.
    var isOfFold: Bool { ["c+", "c-+"].contains(part?.text.string) }
}
