// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Of a device's processes, only the one with the lease talks to the server. One that stood still
/// may believe to have it until it is told.
package final class LeaseChecker: Checker {
    private var leaders: Set<Int> = []

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .leads(let process, true): leaders.insert(process)
        case .leads(let process, false), .ended(let process): leaders.remove(process)
        case .opensStream(let process): return complaint(process, "opened a stream")
        case .pulls(let process): return complaint(process, "pulled")
        case .pushes(let process, _, _, _): return complaint(process, "pushed")
        default: break
        }
        return nil
    }

    private func complaint(_ process: Int, _ act: String) -> String? {
        leaders.contains(process) ? nil : "process \(process) \(act) without the lease"
    }
}
