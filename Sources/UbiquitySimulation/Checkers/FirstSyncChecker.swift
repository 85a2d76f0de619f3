// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// A fresh install overwrites nothing: where the app asked for that, what it had written under keys
/// that the server has is gone with the first download.
package final class FirstSyncChecker: Checker {
    /// What the download that a process is just taking replaces there.
    private var replaced: (disk: DiskName, keys: Set<Key>)?

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .discarded(let disk, let keys): replaced = (disk, keys)
        // What it changes is told before it is taken for complete.
        case .changed: break
        case .received(let process, _, _, _, let own):
            defer { replaced = nil }
            guard let replaced, replaced.disk == history.disks[process] else { return nil }
            let kept = own.intersection(replaced.keys).sorted()
            return kept.isEmpty
                ? nil : "the first sync of process \(process) kept its own writes of \(kept)"
        default: replaced = nil
        }
        return nil
    }
}
