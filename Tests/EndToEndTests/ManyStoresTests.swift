// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    /// A process that has many stores open, whose requests share its connections.
    struct ManyStoresTests {
        private static let count = 64
        static let options = ["--streams-max", "\(2 * count)"] + ServerProcess.manyPushes

        static func open(_ home: String, _ count: Int = count) throws -> [Device] {
            try (0..<count).map { number in
                try Device(home: home) { $0.identifier = "TEAM.store\(number)" }
            }
        }

        static func close(_ devices: [Device]) async {
            await withTaskGroup { group in
                for device in devices { group.addTask { device.close() } }
            }
        }

        @Test func `64 stores close while their requests are under way, and nothing is lost`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage, options: Self.options)
                let homes = [
                    try await server.newHome("a", isFirst: true), try await server.newHome("b"),
                ]
                for round in Int64(1)...4 {
                    let devices = try Self.open(homes[0])
                    for device in devices { device.store.set(round, forKey: "\(round)") }
                    // At its first request; in the middle of them; on its stream.
                    if round > 2 {
                        let wanted = round == 3 ? 1 : Self.count
                        try await until("a connection") {
                            devices.count(where: \.isConnected) >= wanted
                        }
                    }
                    await Self.close(devices)
                }
                let (writing, reading) = (try Self.open(homes[0]), try Self.open(homes[1]))
                try await until("all stores") {
                    writing.allSatisfy(\.isSettled)
                        && reading.allSatisfy { device in
                            (1...4).allSatisfy { (round: Int64) in
                                device.integer("\(round)") == round
                            }
                        }
                }
                await Self.close(writing + reading)
            }
        }

        /// The number of connections to a server on this machine, from its side.
        private func connections(to port: Int) throws -> Int {
            let hex = String(port, radix: 16, uppercase: true)
            let local = ":" + String(repeating: "0", count: 4 - hex.count) + hex
            return try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
                .split(separator: "\n").count { line in
                    let columns = line.split(separator: " ")
                    return columns.count > 3 && columns[1].hasSuffix(local) && columns[3] == "01"
                }
        }

        /// Has each store of one device change what the other one sees.
        private func exchange(_ text: String, _ from: [Device], _ to: [Device]) async throws {
            for device in from { device.store.set(text, forKey: "text") }
            for device in to {
                try await until("\(text)") { device.store.string(forKey: "text") == text }
            }
        }

        @Test
        func `they share a connection, and each is told its own changes, also after restarts`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = try Self.open(await server.newHome("a", isFirst: true), 12)
                let b = try Self.open(await server.newHome("b"), 12)
                defer { for device in a + b { device.close() } }
                // Before pushes, whose connections are kept for a while.
                try await until("all streams") { (a + b).allSatisfy { $0.isConnected } }
                let port = server.port
                try await until("few connections") { try connections(to: port) <= 6 }
                #expect((a + b).allSatisfy { $0.isConnected })
                try await exchange("first", a, b)
                try await exchange("second", b, a)
                try await server.stop()
                for device in a { device.store.set("third", forKey: "text") }
                try await server.start()
                for device in b {
                    try await until("the third") {
                        device.store.string(forKey: "text") == "third"
                    }
                }
                try await exchange("fourth", b, a)
                a[0].close()
                try await exchange("fifth", Array(b.dropFirst()), Array(a.dropFirst()))
                try await server.stop()
            }
        }
    }
}
