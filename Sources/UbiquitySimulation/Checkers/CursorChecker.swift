// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Each commit has a position of its own, which no other store has, one after the other; who has come to a
/// position has all that was committed up to there; and nobody takes more for agreed than its cursor says,
/// or a server that is restored to that cursor is never told of the rest.
package final class CursorChecker: Checker {
    private var logs: [StoreName: ServerLog] = [:]
    private var positions: Set<Position> = []
    /// What each disk takes for agreed.
    private var agreed: [DiskName: [Key: Record]] = [:]

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .committed(let commit): return note(commit)
        case .serverRestored(let positions):
            for name in logs.keys { logs[name]?.goBack(to: positions[name]?.revision ?? 0) }
        case .received(let process, let store, let position, let values, let own):
            return logs[store]?.missing(at: position, values, own).map {
                "process \(process) has come to \(position.cursor) without \($0)"
            }
        case .saves(let process, let entries, let cursor):
            guard let disk = history.disks[process] else { return nil }
            for entry in entries { agreed[disk, default: [:]][entry.key] = entry.confirmed }
            guard let position = cursor.flatMap(Position.init),
                let account = history.owner(of: disk)
            else { return nil }
            let log = logs[StoreName(account: account, store: disk.store)]
            return log?.excess(beyond: position, agreed[disk]?.values.map(\.self) ?? []).map {
                "process \(process), at \(position.cursor), takes \($0) for agreed"
            }
        case .cloned(let device, let original):
            for (name, records) in agreed where name.device == original {
                agreed[DiskName(device: device, folder: name.folder, store: name.store)] = records
            }
        case .lost(let disk), .wiped(let disk): agreed[disk] = nil
        default: break
        }
        return nil
    }

    private func note(_ commit: Commit) -> String? {
        guard !commit.writes.isEmpty else { return nil }
        let last = logs[commit.store]?.revision ?? 0
        guard commit.position.revision == last + 1 else {
            return "after revision \(last), \(commit.store) has \(commit.position.revision)"
        }
        guard positions.insert(commit.position).inserted else {
            return "\(commit.store) has the position \(commit.position.cursor) twice"
        }
        logs[commit.store, default: ServerLog()].append(commit)
        return nil
    }
}

/// What a store's server committed, in its order.
struct ServerLog {
    private var commits: [(position: Position, writes: [Record])] = []
    /// What was last committed under each key.
    private var latest: [Key: (revision: Int64, content: Content)] = [:]
    /// When each record was first committed.
    private var firsts: [Record: Int64] = [:]
    /// Counts the times that the server went back to an older copy.
    private(set) var branch = 0

    var revision: Int64 { Int64(commits.count) }

    mutating func append(_ commit: Commit) {
        commits.append((commit.position, commit.writes))
        take(commit.writes, commit.position.revision)
    }

    private mutating func take(_ writes: [Record], _ revision: Int64) {
        for write in writes {
            latest[write.key] = (revision, write.content)
            if firsts[write] == nil { firsts[write] = revision }
        }
    }

    mutating func goBack(to revision: Int64) {
        commits.removeLast(commits.count - Int(revision))
        latest = [:]
        firsts = [:]
        branch += 1
        for commit in commits { take(commit.writes, commit.position.revision) }
    }

    /// What somebody does not have who should have everything up to a position.
    /// - Returns: Nil: nothing is missing, or the position is of another history.
    func missing(
        at position: Position, _ values: [Key: PropertyListValue], _ own: Set<Key>
    ) -> String? {
        isHere(position) ? missing(through: position.revision, values, own) : nil
    }

    private func isHere(_ position: Position) -> Bool {
        position.revision <= revision
            && (position.revision == 0
                || commits[Int(position.revision) - 1].position == position)
    }

    /// What was committed after a position only; nil likewise.
    func excess(beyond position: Position, _ records: [Record]) -> String? {
        guard isHere(position) else { return nil }
        let excess = records.filter { firsts[$0].map { $0 > position.revision } ?? false }
        return excess.min { $0.key < $1.key }.map { "\($0.key) of revision \(firsts[$0]!)" }
    }

    /// What was committed later may be there or not.
    func missing(
        through revision: Int64, _ values: [Key: PropertyListValue], _ own: Set<Key>
    ) -> String? {
        for (key, last) in latest.sorted(by: { $0.key < $1.key })
        where last.revision <= revision && !own.contains(key)
            && values[key] != last.content.value
        {
            return "\(key) of revision \(last.revision)"
        }
        return nil
    }
}
