// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Keys that are only ever written together are never seen apart: not in memory, not in a
/// notification, not on the server.
///
/// A key that was written together with others and then alone has, on the server beside those
/// others, the value written with them or a later one, but not an earlier one.
package final class BatchChecker: Checker {
    private let groups: [[Key]]
    /// The transactions of more than one key.
    private var batches: [Int: [AppWrite]] = [:]
    /// Whether a disk or a server was replaced by an older copy, so that replaced values may
    /// return.
    private var hasGoneBack = false

    /// - Parameter groups: Keys that apps only write together.
    package init(groups: [[Key]]) { self.groups = groups }

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .wrote(_, let writes):
            if let first = writes.first, writes.count > 1 { batches[first.batch] = writes }
            return nil
        case .lost, .cloned, .serverRestored:
            hasGoneBack = true
            return nil
        case .opened(let process, _, let values), .rested(let process, let values),
            .received(let process, _, _, let values, _):
            return mixed(values).map { "process \(process) sees \($0)" }
        case .committed(let commit):
            let values = commit.after.compactMapValues(\.content.value)
            return mixed(values).map { "the server has \($0)" } ?? half(of: commit, history)
                ?? torn(commit)
        case .settled(let settlement):
            return settlement.processes.lazy.compactMap { [self] process in
                mixed(process.onDisk).map { "the disk of process \(process.number) has \($0)" }
            }.first
        default: return nil
        }
    }

    private func half(of commit: Commit, _ history: History) -> String? {
        if hasGoneBack { return nil }
        for mark in commit.writes.lazy.compactMap({ Mark($0.content.value) }) {
            for write in batches[mark.batch] ?? [] {
                let present = Mark(commit.after[write.key]?.content.value)?.number
                guard let present, write.replaced(present, history) else { continue }
                return "\(commit.store) has write \(mark.number), and under \(write.key) not yet "
                    + "write \(write.number) of the same transaction, but write \(present)"
            }
        }
        return nil
    }

    /// Whether a transaction was accepted although one of its values is missing: that key was
    /// deleted so long ago that the server has dropped the tombstone.
    private func torn(_ commit: Commit) -> String? {
        for (transaction, result) in zip(commit.push.transactions, commit.results) {
            guard case .committed = result, transaction.writes.count > 1 else { continue }
            let lacking = transaction.writes.filter {
                $0.content != .deleted && commit.after[$0.key] == nil
            }
            guard let write = lacking.first else { continue }
            return "\(commit.store) took \(transaction.writes.map(\.key)) without \(write.key)"
        }
        return nil
    }

    private func mixed(_ values: [Key: PropertyListValue]) -> String? {
        for group in groups {
            let batches = group.map { Mark(values[$0])?.batch }
            if Set(batches).count > 1 {
                return "parts of several transactions: \(group) are of "
                    + "\(batches.map { $0.map(String.init) ?? "none" })"
            }
        }
        return nil
    }
}

extension AppWrite {
    /// Whether its author had seen the other write there, or its replacement.
    fileprivate func replaced(_ other: Int, _ history: History) -> Bool {
        var seen = over
        while let number = seen {
            if number == other { return true }
            seen = history.writes[number]?.over
        }
        return false
    }
}
