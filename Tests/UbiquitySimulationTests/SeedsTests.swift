// SPDX-License-Identifier: Apache-2.0

import ProcessHarness
import Testing
import UbiquitySimulation

/// Runs that a change must pass; `make simulate` runs as many as one has patience for.
struct SeedsTests {
    /// In parts, so that they run side by side.
    @Test(arguments: stride(from: 1, through: 51, by: 10).map { UInt64($0)...UInt64($0 + 9) })
    func `all promises are kept under the faults of a fixed set of seeds`(
        seeds: ClosedRange<UInt64>
    ) {
        for seed in seeds {
            let violation = Simulation(seed: seed, steps: 500).run().violation
            #expect(violation == nil, "seed \(seed)")
        }
    }

    @Test func `a run without faults keeps all promises`() {
        for seed: UInt64 in 1...5 {
            #expect(Simulation(seed: seed, steps: 500).run(Scenario()).violation == nil)
        }
    }

    @Test func `one seed does the same again, and another one something else`() {
        let runs = [7, 7, 8].map { Simulation(seed: $0, steps: 300).run().digest }
        #expect(runs[0] == runs[1])
        #expect(runs[0] != runs[2])
    }

    /// Each process has its own order of sets and dictionaries.
    @Test func `one seed does the same in another process`() async throws {
        for seed: UInt64 in [3, 11] {
            let here = Simulation(seed: seed, steps: 400).run().digest
            let there = try await SimulatorProgram.run(["--seed", "\(seed)", "--steps", "400"])
            #expect(there.output.contains("digest \(here)"))
            #expect(there.status == 0)
        }
    }
}
