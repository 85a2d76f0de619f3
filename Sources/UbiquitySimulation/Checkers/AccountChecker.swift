// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Values written for one account or store never get into another.
package final class AccountChecker: Checker {
    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .committed(let commit):
            commit.writes.lazy.compactMap { [self] record in
                misplaced(record.content.value, in: commit.store, history)
            }.first
        case .rested(let process, let values), .opened(let process, _, let values):
            foreign(values, to: process, history)
        default: nil
        }
    }

    private func misplaced(
        _ value: PropertyListValue?, in store: StoreReference, _ history: History
    ) -> String? {
        guard let mark = Mark(value), let write = history.writes[mark.number] else { return nil }
        if write.disk.store != store.store {
            return "\(store) got a write of store \(write.disk.store)"
        }
        if !history.owners(ofWritesOn: write.disk).contains(store.account) {
            return "\(store) got a write that was made on \(write.disk)"
        }
        return nil
    }

    private func foreign(
        _ values: [Key: PropertyListValue], to process: Int, _ history: History
    ) -> String? {
        guard let disk = history.disks[process], let owner = history.owner(of: disk) else {
            return nil
        }
        let store = StoreReference(account: owner, store: disk.store)
        return values.values.lazy.compactMap { [self] in misplaced($0, in: store, history) }.first
            .map { "process \(process) shows \($0)" }
    }
}
