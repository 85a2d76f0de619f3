// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Of a sealed account, no device that knows that it is sealed sends anything that a server could read
/// but deletions and counts, or guess by a digest, nor what the account's keys do not open. What a
/// hostile server could make of what it has, no device takes, nor a time that it makes up. And from the moment when a store
/// is sealed with the account's key, neither its records nor its history have anything that a server can
/// read, or that an older key opens.
package final class SealedChecker: Checker {
    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .pushes(let process, _, _, let readable) where !readable.isEmpty:
            "process \(process) sent \(readable.sorted()) so that the server can read them"
        case .betrays(let process, let keys):
            "process \(process) dates \(keys.sorted()) in the future"
        case .committed(let commit) where !commit.readable.isEmpty:
            "\(commit.store) has \(commit.readable.sorted()) unsealed"
        case .committed(let commit) where !commit.forgeries.isEmpty:
            "devices of \(commit.store) take its values \(commit.forgeries)"
        case .settled(let settlement):
            settlement.readable.sorted { $0.key < $1.key }.first { !$0.value.isEmpty }.map {
                "\($0.key) has \($0.value.sorted()) unsealed in the end"
            } ?? unsaid(in: settlement)
        default: nil
        }
    }

    /// What does not open is said by whoever does not show it.
    private func unsaid(in settlement: Settlement) -> String? {
        settlement.processes.lazy.compactMap { process -> String? in
            guard let account = process.account, process.isConnected else { return nil }
            let store = StoreReference(account: account, store: process.disk.store)
            let unopened = (settlement.server[store] ?? [:]).filter { $0.value.content.isSealed }
            let unsaid = Set(unopened.keys).subtracting(process.setAside)
            return unsaid.isEmpty
                ? nil : "process \(process.number) does not say that \(unsaid.sorted()) do not open"
        }.first
    }
}
