// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import TortureLanguage
internal import Ubiquity
internal import UbiquityCore
internal import UbiquityTestWorker

/// Processes that end, that are not alone, and that must not wait.
extension EndToEndTests.ContractTests {
    /// Vector 15.
    @Test func `synchronize returns within milliseconds with a server that never answers`()
        async throws
    {
        try await onStage { stage in
            let server = try await ServerProcess.started(stage)
            let home = try await server.newHome("a", isFirst: true)
            try await server.stop()
            let silent = try await StubServer(port: server.port) { _ in nil }
            defer { withExtendedLifetime(silent) {} }
            let a = try Device(home: home)
            defer { a.close() }
            try await until("the attempt") { a.store.status.connection == .connecting }
            var delays = Delays()
            for number in Int64(1)...50 {
                a.store.set(number, forKey: "number")
                let start = MonotonicTime.now
                #expect(a.store.synchronize())
                delays.add(from: start, to: MonotonicTime.now)
            }
            #expect(delays.median < 50, "\(delays)")
            // The device may have given up the first attempt by now, and wait for the next one.
            #expect([.connecting, .waiting].contains(a.store.status.connection))
            #expect(a.store.status.pendingKeys == ["number"])
        }
    }

    /// Vector 17.
    @Test func `what synchronize returned true for is there after kill -9, and is sent later`()
        async throws
    {
        try await onStage { stage in
            let server = try await ServerProcess.started(stage)
            let home = try await server.newHome("a", isFirst: true)
            let b = try Device(home: await server.newHome("b"))
            defer { b.close() }
            try await server.stop()
            var expected: [String: String] = [:]
            for round in 1...5 {
                let app = try await WorkerProcess.ready(stage, home: home)
                #expect(try await app.values() == expected)
                try app.send("set key-\(round) value")
                try app.send("synchronize")
                try await until("the answer of round \(round)") {
                    try app.messages().contains(.synchronized(true))
                }
                try await app.kill()
                expected["key-\(round)"] = "value"
            }
            let a = try Device(home: home)
            defer { a.close() }
            #expect(a.texts == expected)
            try await server.start()
            try await agreement(a, b) { $0.count == expected.count }
        }
    }

    /// Vector 18. Nobody is signed in: no server has a hand in it.
    @Test func `of two processes with one store, the other is told`() async throws {
        try await onStage { stage in
            let app = try Device(home: stage.path("home"))
            defer { app.close() }
            let helper = try await WorkerProcess.ready(stage, home: app.home)
            let observer = Observer(app.store)
            _ = try await helper.set("from the helper", forKey: "a")
            try await until("the news") { !observer.all.isEmpty }
            app.store.set("from the app", forKey: "b")
            _ = try await helper.arrival(of: "from the app", forKey: "b")
            _ = try await helper.ask("remove a")
            try await until("the removal") { observer.all.count == 2 }
            #expect(
                observer.all == [
                    .init(0, ["a"], ["a": .string("from the helper")]), .init(0, ["a"], [:]),
                ])
            let notices = try helper.notices()
            #expect(notices.map(\.keys) == [["b"]])
            #expect(notices.map(\.reason) == [NSUbiquitousKeyValueStoreServerChange])
            try await helper.end()
        }
    }
}
