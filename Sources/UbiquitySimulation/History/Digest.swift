// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// A hash that two runs only share if the same happened in both, in the same order.
package struct Digest: Hashable, Sendable, CustomStringConvertible {
    private var hash = StableHash()

    package init() {}

    package var description: String { String(hash.value, radix: 16) }

    mutating func combine(_ number: Int64) {
        hash.combine(UInt64(bitPattern: number))
    }

    mutating func combine(_ observation: Observation, at now: Int64) {
        combine(now)
        switch observation {
        case .opened(let process, _, let values): combine(1, process, values)
        case .resumed(let process, _, let original): combine(26, process, original)
        case .moved(let process, _): combine(2, process)
        case .ended(let process): combine(3, process)
        case .leads(let process, let leads): combine(46, process, leads ? 1 : 0)
        case .wrote(let process, let writes):
            combine(4, process)
            for write in writes { combine(Int64(write.number)) }
        case .merged(let act): combine(25, act.process, act.number)
        case .decided(let process, _, _): combine(41, process)
        case .refused(let process, let keys): combine(5, process, keys.count)
        case .synchronized(let process): combine(6, process)
        case .endedSave(let process, let isRefused): combine(47, process, isRefused ? 1 : 0)
        case .showsDisk(let process, let failure): combine(48, process, failure == nil ? 0 : 1)
        case .changed(let process, let keys, _): combine(7, process, keys.count)
        case .notified(let process, let notice, _): combine(8, process, notice.keys.count)
        case .rested(let process, let values): combine(9, process, values)
        case .restedUnsaved(let process): combine(45, process)
        case .withdrawn(_, let records): combine(10, records.count)
        case .discarded(_, let keys): combine(11, keys.count)
        case .askedRoundTrip(let process, let id, _): combine(12, process, id)
        case .finishedRoundTrip(let process, let id, let values, _):
            combine(13, process, values)
            combine(Int64(id))
        case .opensStream(let process): combine(14, process)
        case .pushes(let process, let push, _, _):
            combine(15, process, push.transactions.count)
            for transaction in push.transactions {
                for write in transaction.writes { combine(write) }
            }
        case .received(let process, _, let position, let values, let own):
            combine(16, process, values)
            combine(position.revision)
            combine(Int64(own.count))
        case .tells(let process, _, let position, let values, _):
            combine(30, process, values)
            combine(position.revision)
        case .committed(let commit):
            combine(17, Int(commit.position.revision), commit.results.count)
            for write in commit.writes { combine(write) }
        case .serverRestored(let positions, _): combine(18, positions.count)
        case .read(_, let position): combine(44, Int(position.revision))
        case .answered(_, let position): combine(29, Int(position.revision))
        case .signedIn(let device, _, let account): combine(19, device, account)
        case .cloned(let device, let original): combine(20, device, original)
        case .lost(let disk): combine(21, disk.device, disk.store)
        case .wiped(let disk): combine(33, disk.device, disk.store)
        case .pulls(let process): combine(31, process)
        case .betrays(let process, let keys): combine(45, process, keys.count)
        case .saves(let process, let entries, _): combine(23, process, entries.count)
        case .copied(let device): combine(24, device)
        case .clock(let device, _, _, _): combine(27, device)
        case .paused(let device, _): combine(34, device)
        case .keptBack(let device, _): combine(35, device)
        case .serverClock(let error): combine(28, Int(error))
        case .compacted(_, let records, let left, _): combine(32, records.count, left)
        case .kept(let view): combine(40, view.lines.count)
        case .settled(let settlement): combine(22, settlement.processes.count)
        }
    }

    private mutating func combine(_ numbers: Int...) {
        for number in numbers { combine(Int64(number)) }
    }

    private mutating func combine(_ record: Record) {
        combine(Int64(bitPattern: record.stamp.timestamp.rawValue))
        combine(Int64(Mark(record.content.value)?.number ?? 0))
    }

    /// Independent of order, because dictionaries have none.
    private mutating func combine(
        _ kind: Int, _ process: Int, _ values: [Key: PropertyListValue]
    ) {
        combine(kind, process, values.count)
        combine(values.values.reduce(0) { $0 &+ Int64(Mark($1)?.number ?? 0) })
    }
}
