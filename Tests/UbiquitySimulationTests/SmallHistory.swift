// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

@testable import UbiquitySimulation

/// The first complaint about these.
func complaint(_ checker: some Checker, _ observations: [Observation]) -> String? {
    let journal = Journal(checkers: [checker], clock: TrueTime())
    for observation in observations { journal.note(observation) }
    return journal.violation?.complaint
}

/// The parts of small histories, with one process on one device.
protocol SmallHistory {}

extension SmallHistory {
    var key: Key { try! Key("k") }
    var other: Key { try! Key("l") }
    var disk: DiskReference { DiskReference(device: 1, folder: "1", store: 0) }
    var store: StoreReference { StoreReference(account: 1, store: 0) }

    var signedIn: Observation { .signedIn(device: 1, folder: "1", account: 1) }

    func opened(_ values: [Key: PropertyListValue] = [:]) -> Observation {
        .opened(process: 1, disk: disk, values: values)
    }

    func value(_ number: Int, batch: Int = 0) -> PropertyListValue {
        Mark(number: number, batch: batch).value(padding: 0)
    }

    func write(
        _ number: Int, of key: Key? = nil, batch: Int = 0, time: Int64 = 0, over: Int? = nil,
        isDeletion: Bool = false
    ) -> AppWrite {
        AppWrite(
            number: number, batch: batch, process: 1, disk: disk, key: key ?? self.key,
            value: isDeletion ? nil : value(number, batch: batch), time: time, over: over)
    }

    func wrote(
        _ number: Int, time: Int64 = 0, over: Int? = nil, isDeletion: Bool = false
    ) -> Observation {
        .wrote(process: 1, [write(number, time: time, over: over, isDeletion: isDeletion)])
    }

    func record(_ write: AppWrite, at time: Int64 = 1, by device: UInt64 = 1) -> Record {
        Record(
            key: write.key, content: write.value.map(Content.value) ?? .deleted,
            stamp: Stamp(HybridTimestamp(milliseconds: time), DeviceID(rawValue: device)))
    }

    func record(_ number: Int, at time: Int64, by device: UInt64 = 1) -> Record {
        record(write(number), at: time, by: device)
    }

    /// - Parameter pushed: What was sent; nil for everything that is there afterwards.
    func commit(
        _ before: [Record], _ after: [Record], revision: Int64 = 1, epoch: UInt64 = 1,
        pushed: [Record]? = nil, result: TransactionResult = .committed([.applied]),
        limits: StoreLimits = StoreLimits()
    ) throws -> Observation {
        let pushed = pushed ?? after
        let isRefused = if case .refused = result { true } else { false }
        return .committed(
            Commit(
                store: store, before: Dictionary(before.map { ($0.key, $0) }) { $1 },
                after: Dictionary(after.map { ($0.key, $0) }) { $1 },
                position: Position(epoch: epoch, revision: revision),
                push: Push([try Transaction(pushed)]), results: [result],
                writes: isRefused ? [] : pushed, limits: limits, serverMilliseconds: 1_000,
                newestCompacted: .zero))
    }
}
