// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Everything that a device sends was on its disk, with the same stamp. A device that sent it from
/// memory and then crashed would send it again with another stamp, as a later write, or not know of
/// it.
package final class SavedFirstChecker: Checker {
    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        guard case .pushes(let process, _, let unsaved) = observation, !unsaved.isEmpty else {
            return nil
        }
        return "process \(process) pushed \(unsaved.sorted()), which were not saved"
    }
}
