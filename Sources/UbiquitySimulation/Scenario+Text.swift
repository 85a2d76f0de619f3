// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension Scenario: CustomStringConvertible {
    package var description: String {
        """
        \(accounts) accounts, \(devices) devices with \(processes) processes, \(stores) stores, \
        \(keys) keys and \(groups) groups of \(groupSize), \
        policies \(policies.map { "\($0)" }.joined(separator: " ")), \(partsMax) parts of a counter, \
        \(foldedMax.map { "\($0)" } ?? "all") remembered that are folded, first sync \(firstSync.rawValue), \
        at most \(limits.keysMax) keys and \(limits.storeBytesMax) bytes, \
        \(allowance.burst) pushes at once and \(allowance.perSecond) a second, \
        work every \(workInterval) ms, faults every \(faultInterval) ms, \
        delays up to \(delayMax) ms, flushes up to \(flushMax) ms, clocks up to \(skewHoursMax) h wrong; \
        delays there up to \(delayThereMax.map { "\($0)" } ?? "the same"), \
        streams \(streamsMax == .max ? "without limit" : "\(streamsMax)"), \
        lines \(qualities.map { "\($0.isBuffering ? "buffering " : "")\($0.bytesPerSecond ?? 0)" }), \
        faults of \(faults.map(\.rawValue).sorted().joined(separator: ", "))
        """
    }
}
