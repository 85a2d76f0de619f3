// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import ProcessHarness
internal import Testing
internal import Ubiquity

#if os(Linux)
extension EndToEndTests {
    /// Tests how much memory strangers can make a server use.
    @Suite struct HostileMemoryTests {
        private static let mebibyte = 1 << 20

        /// The bytes that a process holds in memory.
        private func memory(of server: ServerProcess) throws -> Int {
            let id = try #require(server.processID)
            let status = try String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)
            let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
            let kilobytes = line?.split(separator: " ").compactMap { Int($0) }.first
            return try #require(kilobytes) * 1_024
        }

        /// - Parameter text: Is written at once, however busy this process is.
        private func connect(
            _ server: ServerProcess, reads: Bool = true, writing text: String
        ) async throws -> any Channel {
            try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelOption(.autoRead, value: reads)
                .channelOption(.socketOption(.so_rcvbuf), value: 4_096)
                .connect(host: "127.0.0.1", port: server.port)
                .flatMap { channel in
                    channel.writeAndFlush(ByteBuffer(string: text)).map { channel }
                }.get()
        }

        private func isWell(_ server: ServerProcess) async throws -> Bool {
            try await RawAnswer.to("GET", "\(server.url)/health/live").status == 200
        }

        @Test func `thousands of unfinished requests cost little, and are let go`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(
                    stage, options: ["--connections-per-address-max", "2500"])
                #expect(try await isWell(server))
                let before = try memory(of: server)
                var connections: [any Channel] = []
                let head = "GET /v1/config HTTP/1.1\r\nX: " + String(repeating: "a", count: 8_000)
                for _ in 0..<2_000 {
                    connections.append(try await connect(server, writing: head))
                }
                #expect(try await isWell(server))
                let growth = try memory(of: server) - before
                #expect(growth < 200 * Self.mebibyte, "\(growth / Self.mebibyte) MiB")
                try await until("the end of all") {
                    connections.allSatisfy { !$0.isActive }
                }
                #expect(try await isWell(server))
            }
        }

        @Test func `unread answers are held one per connection`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(
                    stage, options: ["--metrics-port", "0"])
                let home = try await server.newHome("a", isFirst: true)
                let device = try Device(home: home)
                defer { device.close() }
                device.store.set(String(repeating: "x", count: 1_000_000), forKey: "a")
                try await device.store.synchronizeNow()
                let credential = try #require(try device.credential)
                let pull =
                    "GET /v1/stores/\(Device.identifier)/changes HTTP/1.1\r\nHost: localhost\r\n"
                    + "Authorization: Bearer \(credential)\r\n"
                    + "Accept: application/x-protobuf\r\n\r\n"
                let before = try memory(of: server)
                var connections: [any Channel] = []
                for _ in 0..<4 {
                    let pulls = String(repeating: pull, count: 15)
                    connections.append(try await connect(server, reads: false, writing: pulls))
                }
                let url = try server.metricsURL
                var (growth, last, times): (Int, Substring?, Int) = (0, nil, 0)
                try await until("answers that wait, and no others") {
                    growth = max(growth, try memory(of: server) - before)
                    let line = try await RawAnswer.to("GET", url).body.split(separator: "\n")
                        .first { $0.hasPrefix("ubiquity_answer_bytes ") }
                    times = line == last && line?.hasSuffix(" 0") == false ? times + 1 : 0
                    last = line
                    return times == 100
                }
                // Sixty answers of a megabyte were asked for.
                #expect(growth < 40 * Self.mebibyte, "\(growth / Self.mebibyte) MiB")
                #expect(try await isWell(server))
                for connection in connections { connection.close(promise: nil) }
            }
        }
    }
}
#endif
