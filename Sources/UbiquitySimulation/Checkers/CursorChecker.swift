// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Each commit has a unique position, and positions follow one another; an epoch that another one
/// has followed does not come back. A process that has reached
/// a position has everything committed up to it. And no process confirms more than its cursor
/// covers, or a server restored to that cursor would never be told of the rest. And what a process
/// tells the server that it has saved is on its disk.
package final class CursorChecker: Checker {
    private var logs: [StoreReference: ServerLog] = [:]
    private var positions: Set<Position> = []
    /// The last epoch of each store, and those before.
    private var epochs: [StoreReference: UInt64] = [:]
    private var pastEpochs: Set<UInt64> = []
    /// The records that each disk considers confirmed.
    private var confirmed: [DiskReference: [Key: Record]] = [:]

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .committed(let commit): return note(commit)
        case .serverRestored(let positions, _):
            for name in logs.keys { logs[name]?.goBack(to: positions[name]?.revision ?? 0) }
        case .received(let process, let store, let position, let values, let own):
            return logs[store]?.missing(at: position, values, own).map {
                "process \(process) has come to \(position.cursor) without \($0)"
            }
        case .tells(let process, let store, let position, let values, let own):
            return logs[store]?.missing(at: position, values, own).map {
                "process \(process) says that its disk has \(position.cursor), without \($0)"
            }
        case .saves(let process, let entries, let cursor):
            guard let disk = history.disks[process] else { return nil }
            for entry in entries { confirmed[disk, default: [:]][entry.key] = entry.confirmed }
            guard let position = cursor.flatMap(Position.init),
                let account = history.owner(of: disk)
            else { return nil }
            let log = logs[StoreReference(account: account, store: disk.store)]
            return log?.excess(beyond: position, confirmed[disk]?.values.map(\.self) ?? []).map {
                "process \(process), at \(position.cursor), takes \($0) for agreed"
            }
        case .cloned(let device, let original):
            for (name, records) in confirmed where name.device == original {
                confirmed[DiskReference(device: device, folder: name.folder, store: name.store)] =
                    records
            }
        case .lost(let disk), .wiped(let disk): confirmed[disk] = nil
        default: break
        }
        return nil
    }

    private func note(_ commit: Commit) -> String? {
        guard commit.isChange else { return nil }
        let last = logs[commit.store]?.revision ?? 0
        guard commit.position.revision == last + 1 else {
            return "after revision \(last), \(commit.store) has \(commit.position.revision)"
        }
        guard positions.insert(commit.position).inserted else {
            return "\(commit.store) has the position \(commit.position.cursor) twice"
        }
        logs[commit.store, default: ServerLog()].append(commit)
        let epoch = commit.position.epoch
        let before = epochs.updateValue(epoch, forKey: commit.store)
        if let before, before != epoch { pastEpochs.insert(before) }
        return pastEpochs.contains(epoch)
            ? "\(commit.store) is back in an earlier epoch at \(commit.position.cursor)" : nil
    }
}

/// The commits of a store's server, in order.
struct ServerLog {
    private var commits: [(position: Position, writes: [Record])] = []
    /// The last commit of each key.
    private var latest: [Key: (revision: Int64, content: Content)] = [:]
    /// The first commit of each record.
    private var firsts: [Record: Int64] = [:]
    /// The number of times that the server went back to an older copy.
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

    /// Describes what is missing in values that should be complete up to a position.
    /// - Returns: Nil if nothing is missing, or the position is of another history.
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

    /// Describes records that were only committed after a position; nil likewise.
    func excess(beyond position: Position, _ records: [Record]) -> String? {
        guard isHere(position) else { return nil }
        let excess = records.filter { firsts[$0].map { $0 > position.revision } ?? false }
        return excess.min { $0.key < $1.key }.map { "\($0.key) of revision \(firsts[$0]!)" }
    }

    /// Later commits may or may not be there.
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
