// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// What became of each thing that an app did, as far as anybody answers for it: whether it was
/// acknowledged, and by what the contract lets it go.
///
/// Things have the numbers of their writes. A checker tells it what was done where, and what the
/// server has committed; everything else it takes from the observations.
package struct FateLedger {
    private enum Fate {
        case acknowledged
        case excused
    }

    private struct Trip: Hashable {
        var process: Int
        var id: Int
    }

    private var fates: [Int: Fate] = [:]
    /// Of each process, what it did since it last was told that all is on disk.
    private var unsaved: [Int: [Int]] = [:]
    /// Of each round trip under way, what was unsaved when it was asked for.
    private var trips: [Trip: [Int]] = [:]
    /// Of each disk, all that was done there.
    private var done: [DiskName: [Int]] = [:]
    private var disks: [Int: DiskName] = [:]
    /// What the server has, as long as it does not become an older copy of itself.
    private var committed: [Int: [StoreName: Int64]] = [:]
    /// Of each disk that was lost, the last thing done there until then.
    private var losses: [DiskName: Int] = [:]
    /// Of each disk, what was acknowledged when it was last copied: its copy has it.
    private var kept: [DiskName: Set<Int>] = [:]

    package init() {}

    package func isAcknowledged(_ number: Int) -> Bool { fates[number] == .acknowledged }

    package func isCommitted(_ number: Int) -> Bool { committed[number] != nil }

    package func isCommitted(_ number: Int, to store: StoreName) -> Bool {
        committed[number]?[store] != nil
    }

    /// All that was done there, in its order.
    package func numbers(on disk: DiskName) -> [Int] { done[disk] ?? [] }

    /// Whether the last copy of its disk has it.
    package func isKept(_ number: Int) -> Bool {
        disks[number].flatMap { kept[$0]?.contains(number) } ?? false
    }

    // MARK: - What happens

    package mutating func note(_ number: Int, by process: Int, on disk: DiskName) {
        unsaved[process, default: []].append(number)
        done[disk, default: []].append(number)
        disks[number] = disk
        // Its process has not heard yet that the disk is wiped.
        if losses[disk] == .max { fates[number] = .excused }
    }

    /// The server has made these durable.
    package mutating func note(_ numbers: [Int], in commit: Commit) {
        for number in numbers {
            committed[number, default: [:]][commit.store] = commit.position.revision
        }
        acknowledge(numbers)
    }

    /// What does not concern it, it passes over.
    package mutating func note(_ observation: Observation) {
        switch observation {
        case .synchronized(let process): acknowledge(unsaved.removeValue(forKey: process) ?? [])
        case .askedRoundTrip(let process, let id, _):
            trips[Trip(process: process, id: id)] = unsaved[process] ?? []
        case .finishedRoundTrip(let process, let id, _, _):
            acknowledge(trips.removeValue(forKey: Trip(process: process, id: id)) ?? [])
        case .moved(let process, _):
            // Who turns to another account leaves what waits behind, parked.
            acknowledge(unsaved.removeValue(forKey: process) ?? [])
            forgetTrips(of: process)
        case .ended(let process):
            unsaved[process] = nil
            forgetTrips(of: process)
        case .copied(let device):
            for (disk, numbers) in done where disk.device == device {
                kept[disk] = Set(numbers.filter(isAcknowledged))
            }
        case .lost(let disk): losses[disk] = done[disk]?.last
        case .wiped(let disk): losses[disk] = .max
        case .serverRestored(let positions): forgetCommits(after: positions)
        default: break
        }
    }

    package mutating func excuse(_ numbers: [Int]) {
        for number in numbers { fates[number] = .excused }
    }

    private mutating func acknowledge(_ numbers: [Int]) {
        for number in numbers where fates[number] == nil { fates[number] = .acknowledged }
    }

    private mutating func forgetTrips(of process: Int) {
        trips = trips.filter { $0.key.process != process }
    }

    /// What the server forgot, the disk must still have on which it was done, unless that was lost.
    private mutating func forgetCommits(after positions: [StoreName: Position]) {
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
