// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    /// Commands that meet a limit of the server.
    @Suite struct LimitCommandTests {
        private static let store = ["--store", "TEAM.app"]

        private func restart(_ server: ServerProcess, _ options: [String]) async throws
            -> ServerProcess
        {
            try await server.stop()
            let next = ServerProcess(
                server.stage, port: server.port, data: server.data, options: options)
            try await next.start()
            return next
        }

        @Test func `a value that the server takes back is a failure, in JSON too`() async throws {
            try await onStage { stage in
                var server = try await ServerProcess.started(stage)
                let options = ["--home", try await server.newHome("a", isFirst: true)] + Self.store
                try await stage.run(["set", "k", "1"] + options).expectSuccess()
                let large = String(repeating: "x", count: 2_000)
                for more in [[], ["--json"]] {
                    // The device has not heard of the lower limit when it writes.
                    server = try await restart(server, ["--value-bytes-max", "1000"])
                    let set = try await stage.run(["set", "k", large] + options + more)
                    // Or it has, a moment before.
                    #expect([65, 77].contains(set.status), "\(set)")
                    #expect(set.errors.contains("may have at most 1000"), "\(set)")
                    #expect(more.isEmpty || set.status == 65 || set.output.contains("false"))
                    let get = try await stage.run(["get", "k"] + options)
                    #expect(get.output == "1\n", "\(get)")
                    server = try await restart(server, [])
                    try await stage.run(["sync"] + options).expectSuccess()
                }
            }
        }

        @Test func `a limit that was raised since refuses nothing`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(
                    stage, options: ["--value-bytes-max", "1000"])
                let options = ["--home", try await server.newHome("a", isFirst: true)] + Self.store
                try await stage.run(["set", "k", "1"] + options).expectSuccess()
                let large = String(repeating: "x", count: 2_000)
                let refused = try await stage.run(["set", "k", large] + options)
                #expect(refused.status == 65, "\(refused)")
                _ = try await restart(server, [])
                try await stage.run(["set", "k", large] + options).expectSuccess()
                #expect(try await stage.run(["get", "k"] + options).output == large + "\n")
            }
        }

        @Test func `an import that is more than one request is several`() async throws {
            try await onStage { stage in
                let limits = ["--push-bytes-max", "65536", "--value-bytes-max", "50000"]
                let server = try await ServerProcess.started(stage, options: limits)
                let home = try await server.newHome("a", isFirst: true)
                let options = ["--home", home] + Self.store
                try await stage.run(["sync"] + options).expectSuccess()
                let entries = Dictionary(uniqueKeysWithValues: (0..<600).map { ("k\($0)", $0) })
                let file = stage.path("many.plist")
                try PropertyListSerialization.data(
                    fromPropertyList: entries, format: .xml, options: 0
                ).write(to: URL(fileURLWithPath: file))
                let imported = try await stage.run(["import", file] + options)
                #expect(imported.output == "Imported 600 keys.\n", "\(imported)")
                #expect(imported.status == 0 && imported.errors.isEmpty, "\(imported)")
                // An answer is not agreement yet.
                try await stage.run(["sync"] + options).expectSuccess()
                let status = try await stage.run(["status", "--local", "--json"] + options)
                #expect(status.output.contains(#""pendingKeys":0,"neverSent":null"#), "\(status)")
                try await stage.run(["set", "x", "1"] + options).expectSuccess()
            }
        }

        @Test func `a server refuses limits that contradict each other`() async throws {
            try await onStage { stage in
                let serve = try await stage.run([
                    "serve", "--data", stage.path("server"), "--push-bytes-max", "1000000",
                ])
                #expect(serve.status == 64, "\(serve)")
                #expect(serve.errors.contains("contradict"), "\(serve)")
            }
        }
    }
}
