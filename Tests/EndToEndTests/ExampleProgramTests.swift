// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    /// An example as a program: the stage that all of them have.
    @Suite struct ExampleProgramTests {
        private let program = ProgramFile("SyncMe")

        @Test func `an example is a device that somebody is signed in on`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = try await server.newHome("a", isFirst: true)
                let b = try await server.newHome("b")
                try await stage.succeed(
                    "set", "background", "--string", "green", "--store", "EXAMPLES.syncme",
                    "--home", a)
                try await stage.succeed("sync", "--store", "EXAMPLES.syncme", "--home", a)

                let run = try await stage.run(["--home", b, "--print"], program: program)
                #expect((run.status, run.errors) == (0, ""))
                #expect(run.output.contains("connected"))
                #expect(run.output.contains("The background is green."))
                // The app's preferences are in the file that is the program's.
                let files = try FileManager.default.contentsOfDirectory(atPath: b + "/config")
                #expect(files.filter { $0.hasSuffix(".plist") } == ["SyncMe.plist"])
            }
        }

        @Test func `an example brings two devices and a server of its own`() async throws {
            try await onStage { stage in
                let run = try await stage.run(["--print"], program: program)
                #expect((run.status, run.errors) == (0, ""))
                #expect(run.output.components(separatedBy: "connected").count == 3)
            }
        }

        @Test func `an example that has no terminal says so`() async throws {
            try await onStage { stage in
                let run = try await stage.run([], program: program)
                #expect(run.status == 1)
                #expect(run.errors.hasPrefix("SyncMe: it needs a terminal"))
            }
        }
    }
}
