// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquitySimulation

/// What apps have counted on a counter that the devices of an account share: in the end, each step that
/// was acknowledged is in it, and none is in it twice.
struct CountLedger {
    private var fates = FateLedger()
    /// The steps made on each device.
    private var steps: [Int: [Int]] = [:]
    private var accounts: [Int: Int] = [:]

    mutating func note(_ step: Int, by process: Int, on disk: DiskName) {
        fates.note(step, by: process, on: disk)
        steps[disk.device, default: []].append(step)
    }

    mutating func note(_ observation: Observation) {
        if case .signedIn(let device, _, let account) = observation { accounts[device] = account }
        fates.note(observation)
    }

    /// What is wrong with the counters' values, by account; nil: nothing.
    func complaint(about counts: [Int: Int64]) -> String? {
        counts.sorted { $0.key < $1.key }.lazy.compactMap { account, count in
            let made = steps.filter { accounts[$0.key] == account }.flatMap(\.value)
            let sure = made.count(where: fates.isAcknowledged)
            return (Int64(sure)...Int64(made.count)).contains(count)
                ? nil
                : "account \(account) has counted \(count); \(made.count) steps were made, "
                    + "and \(sure) of them acknowledged"
        }.first
    }
}
