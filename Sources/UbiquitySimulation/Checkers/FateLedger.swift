// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Tracks the fate of each action of an app: whether it was acknowledged, and whether the contract
/// permits its loss.
///
/// Actions have the numbers of their writes. A checker reports what was done where, and what the
/// server has committed; everything else comes from the observations.
package struct FateLedger {
    private enum Fate {
        case acknowledged
        case excused
    }

    private var fates: [Int: Fate] = [:]
    /// For each process, its actions since it last knew that everything was on disk.
    private var unsaved: [Int: [Int]] = [:]
    /// For each round trip under way, the actions that were unsaved when it was requested.
    private var trips: [RoundTrip: [Int]] = [:]
    /// For each disk, all actions there.
    private var done: [DiskReference: [Int]] = [:]
    private var disks: [Int: DiskReference] = [:]
    /// The committed actions, as long as the server does not become an older copy of itself.
    private var committed: [Int: [StoreReference: Int64]] = [:]
    /// For each lost disk, the last action there before the loss.
    private var losses: [DiskReference: Int] = [:]
    /// For each disk, the actions acknowledged when it was last copied, which the copy has.
    private var kept: [DiskReference: Set<Int>] = [:]

    package init() {}

    package func isAcknowledged(_ number: Int) -> Bool { fates[number] == .acknowledged }

    package func isExcused(_ number: Int) -> Bool { fates[number] == .excused }

    package func isCommitted(_ number: Int) -> Bool { committed[number] != nil }

    package func isCommitted(_ number: Int, to store: StoreReference) -> Bool {
        committed[number]?[store] != nil
    }

    /// All actions there, in order.
    package func numbers(on disk: DiskReference) -> [Int] { done[disk] ?? [] }

    /// Whether the last copy of its disk has it.
    package func isKept(_ number: Int) -> Bool {
        disks[number].flatMap { kept[$0]?.contains(number) } ?? false
    }

    // MARK: - What happens

    package mutating func note(_ number: Int, by process: Int, on disk: DiskReference) {
        unsaved[process, default: []].append(number)
        done[disk, default: []].append(number)
        disks[number] = disk
        // Its process does not know yet that the disk is wiped.
        if losses[disk] == .max { fates[number] = .excused }
    }

    /// The server has made these durable.
    package mutating func note(_ numbers: [Int], in commit: Commit) {
        for number in numbers {
            committed[number, default: [:]][commit.store] = commit.position.revision
        }
        acknowledge(numbers)
    }

    /// Ignores irrelevant observations.
    package mutating func note(_ observation: Observation) {
        switch observation {
        case .synchronized(let process): acknowledge(unsaved.removeValue(forKey: process) ?? [])
        case .askedRoundTrip(let process, let id, _):
            trips[RoundTrip(process: process, id: id)] = unsaved[process] ?? []
        case .finishedRoundTrip(let process, let id, _, _):
            acknowledge(trips.removeValue(forKey: RoundTrip(process: process, id: id)) ?? [])
        case .moved(let process, _):
            // A process that switches to another account leaves waiting writes behind, parked.
            acknowledge(unsaved.removeValue(forKey: process) ?? [])
            dropTrips(of: process)
        case .ended(let process):
            unsaved[process] = nil
            dropTrips(of: process)
        case .copied(let device):
            for (disk, numbers) in done where disk.device == device {
                kept[disk] = Set(numbers.filter(isAcknowledged))
            }
        case .lost(let disk): losses[disk] = done[disk]?.last
        case .wiped(let disk): losses[disk] = .max
        case .serverRestored(let positions, _): dropCommits(after: positions)
        default: break
        }
    }

    package mutating func excuse(_ numbers: [Int]) {
        for number in numbers { fates[number] = .excused }
    }

    private mutating func acknowledge(_ numbers: [Int]) {
        for number in numbers where fates[number] == nil { fates[number] = .acknowledged }
    }

    private mutating func dropTrips(of process: Int) {
        trips = trips.filter { $0.key.process != process }
    }

    /// Actions that the server lost must still be on the disk where they were done, unless that was
    /// lost too.
    private mutating func dropCommits(after positions: [StoreReference: Position]) {
        for (number, commits) in committed {
            let kept = commits.filter { $0.value <= positions[$0.key]?.revision ?? 0 }
            guard kept.count < commits.count else { continue }
            committed[number] = kept.isEmpty ? nil : kept
            guard let disk = disks[number], let loss = losses[disk], number <= loss else {
                continue
            }
            fates[number] = .excused
        }
    }
}

/// A round trip that a process asked for.
struct RoundTrip: Hashable {
    var process: Int
    var id: Int
}
