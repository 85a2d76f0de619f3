// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    @Suite struct WithoutAStreamTests {
        @Test
        func `a device beyond the account's streams sends, receives others' writes, and says so`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(
                    stage, options: ["--streams-max", "1"])
                let a = try Device(home: await server.newHome("a", isFirst: true))
                defer { a.close() }
                try await until("the stream") { a.isConnected }
                let b = try Device(home: await server.newHome("b"))
                defer { b.close() }
                b.store.set("from b", forKey: "b")
                try await until("b's value at a") { a.store.string(forKey: "b") == "from b" }
                try await until("b's status") { b.store.status.connection == .polling }
                #expect(b.store.status.lastError?.contains("streams") == true)
                a.store.set("from a", forKey: "a")
                try await until("a's value at the server") { a.isSettled }
                try await b.store.synchronizeNow()
                #expect(b.store.string(forKey: "a") == "from a")
                let json = try await stage.succeed(
                    "status", "--home", b.home, "--store", Device.identifier, "--json")
                #expect(json.contains("\"polling\""))
                try await server.stop()
            }
        }

        /// Polls begin when a stream has been silent for ten seconds.
        @Test
        func `a device behind a proxy that holds back streams sends, and receives others' writes`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = try Device(home: await server.newHome("a", isFirst: true))
                defer { a.close() }
                let proxy = try await NarrowProxy(to: server.port, keepsStreams: true)
                let b = try Device(home: await server.newHome("b", through: proxy.url))
                defer { b.close() }
                a.store.set("from a", forKey: "a")
                b.store.set("from b", forKey: "b")
                try await b.store.synchronizeNow()
                #expect(b.store.status.connection == .polling)
                try await until("the agreement") {
                    a.store.string(forKey: "b") == "from b"
                        && b.store.string(forKey: "a") == "from a"
                }
                try await proxy.close()
                try await server.stop()
            }
        }

        private static let slow = 30_000

        private func setMegabyte(_ device: Device) {
            for number in 0..<4 {
                device.store.set(
                    Data(repeating: UInt8(number), count: 256 << 10), forKey: "\(number)")
            }
            #expect(device.store.synchronize())
        }

        /// A megabyte takes longer than the half minute that a connection may be silent.
        @Test func `a first sync that sends a megabyte ends on a slow line`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = try Device(home: await server.newHome("a", isFirst: true))
                defer { a.close() }
                let proxy = try await NarrowProxy(
                    to: server.port, bytesPerSecond: (up: Self.slow, down: nil))
                let b = try Device(home: stage.path("home-b"))
                defer { b.close() }
                setMegabyte(b)
                _ = try await server.newHome("b", through: proxy.url)
                try await until("the end of b's first sync") { b.isSettled }
                try await until("the values at a") { a.store.values.count == 4 }
                try await proxy.close()
                try await server.stop()
            }
        }

        @Test func `a first sync that receives a megabyte ends on a slow line`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = try Device(home: await server.newHome("a", isFirst: true))
                defer { a.close() }
                setMegabyte(a)
                try await a.store.synchronizeNow()
                let proxy = try await NarrowProxy(
                    to: server.port, bytesPerSecond: (up: nil, down: Self.slow))
                let b = try Device(home: await server.newHome("b", through: proxy.url))
                defer { b.close() }
                try await b.store.initialSync()
                #expect(b.store.values == a.store.values)
                try await proxy.close()
                try await server.stop()
            }
        }
    }
}
