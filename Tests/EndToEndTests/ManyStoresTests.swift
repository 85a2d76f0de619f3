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

        static func open(_ home: String) throws -> [Device] {
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
    }
}
