// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import ProcessHarness
internal import Testing

extension EndToEndTests {
    @Suite struct SilentServerTests {
        @Test func `a command saves the value and says that it was not sent`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                try await server.stop()
                let silent = try await StubServer(port: server.port) { _ in nil }
                defer { withExtendedLifetime(silent) {} }
                let options = ["--home", home, "--store", Device.identifier]
                let set = try await stage.run(["set", "a", "1", "--timeout", "1"] + options)
                #expect(set.status == 0)
                #expect(
                    set.errors
                        == "Saved on this device, but not sent yet: the server did not answer "
                        + "within 1 s\n")
                let get = try await stage.run(["get", "a", "--local"] + options)
                #expect(get.output == "1\n")
            }
        }
    }
}
