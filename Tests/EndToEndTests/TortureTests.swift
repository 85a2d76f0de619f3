// SPDX-License-Identifier: Apache-2.0

internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    /// `make torture`, so short that it only shows that it works.
    @Suite struct TortureTests {
        @Test func `kills and a bad network for some seconds break no promise`() async throws {
            try await onStage { stage in
                let torture = try stage.start(
                    [
                        "--quick", "--seconds", "4", "--devices", "2", "--processes", "2",
                        "--accounts", "1", "--folder", stage.path("torture"),
                    ], program: ProgramFile("UbiquityTorture"))
                #expect(try await torture.exit() == 0, "\(torture.errors)")
                #expect(torture.output.hasSuffix("all promises kept\n"), "\(torture.output)")
            }
        }
    }
}
