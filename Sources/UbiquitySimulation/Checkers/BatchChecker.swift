// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Keys that are only ever written together are never seen apart: not in memory, not in a
/// notification, not on the server.
package final class BatchChecker: Checker {
    private let groups: [[Key]]

    /// - Parameter groups: Keys that apps write only together.
    package init(groups: [[Key]]) { self.groups = groups }

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .opened(let process, _, let values), .rested(let process, let values),
            .received(let process, _, _, let values, _):
            mixed(values).map { "process \(process) sees \($0)" }
        case .committed(let commit):
            mixed(commit.after.compactMapValues(\.content.value)).map { "the server has \($0)" }
        case .settled(let settlement):
            settlement.processes.lazy.compactMap { [self] process in
                mixed(process.onDisk).map { "the disk of process \(process.number) has \($0)" }
            }.first
        default: nil
        }
    }

    private func mixed(_ values: [Key: PropertyListValue]) -> String? {
        for group in groups {
            let batches = group.map { Mark(values[$0])?.batch }
            if Set(batches).count > 1 {
                return "parts of several transactions: \(group) are of "
                    + "\(batches.map { $0.map(String.init) ?? "none" })"
            }
        }
        return nil
    }
}
