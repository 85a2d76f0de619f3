// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// A server that sends a device more than a store may have.
struct IntakeTests {
    private let cloud = SteppedCloud()
    private static let other = DeviceID(rawValue: 77)

    private func record(
        _ key: Key, _ value: PropertyListValue?, at milliseconds: Int64 = 0
    ) -> Record {
        Record(
            key: key, content: value.map(Content.value) ?? .deleted,
            stamp: Stamp(
                HybridTimestamp(milliseconds: cloud.now + milliseconds, counter: 0), Self.other))
    }

    private func changes(_ records: [Record], isWhole: Bool = false) -> ChangeSet {
        ChangeSet(
            records: records, cursor: Cursor("hostile")!, serverMilliseconds: cloud.serverNow,
            isWhole: isWhole)
    }

    private func device() -> SteppedDevice {
        let device = cloud.device()
        cloud.settle()
        return device
    }

    private func send(_ changes: ChangeSet, to device: SteppedDevice) {
        device.receive(.streamReceived(device.engine.counts.streams, .changes(changes)))
    }

    private static let large = PropertyListValue.data(Array(repeating: 0, count: 1 << 20))

    @Test func `a device takes four times what the store may have, and then ends the stream`()
        throws
    {
        let device = device()
        for number in 0..<8 {
            send(changes([record(try Key("\(number)"), Self.large)]), to: device)
            if number < 4 { #expect(device.engine.meta.link.lastError == nil) }
        }
        #expect(device.engine.usage.bytes == 4 << 20)
        #expect(device.engine.meta.cursor != nil && !device.engine.isLive)
        let error = try #require(device.engine.meta.link.lastError)
        #expect(error.contains("the server sent more than a store may have"), "\(error)")
        #expect(error.contains("5242880"), "\(error)")
        // The device connects again, and smaller values are accepted.
        cloud.pass(milliseconds: 61_000)
        cloud.settle()
        #expect(device.engine.isLive && device.engine.meta.link.lastError == nil)
    }

    @Test func `a device takes no sealed value, whose key it does not have, and ends the stream`()
        throws
    {
        let device = device()
        let box = SealedBox(generation: 1, bytes: [UInt8](repeating: 1, count: 49))
        send(changes([record(try Key("a"), .sealed(box))]), to: device)
        let error = try #require(device.engine.meta.link.lastError)
        #expect(error.contains("the server sent a sealed value of a clear store"), "\(error)")
        #expect(device.engine[try Key("a")] == nil && !device.engine.isLive)
    }

    @Test func `keys and parts have their bounds as bytes do`() throws {
        let device = device()
        let keys = try (0...4_096).map { record(try Key("\($0)"), .boolean(true)) }
        send(changes(keys), to: device)
        #expect(device.engine.usage == Usage())
        #expect(device.engine.meta.link.lastError?.contains("4096") == true)
        cloud.pass(milliseconds: 61_000)
        cloud.settle()
        let parts = try (0...65_536).map {
            record(try Key("a").part(PartID("r\($0)")!), .boolean(true))
        }
        send(changes(parts, isWhole: true), to: device)
        #expect(device.engine.usage == Usage())
        #expect(device.engine.meta.link.lastError?.contains("65536") == true)
    }

    @Test func `what waits here does not hide what the server has sent`() throws {
        let device = device()
        for number in 0..<8 { device["\(number)"] = .integer(1) }
        device.goOffline()
        cloud.settle()
        device.losesAnswers = true
        device.goOnline()
        cloud.settle()
        for number in 0..<8 {
            send(changes([record(try Key("\(number)"), Self.large, at: -60_000)]), to: device)
        }
        #expect(device.engine.entries.agreed.bytes <= 4 << 20)
        #expect(device.engine.meta.link.lastError?.contains("more than a store may have") == true)
    }

    @Test
    func `limits that are lowered do not keep a device out, and a store that is over may shrink`()
        throws
    {
        cloud.setLimits { $0.storeBytesMax = 8 << 20 }
        let device = device()
        let half = PropertyListValue.data(Array(repeating: 0, count: 4 << 20))
        send(changes([record(try Key("a"), half), record(try Key("b"), half)]), to: device)
        cloud.setLimits { $0.storeBytesMax = 1_000 }
        device.cut()
        cloud.pass(milliseconds: 61_000)
        cloud.settle()
        #expect(device.engine.isLive && device.engine.intake.usageMax.bytes == 4 << 20)
        let smaller = PropertyListValue.data(Array(repeating: 0, count: 3 << 20))
        send(changes([record(try Key("a"), smaller, at: 1)]), to: device)
        #expect(device["a"] == smaller)
        send(changes([record(try Key("c"), .string("x"), at: 1)]), to: device)
        #expect(device["c"] == nil && !device.engine.isLive)
    }

    @Test func `no server makes a device accept unlimited limits`() throws {
        let device = cloud.device()
        cloud.setLimits {
            $0.storeBytesMax = .max
            $0.keysMax = .max
            $0.valueBytesMax = .max
            $0.pushBytesMax = .max
            $0.key = .utf8Bytes(.max)
        }
        cloud.settle()
        #expect(device.engine.meta.limits.storeBytesMax == 64 << 20)
        #expect(device.engine.meta.limits.key == .utf8Bytes(1_024))
        #expect(device.engine.intake == IntakeLimits(nil))
        #expect(device.engine.intake.usageMax.bytes == 64 << 20)
        // A file from an earlier version cannot raise the limits either.
        let meta = device.engine.meta
        var old = meta
        old.limits.storeBytesMax = .max
        let again = SyncEngine(disk: DiskChanges(meta: old), seed: 1, at: device.reading)
        #expect(again.meta.limits == meta.limits)
    }

    @Test func `an answer to a push brings only what was written`() throws {
        let device = device()
        (device.holdsAnswers, device.holdsStream) = (true, true)
        let keys = try (0..<8).map { try Key("\($0)") }
        for (number, key) in keys.enumerated() {
            device[key.string] = .integer(1)
            cloud.settle()
            let push = try #require(device.engine.pushInFlight)
            let results = push.push.transactions.flatMap(\.writes).map {
                WriteResult.superseded(by: record($0.key, Self.large, at: 1_000))
            }
            let answer = PushAnswer(
                cursor: Cursor("c\(number)")!, serverMilliseconds: cloud.serverNow,
                results: results.map { .committed([$0]) })
            device.receive(.pushAnswered(push.number, answer))
            if device.engine.meta.link.lastError != nil { break }
        }
        #expect(device.engine.outbox.acknowledged.count == 4)
        #expect(device.engine.meta.link.lastError?.contains("more than a store may have") == true)
    }

    @Test func `an answer with another key's record does not fit`() throws {
        let device = device()
        device.holdsAnswers = true
        device["a"] = .integer(1)
        cloud.settle()
        let push = try #require(device.engine.pushInFlight)
        for results in [[WriteResult.superseded(by: record(try Key("b"), .integer(2)))], []] {
            device.receive(
                .pushAnswered(
                    push.number,
                    PushAnswer(
                        cursor: Cursor("c")!, serverMilliseconds: cloud.serverNow,
                        results: [.committed(results)])))
            #expect(device.engine.outbox.acknowledged.isEmpty)
            #expect(
                device.engine.meta.link.lastError == "the server's answer does not match the push")
        }
        #expect(device["a"] == .integer(1))
    }

    @Test func `of tombstones without end the newest are kept`() throws {
        let device = device()
        for round in 0..<10 {
            let deletions = try (0..<10_000).map {
                record(try Key("\(round).\($0)"), nil, at: Int64(round))
            }
            send(changes(deletions), to: device)
            #expect(device.engine.entries.tombstones <= 65_536)
        }
        cloud.settle()
        #expect(device.engine.entries[try Key("9.0")]?.confirmed != nil)
        #expect(device.engine.entries[try Key("0.0")]?.confirmed == nil)
        #expect(device.engine.entries.count <= 2 * 65_536)
        #expect(device.engine.meta.link.lastError == nil)
    }

    @Test func `a server's sentence is kept as far as a person reads it`() {
        let long = String(repeating: "e\u{301}", count: 1 << 20)
        #expect(LinkFailure(.refused, long).detail.unicodeScalars.count == 1_001)
        let refusal = Refusal(code: long, detail: long)
        #expect(refusal.code.unicodeScalars.count == 65)
        #expect(refusal.detail.unicodeScalars.count == 1_001)
        #expect(LinkFailure(.refused, "short").detail == "short")
    }

    @Test func `what is agreed adds up`() throws {
        let device = device()
        send(
            changes([record(try Key("a"), .integer(1)), record(try Key("b"), .string("xy"))]),
            to: device)
        device["a"] = .string("mine")
        send(changes([record(try Key("b"), nil, at: 1)]), to: device)
        #expect(device.engine.entries.agreed == Usage(bytes: 8, keys: 1))
        #expect(device.engine.entries.tombstones == 1)
        let restarted = device.restarted()
        #expect(
            restarted.engine.entries.agreed == device.engine.entries.agreed
                || !device.engine.isSaved)
    }
}
