// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    /// Many stores of one process.
    @Suite struct ManyStoresTests {
        private static let count = 12

        private func stores(_ home: String) throws -> [Device] {
            try (1...Self.count).map { number in
                try Device(home: home) { $0.identifier = "TEAM.example.notes\(number)" }
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
                let a = try stores(await server.newHome("a", isFirst: true))
                let b = try stores(await server.newHome("b"))
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
