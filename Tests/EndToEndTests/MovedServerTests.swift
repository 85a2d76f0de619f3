// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import Testing

extension EndToEndTests {
    /// A server's name that leads to another address, as after a move to another machine.
    @Suite struct MovedServerTests {
        private static let name = "box.test"
        private static let store = ["--store", "TEAM.app"]

        private static func hasMounts() async throws -> Bool {
            try await Stage("mounts").run(
                ["unshare", "--mount", "true"], program: ProgramFile(path: "/usr/bin/env")
            ).status == 0
        }

        /// Starts a command for which the file says where names lead.
        private func start(
            _ stage: Stage, _ hosts: String, _ command: [String]
        ) throws -> ChildProcess {
            let script = "mount --bind \"$0\" /etc/hosts; exec \"$@\""
            return try stage.start(
                ["--mount", "sh", "-c", script, hosts, try ProgramFile.ubiquity.path()] + command,
                program: ProgramFile(path: "/usr/bin/unshare"))
        }

        /// In place, because the file is mounted.
        private func write(_ address: String, to hosts: String) throws {
            try Data("127.0.0.1 localhost\n\(address) \(Self.name)\n".utf8)
                .write(to: URL(fileURLWithPath: hosts))
        }

        @Test(.enabled { try await hasMounts() })
        func `a device that goes on uses the new address at its next attempt`() async throws {
            try await onStage { stage in
                let options = ["--host-name", Self.name]
                let server = try await ServerProcess.started(stage, options: options)
                let (hosts, a, b) = (stage.path("hosts"), stage.path("a"), stage.path("b"))
                try write("127.0.0.1", to: hosts)
                let attempts = Mutex(0)
                let isMoved = Mutex(false)
                let relay = try Relay {
                    attempts.withLock { $0 += 1 }
                    return isMoved.withLock(\.self) ? [] : [server.port]
                }
                let port = try #require(URL(string: try await relay.plugIn())?.port)
                let signIn = try start(
                    stage, hosts,
                    [
                        "sign-in", "--server", "http://\(Self.name):\(port)", "--code",
                        try await server.newCode(isFirst: true), "--allow-plain-http", "--home", a,
                    ])
                try #require(try await signIn.exit() == 0, "\(signIn.lastWords)")
                let watch = try start(stage, hosts, ["watch", "k", "--home", a] + Self.store)
                try await until("its connection") { watch.errors.contains("Connected.") }

                isMoved.withLock { $0 = true }
                relay.pullOut()
                _ = try await relay.plugIn()
                let first = attempts.withLock(\.self)
                try await until("attempts that fail") { attempts.withLock(\.self) > first + 1 }
                try await server.stop()
                let moved = ServerProcess(
                    stage, port: port, data: server.data,
                    options: options + ["--host", "127.0.0.2"])
                try await moved.start()
                try await stage.succeed(
                    "sign-in", "--server", "http://127.0.0.2:\(port)", "--code",
                    try await moved.newCode(), "--home", b)
                try await stage.succeed(["set", "k", "moved", "--home", b] + Self.store)
                let before = attempts.withLock(\.self)
                try write("127.0.0.2", to: hosts)
                try await until("the change") { watch.output.contains("moved") }
                // The attempt of the moment may be a request and a stream.
                #expect(attempts.withLock(\.self) <= before + 2)
            }
        }
    }
}
