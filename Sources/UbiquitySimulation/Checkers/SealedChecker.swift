// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Of a sealed account, nothing is sent that a server could read but deletions and counts, and
/// nothing that the account's key does not open.
package final class SealedChecker: Checker {
    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        guard case .pushes(let process, _, _, let readable) = observation, !readable.isEmpty else {
            return nil
        }
        return "process \(process) sent \(readable.sorted()) so that the server can read them"
    }
}
