// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    @Suite struct TwoProcessesTests {
        @Test func `a watching process prints what another one of the device sets`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let watch = try await Self.watch(home, stage)
                for value in ["one", "two", "three"] {
                    let run = try await stage.run(
                        Self.command("set", home) + ["word", "--string", value])
                    #expect(run.status == 0)
                    #expect(run.errors.isEmpty)
                    try await until("the watch's line") {
                        watch.output.contains("\"\(value)\"")
                    }
                }
                watch.signal(SIGTERM)
                #expect(try await watch.exit() == 0)
            }
        }

        @Test func `commands do not wait for another process that holds the connection`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let b = try Device(home: await server.newHome("b"))
                defer { b.close() }
                let watch = try await Self.watch(home, stage)
                defer { watch.kill() }
                for number in Int64(1)...3 {
                    b.store.set(number, forKey: "number")
                    try await b.store.synchronizeNow()
                    let run = try await stage.run(Self.command("get", home) + ["number"])
                    #expect(run.output == "\(number)\n")
                    #expect(run.errors.isEmpty)
                }
            }
        }

        @Test func `when the connected process is killed, another takes over`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let b = try Device(home: await server.newHome("b"))
                defer { b.close() }
                let first = try await Self.watch(home, stage)
                let second = try await Self.watch(home, stage)
                b.store.set("before", forKey: "word")
                try await until("both watches' lines") {
                    [first, second].allSatisfy { $0.output.contains("\"before\"") }
                }
                first.kill()
                try await first.exit()
                b.store.set("after", forKey: "word")
                try await until("the second watch's line") {
                    second.output.contains("\"after\"")
                }
                try await stage.succeed("sync", "--home", home, "--store", Device.identifier)
                second.kill()
            }
        }

        private static func command(_ name: String, _ home: String) -> [String] {
            [name, "--home", home, "--store", Device.identifier]
        }

        /// - Returns: When it has said that it watches.
        private static func watch(_ home: String, _ stage: Stage) async throws -> ChildProcess {
            let watch = try stage.start(command("watch", home) + ["--json"])
            try await until("the start of the watch") {
                if !watch.isRunning { throw Trouble("the watch ended: \(watch.errors)") }
                return watch.errors.contains("Watching")
            }
            #expect(!watch.errors.contains("Not connected"))
            return watch
        }
    }
}
