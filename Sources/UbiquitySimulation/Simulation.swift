// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// One run: a phase with faults, then peace, in which everything must settle.
package struct Simulation: Sendable {
    package var seed: UInt64
    /// The number of events in the phase with faults.
    package var steps: Int
    /// The number of nodes; nil for what the seed draws.
    package var nodes: Int?

    /// One seed in this many has several nodes.
    package static let seedsPerSharedDatabase: UInt64 = 6

    package init(seed: UInt64, steps: Int) {
        self.seed = seed
        self.steps = steps
    }

    package struct Outcome: Sendable {
        package var scenario: Scenario
        /// Nil if all promises were kept.
        package var violation: Journal.Violation?
        /// The number of events that happened in the phase with faults.
        package var steps: Int
        /// The virtual time of both phases.
        package var simulatedMilliseconds: Int64
        package var faults: [Fault: Int]
        package var digest: Digest
    }

    /// - Parameters:
    ///   - scenario: The people and faults; nil for what the seed draws.
    ///   - watching: Called for every observation, with the milliseconds since the run began.
    /// - Complexity: Some microseconds for each step, and some milliseconds for the peace.
    package func run(
        _ scenario: Scenario? = nil, watching: ((Observation, Int64) -> Void)? = nil
    ) -> Outcome {
        let chance = Chance(seed: seed)
        let scenario = scenario ?? drawScenario(chance)
        let clock = TrueTime()
        let journal = Journal(
            checkers: Self.checkers(scenario, clock), clock: clock, watching: watching)
        let world = World(scenario: scenario, chance: chance, journal: journal, clock: clock)
        return world.outcome(steps: steps)
    }

    private func drawScenario(_ chance: Chance) -> Scenario {
        let hasNodes = nodes.map { $0 > 1 } ?? (seed % Self.seedsPerSharedDatabase == 0)
        let sealing = Chance(seed: seed &* 0x27D4_EB2F)
        var scenario = Scenario(
            chance, merging: Chance(seed: ~seed), lines: Chance(seed: seed &* 0x9E37_79B9),
            folding: Chance(seed: seed &* 0xC2B2_AE35),
            nodes: hasNodes ? Chance(seed: seed &* 0x85EB_CA6B) : nil,
            sealing: sealing.coin() ? sealing : nil)
        if let nodes { scenario.nodes = nodes }
        return scenario
    }

    private static func checkers(_ scenario: Scenario, _ clock: TrueTime) -> [any Checker] {
        let ofServers: [any Checker] = [
            QuotaChecker(), AccountChecker(), AnswerChecker(), HorizonChecker { clock.now },
            HistoryChecker(), PromotionChecker(),
        ]
        return scenario.deviceCheckers(clock) + ofServers
    }

    /// The smallest number of steps with which this seed fails; nil if none up to ``steps`` does.
    /// - Complexity: As many runs as the result.
    package func shortestFailure() -> Simulation? {
        (0...steps).lazy.map { steps in
            var simulation = self
            simulation.steps = steps
            return simulation
        }
        .first { $0.run().violation != nil }
    }
}

extension ScenarioWorld {
    /// Runs a phase with faults, and then the peace.
    package func outcome(steps: Int) -> Simulation.Outcome {
        runUnderFaults(steps: steps)
        if journal.violation == nil { settle() }
        end()
        return Simulation.Outcome(
            scenario: scenario, violation: violation, steps: run.steps,
            simulatedMilliseconds: now - run.start, faults: journal.faults,
            digest: journal.digest)
    }
}
