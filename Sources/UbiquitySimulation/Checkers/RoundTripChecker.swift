// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// A round trip that succeeded has brought what was written before to the server, or a later write
/// is there; and what the server had is here.
package final class RoundTripChecker: Checker {
    private struct Trip: Hashable {
        var process: Int
        var id: Int
    }

    private struct Asked {
        var store: StoreName
        /// The marks of what waited.
        var waiting: [Key: Int]
        var revision: Int64
        var branch: Int
    }

    private var logs: [StoreName: ServerLog] = [:]
    private var trips: [Trip: Asked] = [:]
    /// All that the server ever took.
    private var committed: Set<Int> = []
    /// What each process wrote last under its keys.
    private var last: [Int: [Key: Int]] = [:]

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .committed(let commit) where !commit.writes.isEmpty:
            logs[commit.store, default: ServerLog()].append(commit)
            for write in commit.writes {
                if let mark = Mark(write.content.value) { committed.insert(mark.number) }
            }
        case .serverRestored(let positions):
            for name in logs.keys { logs[name]?.goBack(to: positions[name]?.revision ?? 0) }
        case .wrote(let process, let writes):
            for write in writes { last[process, default: [:]][write.key] = write.number }
        case .moved(let process, _), .ended(let process):
            trips = trips.filter { $0.key.process != process }
            last[process] = nil
        case .askedRoundTrip(let process, let id, let waiting):
            ask(Trip(process: process, id: id), waiting, history)
        case .finishedRoundTrip(let process, let id, let values, let waiting):
            return finish(Trip(process: process, id: id), values, waiting)
        default: break
        }
        return nil
    }

    private func ask(_ trip: Trip, _ waiting: Set<Key>, _ history: History) {
        guard let disk = history.disks[trip.process], let owner = history.owner(of: disk) else {
            return
        }
        let store = StoreName(account: owner, store: disk.store)
        let log = logs[store] ?? ServerLog()
        let marks = (last[trip.process] ?? [:]).filter { waiting.contains($0.key) }
        trips[trip] = Asked(
            store: store, waiting: marks, revision: log.revision, branch: log.branch)
    }

    private func finish(
        _ trip: Trip, _ values: [Key: PropertyListValue], _ waiting: Set<Key>
    ) -> String? {
        guard let asked = trips.removeValue(forKey: trip) else { return nil }
        for (key, number) in asked.waiting.sorted(by: { $0.key < $1.key })
        where waiting.contains(key) && last[trip.process]?[key] == number
            && Mark(values[key])?.number == number && !committed.contains(number)
        {
            return "the round trip of process \(trip.process) did not send \(key)"
        }
        guard let log = logs[asked.store], log.branch == asked.branch else { return nil }
        return log.missing(through: asked.revision, values, waiting).map {
            "the round trip of process \(trip.process) did not bring \($0)"
        }
    }
}
