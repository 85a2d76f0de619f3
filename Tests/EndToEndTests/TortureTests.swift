// SPDX-License-Identifier: Apache-2.0

internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    /// `make torture`, for some seconds.
    @Suite struct TortureTests {
        @Test func `kills and a bad network for some seconds break no promise`() async throws {
            try await breaksNoPromise()
        }

        @Test(.enabled(if: PostgresServer.isInstalled, "PostgreSQL 15 is not installed"))
        func `nodes and a primary that are killed for some seconds break no promise`() async throws
        {
            try await breaksNoPromise("--database", "postgresql")
        }

        @Test func `accounts that are sealed under kills break no promise`() async throws {
            try await breaksNoPromise("--sealed")
        }

        private func breaksNoPromise(_ options: String...) async throws {
            try await onStage { stage in
                let torture = try stage.start(
                    [
                        "--quick", "--seconds", "15", "--devices", "2", "--processes", "4",
                        "--accounts", "1", "--folder", stage.path("torture"),
                    ] + options, program: ProgramFile("UbiquityTorture"))
                let status = try await torture.exit()
                let end = torture.output.suffix(1_000)
                #expect(status == 0, "\(end)\(torture.errors)")
                #expect(end.hasSuffix("all promises kept\n"), "\(end)")
            }
        }
    }
}
