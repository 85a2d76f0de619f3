// SPDX-License-Identifier: Apache-2.0

import ProcessHarness

/// The program `ubiquity-simulator`, as it was built beside the tests.
enum SimulatorProgram {
    static func run(_ arguments: [String]) async throws -> ProgramRun {
        try await Stage("simulator").run(arguments, program: ProgramFile("ubiquity-simulator"))
    }
}
