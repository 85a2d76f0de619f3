// SPDX-License-Identifier: Apache-2.0

import TortureLanguage
import UbiquityCore
import UbiquitySimulation

/// An app that follows its notifications knows all that its store shows, and is not told of keys that
/// only it writes. Of keys whose writes merge it is told too, and does not say what it read.
///
/// It is what can be checked without knowing why each value changed, which only a simulator knows.
final class FollowingChecker: Checker {
    /// The values that each app knows: from opening, its own writes, and reads after notifications.
    private var known: [Int: [Key: PropertyListValue]] = [:]
    /// The key of each process that it has written, and only it writes.
    private var ownKeys: [Int: Key] = [:]
    /// Devices of which there are copies: another process may have the same write of such a key to send.
    private var copies: Set<Int> = []
    private let isOwn: (Key) -> Bool

    /// - Parameter isOwn: Whether a key is written by one process only, and those before it.
    init(isOwn: @escaping (Key) -> Bool) { self.isOwn = isOwn }

    func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .opened(let process, _, let values): known[process] = values
        case .ended(let process): known[process] = nil
        case .wrote(let process, let writes):
            for write in writes { note(write, of: process) }
        case .cloned(let device, let original): copies.formUnion([device, original])
        case .lost(let disk): copies.insert(disk.device)
        case .notified(let process, let notice, let values):
            return notified(process, notice, values)
        case .settled(let settlement):
            return settlement.processes.lazy.compactMap { [self] in complaint(about: $0) }.first
        default: break
        }
        return nil
    }

    private func note(_ write: AppWrite, of process: Int) {
        known[process]?[write.key] = write.value
        if isOwn(write.key), !copies.contains(write.disk.device) { ownKeys[process] = write.key }
    }

    private func notified(
        _ process: Int, _ notice: Notice, _ values: [Key: PropertyListValue?]
    ) -> String? {
        for (key, value) in values { known[process]?[key] = value }
        if notice.reason != .serverChange {
            return "process \(process) was notified of \(notice.keys.sorted()) as "
                + "\(notice.reason), without a cause"
        }
        if let own = ownKeys[process], notice.keys.contains(own) {
            return "process \(process) was notified of \(own), which only it writes"
        }
        return nil
    }

    private func complaint(about process: Settlement.Process) -> String? {
        let believed = known[process.number] ?? [:]
        let keys = Set(believed.keys).union(process.values.keys)
            .filter { !MergedKeys.contains($0) && believed[$0] != process.values[$0] }.sorted()
        return keys.isEmpty
            ? nil : "process \(process.number) was not notified that \(keys) changed"
    }
}
