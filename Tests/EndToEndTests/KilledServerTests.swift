// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    @Suite struct KilledServerTests {
        @Test func `nothing acknowledged is lost when the server is killed among writes`()
            async throws
        {
            try await withTwoDevices(options: ServerProcess.manyPushes) { pair in
                let (server, a, b) = (pair.server, pair.a, pair.b)
                let (writesA, writesB) = (Writer(a, "a"), Writer(b, "b"))
                let writing = [Task { await writesA.run() }, Task { await writesB.run() }]
                defer { for task in writing { task.cancel() } }
                for round in 1...5 {
                    let acknowledged = writesA.acknowledgedCount + writesB.acknowledgedCount
                    try await until("writes in round \(round)") {
                        writesA.acknowledgedCount + writesB.acknowledgedCount > acknowledged + 10
                    }
                    try await server.kill()
                    try await Task.sleep(for: .milliseconds(30 * round))
                    try await server.start()
                    try await until("the return of both in round \(round)") {
                        a.isConnected && b.isConnected
                    }
                }
                for task in writing {
                    task.cancel()
                    await task.value
                }
                try await server.kill()
                try await server.start()
                try await agreement(a, b)
                writesA.check(b)
                writesB.check(a)
                let c = try Device(home: await server.signIn("c"))
                defer { c.close() }
                try await c.store.synchronizeNow()
                writesA.check(c)
                writesB.check(c)
            }
        }

        @Test func `a server that drains is not ready, and still takes writes`()
            async throws
        {
            try await onStage { stage in
                // Longer than any test: it is killed instead.
                let server = try await ServerProcess.started(
                    stage, options: ["--drain-seconds", "3600"])
                let device = try Device(home: await server.newHome("a", isFirst: true))
                defer { device.close() }
                try await until("readiness") {
                    try await RawAnswer.to("GET", server.url + "/health/ready").status == 200
                }
                server.signal(SIGTERM)
                try await until("the drain") {
                    try await RawAnswer.to("GET", server.url + "/health/ready").status == 503
                }
                device.store.set(Int64(1), forKey: "a")
                try await device.store.synchronizeNow()
                #expect(try await RawAnswer.to("GET", server.url + "/health/live").status == 200)
                try server.mustRun()
                try await server.kill()
            }
        }

        @Test func `what the server acknowledged just before it was killed is on its disk`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = try Device(home: await server.newHome("a", isFirst: true))
                let homeB = try await server.newHome("b")
                for number in Int64(1)...20 { a.store.set(number, forKey: "key \(number)") }
                try await a.store.synchronizeNow()
                try await server.kill()
                a.close()
                try await server.start()
                let b = try Device(home: homeB)
                defer { b.close() }
                // A connection of this process may still be one to the server that was killed.
                try await until("what was acknowledged") {
                    (try? await b.store.synchronizeNow()) != nil
                }
                for number in Int64(1)...20 { #expect(b.integer("key \(number)") == number) }
            }
        }
    }
}

/// Writes growing numbers under some keys of its own, and knows which of them the server has.
///
/// Shared state: what it wrote, guarded by a mutex: the test looks while it writes.
private final class Writer: Sendable {
    private struct Numbers {
        var written: [String: Int64] = [:]
        var acknowledged: [String: Int64] = [:]
        var acknowledgedCount = 0
    }

    private let device: Device
    private let name: String
    private let numbers = Mutex(Numbers())

    init(_ device: Device, _ name: String) {
        (self.device, self.name) = (device, name)
    }

    var acknowledgedCount: Int { numbers.withLock(\.acknowledgedCount) }

    /// Writes until it is cancelled.
    @concurrent func run() async {
        var number: Int64 = 0
        while !Task.isCancelled {
            number += 1
            let key = "\(name)\(number % 40)"
            device.store.set(number, forKey: key)
            numbers.withLock { $0.written[key] = number }
            do {
                try await device.store.synchronizeNow()
                numbers.withLock {
                    $0.acknowledged = $0.written
                    $0.acknowledgedCount += 1
                }
            } catch { try? await Task.sleep(for: .milliseconds(2)) }
        }
    }

    func check(_ other: Device) {
        let numbers = numbers.withLock(\.self)
        #expect(!numbers.acknowledged.isEmpty)
        for (key, number) in numbers.acknowledged {
            #expect(other.integer(key) ?? 0 >= number, "acknowledged: \(key) = \(number)")
        }
        for (key, number) in numbers.written { #expect(other.integer(key) == number) }
    }
}
