// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// After a successful round trip, earlier writes or later ones are on the server, none of them was
/// refused, and the server's earlier changes are here.
package final class RoundTripChecker: Checker {
    private struct Asked {
        var store: StoreReference
        /// The marks of the waiting writes.
        var waiting: [Key: Int]
        var revision: Int64
        var branch: Int
    }

    private var logs: [StoreReference: ServerLog] = [:]
    private var trips: [RoundTrip: Asked] = [:]
    /// All writes that the server ever accepted.
    private var committed: Set<Int> = []
    /// The writes that it refused and never accepted, and its current records.
    private var refused: [Int: Stamp] = [:]
    private var taken: Set<Int> = []
    private var stored: [StoreReference: [Key: Record]] = [:]
    /// The last write of each process under each key that it still shows. If a refused write has
    /// given way to the one before, that one waits.
    private var last: [Int: [Key: Int]] = [:]

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        if case .committed(let commit) = observation { noteFates(in: commit) }
        switch observation {
        case .committed(let commit) where commit.isChange:
            logs[commit.store, default: ServerLog()].append(commit)
            for write in commit.writes {
                if let mark = Mark(write.content.value) { committed.insert(mark.number) }
            }
        case .serverRestored(let positions, _):
            for name in logs.keys { logs[name]?.goBack(to: positions[name]?.revision ?? 0) }
        case .wrote(let process, let writes):
            for write in writes { last[process, default: [:]][write.key] = write.number }
        case .changed(let process, let keys, _):
            for key in keys { last[process]?[key] = nil }
        case .moved(let process, _), .ended(let process):
            trips = trips.filter { $0.key.process != process }
            last[process] = nil
        case .askedRoundTrip(let process, let id, let waiting):
            ask(RoundTrip(process: process, id: id), waiting, history)
        case .finishedRoundTrip(let process, let id, let values, let waiting):
            return finish(RoundTrip(process: process, id: id), values, waiting, history)
        default: break
        }
        return nil
    }

    private func ask(_ trip: RoundTrip, _ waiting: Set<Key>, _ history: History) {
        guard let disk = history.disks[trip.process], let owner = history.owner(of: disk) else {
            return
        }
        let store = StoreReference(account: owner, store: disk.store)
        let log = logs[store] ?? ServerLog()
        let marks = (last[trip.process] ?? [:]).filter { waiting.contains($0.key) }
        trips[trip] = Asked(
            store: store, waiting: marks, revision: log.revision, branch: log.branch)
    }

    /// The server's decision on each write. Of the copies of a push, the best one counts.
    private func noteFates(in commit: Commit) {
        stored[commit.store] = commit.after
        for (transaction, result) in zip(commit.push.transactions, commit.results) {
            let results: [WriteResult?] =
                if case .committed(let results) = result { results } else {
                    transaction.writes.map { _ in nil }
                }
            for (write, result) in zip(transaction.writes, results) {
                guard let number = Mark(write.content.value)?.number else { continue }
                switch result {
                case nil, .olderThanCompacted: refused[number] = write.stamp
                case .applied, .superseded: taken.insert(number)
                }
            }
        }
    }

    /// Finds a write that was covered and refused, and not replaced since by a later one, here or
    /// on the server. Clones share writes.
    private func refusal(_ asked: Asked, of process: Int, _ history: History) -> Key? {
        guard history.originals.isEmpty, let disk = history.disks[process] else { return nil }
        return asked.waiting.sorted { $0.key < $1.key }.first { key, number in
            guard let stamp = refused[number], !taken.contains(number) else { return false }
            return stored[asked.store]?[key].map { $0.stamp < stamp } ?? true
                && !history.writes.values.contains {
                    $0.number > number && $0.key == key && $0.disk == disk
                }
        }?.key
    }

    private func finish(
        _ trip: RoundTrip, _ values: [Key: PropertyListValue], _ waiting: Set<Key>,
        _ history: History
    ) -> String? {
        guard let asked = trips.removeValue(forKey: trip) else { return nil }
        if let key = refusal(asked, of: trip.process, history) {
            return "the round trip of process \(trip.process) succeeded, and \(key) was refused"
        }
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
