// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    /// The numbered promises from the sixth on, each under its sentence; the first five need no
    /// server, and are with the tests of the library.
    @Suite struct ContractTests {
        /// Devices of one account that have completed their first sync, and are connected.
        struct Pair {
            var stage: Stage
            var server: ServerProcess
            var a: Device
            var b: Device
        }

        /// - Parameter options: The server's.
        func withTwoDevices(
            options: [String] = [], _ body: (inout Pair) async throws -> Void
        ) async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage, options: options)
                let a = try Device(home: await server.newHome("a", isFirst: true))
                let b = try Device(home: await server.newHome("b"))
                defer {
                    a.close()
                    b.close()
                }
                for device in [a, b] { try await device.store.synchronizeNow() }
                var pair = Pair(stage: stage, server: server, a: a, b: b)
                try await body(&pair)
            }
        }

        /// All that an app was told, once what is under way has come to its end.
        func posted(_ observer: Observer, by peer: Device) async throws -> [Observer.Posted] {
            peer.store.set(UUID().uuidString, forKey: Self.lastKey)
            try await until("the last of the news") { observer.all.last?.keys == [Self.lastKey] }
            return observer.all.dropLast()
        }

        private static let lastKey = "last"
    }
}
