// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// Two copies of a device, or two processes of it, can give two transactions one timestamp.
@Suite struct `Of two transactions with one timestamp and one device` {
    private let now: Int64 = 1_800_000_000_000
    private var rule: PushAdmission { PushAdmission(limits: StoreLimits(), now: now) }

    private func transaction(
        _ values: [String: Int64], at offset: Int64 = 0, device: UInt64 = 7
    ) throws -> Transaction {
        let contents = try values.map { key, value in
            (key: try Key(key), content: Content.value(.integer(value)))
        }
        let stamp = Stamp(
            HybridTimestamp(milliseconds: now + offset), DeviceID(rawValue: device),
            digest: ValueFingerprint.digest(of: contents))
        return try Transaction(
            contents.map { Record(key: $0.key, content: $0.content, stamp: stamp) }
                .sorted { $0.key < $1.key })
    }

    /// The values of a store after these transactions, each in a push of its own.
    private func values(after transactions: [Transaction]) throws -> [String: PropertyListValue] {
        var stored = PushAdmission.Stored()
        for transaction in transactions {
            let decision = try rule.decide(Push([transaction]), on: stored)
            for write in decision.writes { stored.records[write.key] = write }
            (stored.state.usage, stored.state.newest) = (decision.usage, decision.newest)
        }
        return Dictionary(
            uniqueKeysWithValues: stored.records.map { ($0.key.string, $0.value.content.value!) })
    }

    @Test func `one wins under all keys, whichever came first`() throws {
        for round: Int64 in 0..<20 {
            let (a, b) = (
                try transaction(["a": round, "b": 9]), try transaction(["a": round + 1, "b": 3])
            )
            let result = try values(after: [a, b])
            #expect(try values(after: [b, a]) == result)
            #expect(try [values(after: [a]), values(after: [b])].contains(result))
        }
    }

    @Test func `a repeat of the loser changes nothing, whatever came between`() throws {
        for round: Int64 in 0..<20 {
            let a = try transaction(["a": 2 + round, "b": 1])
            let b = try transaction(["a": 1, "b": 2 + round])
            let later = try transaction(["a": 7], at: 5, device: 8)
            for pair in [[a, b], [b, a]] {
                let before = try values(after: pair + [later])
                #expect(try values(after: pair + [later, a]) == before)
                #expect(try values(after: pair + [later, b]) == before)
            }
        }
    }

    @Test func `the digest tells keys, contents and deletions apart, in any order`() throws {
        func digest(_ writes: [(String, Content)]) throws -> UInt64 {
            ValueFingerprint.digest(of: try writes.map { (key: try Key($0.0), content: $0.1) })
        }
        let one = Content.value(.integer(1))
        let all = try [
            digest([("a", one)]), digest([("b", one)]), digest([("a", .deleted)]),
            digest([("a", .value(.boolean(true)))]), digest([("a", one), ("b", one)]),
            digest([("a", one), ("b", .deleted)]), digest([("a", .deleted), ("b", one)]),
        ]
        #expect(Set(all).count == all.count)
        #expect(!all.contains(0))
        #expect(
            try digest([("b", .deleted), ("a", one)]) == digest([("a", one), ("b", .deleted)]))
    }

    @Test func `copies of a device that wrote in the same moment come to one of the two`() throws {
        let cloud = SteppedCloud()
        let device = cloud.device()
        device["x"] = .integer(0)
        cloud.settle()
        device.goOffline()
        let copy = cloud.device(as: device, on: device.disk.copy)
        copy.goOffline()
        try device.write(["a": .integer(1), "b": .integer(9)])
        try copy.write(["a": .integer(2), "b": .integer(3)])
        device.goOnline()
        copy.goOnline()
        cloud.settle()
        #expect(
            cloud.server["a"] == .integer(1) && cloud.server["b"] == .integer(9)
                || cloud.server["a"] == .integer(2) && cloud.server["b"] == .integer(3))
        for one in [device, copy] {
            #expect(one["a"] == cloud.server["a"] && one["b"] == cloud.server["b"])
            #expect(one.engine.status.pendingKeys.isEmpty)
        }
    }

    @Test func `a write that a server without digests gives back is agreed on`() throws {
        let record = try transaction(["a": 1]).writes[0]
        var entry = Entry()
        entry.pending = PendingWrite(record: record, transaction: 1)
        var given = record
        given.stamp.digest = 0
        entry.merge(given)
        #expect(entry.pending == nil)
    }
}
