// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// On the server, the later write wins by time and then by device; a transaction happens wholly or
/// not at all; nothing changes but what was pushed, and nothing is stamped far in the future.
package final class CommitChecker: Checker {
    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        guard case .committed(let commit) = observation else { return nil }
        return checkTransactions(of: commit) ?? checkChanges(in: commit)
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
        let (time, other) = (a.stamp.timestamp.rawValue, b.stamp.timestamp.rawValue)
        if time != other { return time > other }
        return a.stamp.device.rawValue > b.stamp.device.rawValue
    }
}
