// SPDX-License-Identifier: Apache-2.0

/// While the disk refuses what a process has to save, its app is told why, and never that
/// everything is saved. That what was called saved is there, ``SurvivalChecker`` knows.
package final class DiskChecker: Checker {
    /// The processes whose last save was refused.
    private var refused: Set<Int> = []

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .endedSave(let process, true): refused.insert(process)
        case .endedSave(let process, false), .ended(let process): refused.remove(process)
        case .showsDisk(let process, nil) where refused.contains(process):
            return "process \(process) says nothing of its disk, which has refused to save"
        case .showsDisk(let process, ""):
            return "process \(process) says that its disk does not save, and not why"
        case .synchronized(let process) where refused.contains(process):
            return "process \(process) says that all is saved, which its disk has refused"
        default: break
        }
        return nil
    }
}
