// SPDX-License-Identifier: Apache-2.0

import UbiquitySimulation

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// The totals of many runs.
struct Tally {
    private var seeds = 0
    private var steps = 0
    private var failures = 0
    private var milliseconds: Int64 = 0
    private var faults: [Fault: Int] = [:]
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var reported: ContinuousClock.Instant

    init() {
        start = clock.now
        reported = start
    }

    mutating func add(_ outcome: Simulation.Outcome) {
        seeds += 1
        steps += outcome.steps
        milliseconds += outcome.simulatedMilliseconds
        faults.merge(outcome.faults) { $0 + $1 }
        if outcome.violation != nil { failures += 1 }
    }

    var isTimeToReport: Bool { clock.now - reported > .seconds(10) }

    mutating func report() {
        reported = clock.now
        let seconds = (reported - start) / .seconds(1)
        let rate = seconds > 0 ? Int(Double(steps) / seconds) : 0
        print(
            "\(seeds) seeds, \(steps) steps under faults (\(rate) a second), "
                + "\(milliseconds / 86_400_000) days simulated, \(failures) failed")
        print("  faults: \(faults.inWords)")
        // Readers of a pipe want to see it now.
        fflush(nil)
    }
}

extension Simulation.Outcome {
    var summary: String {
        """
        \(steps) steps under faults, \(simulatedMilliseconds) ms simulated, digest \(digest)
          \(scenario)
          faults: \(faults.inWords)
        """
    }
}

extension [Fault: Int] {
    /// Sorted by name, because a dictionary has no order.
    fileprivate var inWords: String {
        isEmpty
            ? "none"
            : sorted { $0.key.rawValue < $1.key.rawValue }
                .map { "\($0.value) \($0.key.rawValue)" }.joined(separator: ", ")
    }
}
