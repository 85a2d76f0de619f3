// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// On the server, the later write wins by time and then by device; a transaction happens wholly or
/// not at all; nothing changes but what was pushed, and nothing is stamped far in the future. What
/// was deleted stays so, also where the server has forgotten the deletion.
package final class CommitChecker: Checker {
    /// The latest write that each key ever had, as long as the server is not an older copy of itself.
    private var latest: [StoreName: [Key: Record]] = [:]

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .committed(let commit):
            defer { note(commit) }
            return checkTransactions(of: commit) ?? checkChanges(in: commit) ?? revived(in: commit)
        case .serverRestored: latest = [:]
        default: break
        }
        return nil
    }

    private func note(_ commit: Commit) {
        for write in commit.writes { latest[commit.store, default: [:]][write.key] = write }
    }

    private func revived(in commit: Commit) -> String? {
        for write in commit.writes {
            // What was counted is not to be lost; hardly anybody deletes it.
            let isCount = write.key.part?.text.string.first == "c"
            if write.content != .deleted, commit.before[write.key] == nil, !isCount,
                write.stamp.timestamp < commit.newestForgotten
            {
                return "\(commit.store) took \(write.key), which may have been deleted since"
            }
            guard let last = latest[commit.store]?[write.key], isLater(last, than: write)
            else { continue }
            return "\(commit.store) has brought back \(write.key) from before it was deleted"
        }
        return nil
    }

    private func checkTransactions(of commit: Commit) -> String? {
        guard commit.push.transactions.count == commit.results.count else {
            return "a push of \(commit.push.transactions.count) transactions got "
                + "\(commit.results.count) results"
        }
        for (transaction, result) in zip(commit.push.transactions, commit.results) {
            for write in transaction.writes {
                if write.stamp.timestamp.milliseconds > commit.serverMilliseconds + 60_000,
                    write.stamp.timestamp.milliseconds > commit.newest.milliseconds + 1_000
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
            guard let after else {
                return write.stamp.timestamp < commit.newestForgotten
                    ? nil : "\(commit.store) has nothing under \(write.key), which it took"
            }
            if isLater(write, than: after) {
                return "\(commit.store) has an earlier write under \(write.key) than it took"
            }
        }
        return nil
    }

    private func checkChanges(in commit: Commit) -> String? {
        let pushed = Set(commit.push.transactions.flatMap(\.writes))
        for (key, after) in commit.after where commit.before[key] != after {
            if !pushed.contains(after) { return "\(commit.store) made up \(key)" }
            if let before = commit.before[key], isLater(before, than: after) {
                return "\(commit.store) replaced \(key) by an earlier write"
            }
        }
        for key in commit.before.keys where commit.after[key] == nil {
            return "\(commit.store) lost \(key)"
        }
        return nil
    }

    /// By the contract's word: the time, then the device; equal ones are nobody's business here.
    private func isLater(_ a: Record, than b: Record) -> Bool {
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
