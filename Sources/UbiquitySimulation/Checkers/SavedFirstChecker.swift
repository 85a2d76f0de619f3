// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Everything that a device sends was on its disk, with the same stamp. A device that sent it from
/// memory and then crashed would send it again with another stamp, as a later write, or not know of
/// it. So nothing waits to be saved for an event that may not come.
package final class SavedFirstChecker: Checker {
    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .pushes(let process, _, let unsaved, _) where !unsaved.isEmpty:
            "process \(process) pushed \(unsaved.sorted()), which were not saved"
        case .restedUnsaved(let process):
            "process \(process) has nothing to do, and has not saved everything"
        default: nil
        }
    }
}
