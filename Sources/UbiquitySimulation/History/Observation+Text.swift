// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// One line, for following a run.
extension Observation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .opened(let process, let disk, let values):
            "process \(process) opens \(disk): \(text(values))"
        case .resumed(let process, let disk, let original):
            "process \(process) goes on as \(original) on \(disk)"
        case .moved(let process, let disk): "process \(process) turns to \(disk)"
        case .ended(let process): "process \(process) ends"
        case .wrote(let process, let writes):
            "process \(process) writes "
                + writes.map { "\($0.key)=\($0.value == nil ? "-" : "")\($0.number)" }
                .joined(separator: " ")
        case .merged(let act):
            "process \(act.process) does \(act.number) to \(act.key): \(act.act), and sees "
                + "\(act.seen.map { "\($0)" } ?? "nothing")"
        case .refused(let process, let keys): "process \(process) is refused \(text(keys))"
        case .saves(let process, let entries, _):
            "process \(process) saves "
                + entries.sorted { $0.key < $1.key }.map { text($0) }.joined(separator: " ")
        case .synchronized(let process): "process \(process) has synchronized"
        case .changed(let process, let keys, let cause):
            "process \(process) sees \(text(keys)) change: \(cause)"
        case .notified(let process, let notice, _):
            "process \(process) is told of \(text(notice.keys)): \(notice.reason)"
        case .rested(let process, let values): "process \(process) rests: \(text(values))"
        case .withdrawn(let disk, let records):
            "\(disk) withdraws \(records.map { text($0) }.joined(separator: " "))"
        case .discarded(let disk, let keys): "\(disk) discards \(text(keys)) for its first sync"
        case .askedRoundTrip(let process, let id, _):
            "process \(process) asks for round trip \(id)"
        case .finishedRoundTrip(let process, let id, _, _):
            "process \(process) has finished round trip \(id)"
        case .opensStream(let process): "process \(process) opens a stream"
        case .pulls(let process): "process \(process) pulls"
        case .pushes(let process, let push, _):
            "process \(process) pushes "
                + push.transactions.map { $0.writes.map { text($0) }.joined(separator: "+") }
                .joined(separator: " ")
        case .received(let process, _, let position, _, let own):
            "process \(process) has come to \(position.cursor), but for its own \(text(own))"
        case .committed(let commit):
            "\(commit.store) has committed \(commit.position.cursor): "
                + commit.writes.map { text($0) }.joined(separator: " ")
        case .compacted(let store, let records, let left, _):
            "\(store) has forgotten \(records.map { text($0) }.joined(separator: " ")), and "
                + "remembers \(left)"
        case .serverRestored: "the server is an older copy of itself"
        case .signedIn(let device, let folder, let account):
            "device \(device) signs in to account \(account), folder \(folder)"
        case .cloned(let device, let original): "device \(device) is a clone of \(original)"
        case .copied(let device): "the disks of device \(device) are copied"
        case .lost(let disk): "\(disk) is an older copy of itself"
        case .wiped(let disk): "\(disk) is wiped"
        case .clock(let device, let error, let drift, let boot):
            "device \(device) has clocks: \(error) ms wrong, \(drift) ppm too fast, boot \(boot % 1_000)"
        case .serverClock(let error): "the server's clock is \(error) ms wrong"
        case .paused(let device, let milliseconds):
            "device \(device) stood still for \(milliseconds) ms"
        case .keptBack(let device, let milliseconds):
            "device \(device) had a stream kept back for \(milliseconds) ms"
        case .settled: "all should agree"
        }
    }

    private func text(_ keys: Set<Key>) -> String { keys.sorted().description }

    /// The key, the confirmed record and, after an arrow, the pending write, with a question mark
    /// if its stamp is provisional.
    private func text(_ entry: StoredEntry) -> String {
        let confirmed = entry.confirmed.map { text($0) } ?? "\(entry.key)=nothing"
        guard let pending = entry.pending else { return confirmed }
        return "\(confirmed)<-\(text(pending.record))" + (pending.provisional == nil ? "" : "?")
    }

    private func text(_ record: Record) -> String {
        let mark = text(record.content.value)
        let stamp = record.stamp.timestamp
        return "\(record.key)=\(mark)@\(stamp.milliseconds % 10_000_000).\(stamp.counter)"
    }

    private func text(_ values: [Key: PropertyListValue]) -> String {
        values.sorted { $0.key < $1.key }.map { "\($0.key)=\(text($0.value))" }
            .joined(separator: " ")
    }

    private func text(_ value: PropertyListValue?) -> String {
        guard let value else { return "-" }
        return Mark(value).map { "\($0.number)" } ?? "\(value)"
    }
}
