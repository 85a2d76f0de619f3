// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// When nothing has gone wrong for a long time, all agree: the server, and each process in memory
/// and on disk. Nothing waits any more, every process is connected and holds no stream in vain, every
/// round trip and call has ended, no store reports a failing disk, and none has spent the time looking for
/// work.
package final class ConvergenceChecker: Checker {
    /// More often than any back-off in the time for settling, also for a server whose clock is set
    /// back.
    private static let wakesMax = 20_000

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        guard case .settled(let settlement) = observation else { return nil }
        return settlement.processes.lazy.compactMap { [self] process in
            complaint(about: process, settlement.server).map { "process \(process.number) \($0)" }
        }.first
    }

    private func complaint(
        about process: Settlement.Process, _ server: [StoreReference: [Key: Record]]
    ) -> String? {
        guard let account = process.account else { return "is signed out" }
        if let failure = process.diskFailure { return "says that its disk fails: \(failure)" }
        if process.wakes > Self.wakesMax { return "woke \(process.wakes) times for nothing" }
        if !process.isConnected { return "is not connected" }
        if process.streamsBeside > 0 {
            return "holds \(process.streamsBeside) streams more than it may"
        }
        if process.tripsOpen > 0 {
            return "has \(process.tripsOpen) round trips that do not end"
        }
        if process.questionsOpen > 0 {
            return "has \(process.questionsOpen) calls of synchronize() that do not return"
        }
        if !process.waiting.isEmpty { return "still waits to send \(process.waiting.sorted())" }
        let name = StoreReference(account: account, store: process.disk.store)
        let stored = (server[name] ?? [:]).compactMapValues(\.content.value)
        // What a device says that it does not take is told, and need not be the same.
        func taken(_ values: [Key: PropertyListValue]) -> [Key: PropertyListValue] {
            values.filter { !process.setAside.contains($0.key) }
        }
        return difference(taken(process.values), taken(stored)).map {
            "and the server differ in \($0)"
        } ?? difference(process.onDisk, process.values).map { "and its disk differ in \($0)" }
    }

    private func difference(
        _ a: [Key: PropertyListValue], _ b: [Key: PropertyListValue]
    ) -> String? {
        let keys = Set(a.keys).union(b.keys).filter { a[$0] != b[$0] }.sorted()
        guard let key = keys.first else { return nil }
        return "\(keys.count) keys; under \(key), they have "
            + "\(describe(a[key])) and \(describe(b[key]))"
    }

    private func describe(_ value: PropertyListValue?) -> String {
        guard let value else { return "nothing" }
        return Mark(value).map { "write \($0.number)" } ?? "\(value)"
    }
}
