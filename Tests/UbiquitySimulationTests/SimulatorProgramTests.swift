// SPDX-License-Identifier: Apache-2.0

import ProcessHarness
import Testing

struct SimulatorProgramTests {
    @Test(arguments: [
        ["--seeds", "5...3"], ["--seeds", "5"], ["--steps", "x"], ["--trace"],
        ["--seed", "1", "--seeds", "1...2"],
    ])
    func `what cannot be run is refused with a sentence`(arguments: [String]) async throws {
        let run = try await SimulatorProgram.run(arguments)
        #expect(run.status != 0)
        #expect(run.errors.contains("Error: "))
    }

    @Test func `many seeds are counted, with their faults`() async throws {
        let run = try await SimulatorProgram.run(["--seeds", "1...5", "--steps", "50"])
        #expect(run.status == 0)
        #expect(run.output.contains("5 seeds, 250 steps under faults"))
        #expect(run.output.contains("0 failed"))
    }

    @Test func `a trace tells what happened`() async throws {
        let run = try await SimulatorProgram.run(["--seed", "1", "--steps", "60", "--trace"])
        #expect(run.output.contains("process 1 opens device 1"))
        #expect(run.output.contains("all should agree"))
    }
}
