// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

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
            if isLater(write, than: after) {
                return "\(commit.store) has an earlier write under \(write.key) than it took"
            }
        }
        return nil
    }

    func checkChanges(in commit: Commit) -> String? {
        let pushed = Set(commit.push.transactions.flatMap(\.writes))
        for (key, after) in commit.after where commit.before[key] != after {
            if !pushed.contains(after), !isFolded(after, in: commit) {
                return "\(commit.store) made up \(key)"
            }
            if let before = commit.before[key], isLater(before, than: after) {
                return "\(commit.store) replaced \(key) by an earlier write"
            }
        }
        for key in commit.before.keys where commit.after[key] == nil {
            return "\(commit.store) lost \(key)"
        }
        return nil
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
