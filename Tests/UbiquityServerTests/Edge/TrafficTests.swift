// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import Ubiquity
internal import UbiquityCore

/// The traffic between a device and the server.
@Suite(.serialized) struct TrafficTests {
    /// Even with the overhead of TCP and TLS, a change fits one packet each way.
    private static let bytesMax = 600

    @Test(.timeLimit(.minutes(15)))
    func `a small change costs at most 600 bytes with its answer and event`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let relay = try await CountingRelay(to: server.port)
            let id = try #require(DeviceID(device.id))
            let transport = HTTPTransport(
                server: relay.url, store: try StoreIdentifier("TEAMID.com.example.app"),
                credential: device.credential, device: id)
            let (messages, heard) = AsyncStream.makeStream(of: StreamMessage.self)
            let listening = Task {
                try await transport.listen(since: nil, within: IntakeLimits(nil)) {
                    heard.yield($0)
                }
            }
            var events = messages.filter { $0 != .progress }.makeAsyncIterator()
            for _ in ["changes", "ready"] { _ = await events.next() }
            // The first round opens the connection that the second one uses.
            var had: Stamp?
            for round in 1...2 {
                _ = relay.take()
                let write = try Self.write(round, by: id)
                let replaced = had.map { [write.key: $0] } ?? [:]
                _ = try await transport.push(
                    Push([Transaction([write], had: replaced)]), within: IntakeLimits(nil))
                _ = await events.next()
                had = write.stamp
            }
            let said = relay.take()
            #expect(said.count <= Self.bytesMax, "\(said.byClient)\n\(said.byServer)")
            listening.cancel()
            relay.close()
        }
    }

    private static func write(_ round: Int, by device: DeviceID) throws -> Record {
        let timestamp = HybridTimestamp(milliseconds: nowMilliseconds() + Int64(round), counter: 0)
        return Record(
            key: try Key("high-score"), content: .value(.integer(Int64(1_000 + round))),
            stamp: Stamp(timestamp, device, digest: .max - UInt64(round)))
    }
}
