// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// What no push can carry.
@Suite struct LargeTransactionTests {
    private let cloud = SteppedCloud()

    /// Each counts 266 bytes in a push.
    private func batch(_ name: String, _ count: Int) -> [String: PropertyListValue?] {
        Dictionary(
            uniqueKeysWithValues: (0..<count).map { ("\(name)\($0)", PropertyListValue.integer(1)) }
        )
    }

    private func device() -> SteppedDevice {
        cloud.setLimits { $0.pushBytesMax = 2_000 }
        let device = cloud.device()
        cloud.settle()
        return device
    }

    private func contents(_ batch: [String: PropertyListValue?]) throws -> [Key: Content] {
        Dictionary(
            uniqueKeysWithValues: try batch.map { (try Key($0.key), $0.value.map(Content.value)!) })
    }

    @Test func `is refused when it is made, and nothing waits behind it`() throws {
        let a = device()
        #expect(throws: LimitViolation.pushBytes(bytes: 8 * 266, max: 2_000)) {
            try a.write(batch("k", 8))
        }
        cloud.settle()
        #expect(a.takeNotices().map(\.reason) == [.quotaViolation])
        try a.write(batch("k", 7))
        a["x"] = .integer(1)
        cloud.settle()
        #expect(cloud.server.records.count == 8)
        #expect(a.engine.status.pendingKeys.isEmpty)
    }

    @Test func `does not come about by joining`() throws {
        let a = device()
        a.goOffline()
        try a.write(batch("k", 7))
        try a.write(batch("j", 7))
        #expect(throws: LimitViolation.self) {
            try a.write(["k0": .data([UInt8](repeating: 7, count: 300))])
        }
        #expect(throws: LimitViolation.self) {
            try a.write(["k0": .integer(2), "j0": .integer(2)])
        }
        #expect(a["k0"] == .integer(1))
        try a.write(["k0": nil])
        try a.write(["j0": .integer(2)])
        a.goOnline()
        cloud.settle()
        #expect(a.engine.status.pendingKeys.isEmpty)
        #expect(cloud.server["k1"] == .integer(1))
        #expect(cloud.server["j0"] == .integer(2))
    }

    @Test func `does not come about between two processes`() throws {
        let a = device()
        let helper = a.helper()
        while helper.step() {}
        a.goOffline()
        try a.write(batch("k", 7))
        while a.step() {}
        cloud.pass(milliseconds: 5)
        var other = batch("j", 6)
        other["k0"] = .integer(2)
        try helper.write(other)
        while helper.step() {}
        a.goOnline()
        for _ in 0..<10 {
            cloud.settle()
            while helper.step() {}
        }
        #expect(a.engine.status.pendingKeys.isEmpty)
        #expect(cloud.server.records.count == 13)
        #expect(cloud.server["k0"] == .integer(2))
    }

    @Test func `is written in parts that can be sent, or not at all`() throws {
        let a = device()
        a.goOffline()
        let now = a.reading
        try a.engine.writeInParts(contents(batch("k", 20)), at: now)
        a.goOnline()
        cloud.settle()
        #expect(a.engine.status.pendingKeys.isEmpty)
        #expect(cloud.server.records.count == 20)
        cloud.setLimits { $0.keysMax = 30 }
        a.goOffline()
        a.goOnline()
        cloud.settle()
        let before = a.engine.values
        #expect(throws: LimitViolation.self) {
            try a.engine.writeInParts(contents(batch("j", 20)), at: now)
        }
        #expect(a.engine.values == before)
        #expect(a.engine.status.pendingKeys.isEmpty)
    }

    @Test func `is named where a limit was lowered, lets others pass, and goes when it is raised`()
        throws
    {
        let a = device()
        a.goOffline()
        try a.write(batch("k", 5))
        a["x"] = .integer(1)
        cloud.setLimits { $0.pushBytesMax = 1_000 }
        a.goOnline()
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
        let unsendable = try #require(a.engine.status.unsendable)
        #expect(
            unsendable.description
                == "\"k0\" and 4 more written with it, 1330 bytes, cannot be sent: the server takes "
                + "at most 1000 bytes at once; make the values smaller, or have that limit raised")
        cloud.setLimits { $0.pushBytesMax = 2_000 }
        a.goOffline()
        a.goOnline()
        cloud.settle()
        #expect(a.engine.status.unsendable == nil)
        #expect(a.engine.status.pendingKeys.isEmpty)
    }

    @Test func `that several writes have joined is split between them where a limit was lowered`()
        throws
    {
        let a = device()
        a.goOffline()
        try a.write(batch("k", 3))
        try a.write(batch("k", 1).merging(batch("j", 3)) { $1 })
        cloud.setLimits { $0.pushBytesMax = 1_100 }
        a.goOnline()
        cloud.settle()
        #expect(a.engine.status.unsendable == nil)
        #expect(a.engine.status.pendingKeys.isEmpty)
        #expect(cloud.server.records.count == 6)
    }

    @Test func `is named at the end of a round trip that has sent all others`() {
        let a = cloud.device()
        cloud.settle()
        a.goOffline()
        a["big"] = .data([UInt8](repeating: 7, count: 20_000))
        for number in 0..<3 { a["small\(number)"] = .integer(1) }
        cloud.settle()
        a.pushBytesTooLarge = 10_000
        a.goOnline()
        let request = a.requestSync()
        cloud.settle()
        #expect(a.finished[request]??.detail.contains("\"big\"") == true)
        #expect(a.finished[request]??.kind == .tooLarge)
        #expect(a.engine.status.pendingKeys.map(\.string) == ["big"])
        #expect(cloud.server["small2"] == .integer(1))
        #expect(a.engine.status.unsendable?.key.string == "big")
    }

    @Test func `holds back larger ones with it, and no round trip waits for them`() {
        let a = cloud.device()
        cloud.settle()
        a.goOffline()
        a["big"] = .data([UInt8](repeating: 7, count: 20_000))
        a["bigger"] = .data([UInt8](repeating: 7, count: 30_000))
        cloud.settle()
        a.pushBytesTooLarge = 10_000
        a.goOnline()
        for number in 0..<2 {
            a["small\(number)"] = .integer(1)
            let request = a.requestSync()
            cloud.settle()
            #expect(a.finished[request]??.kind == .tooLarge)
            #expect(a.engine.status.pendingKeys.map(\.string).sorted() == ["big", "bigger"])
        }
    }

    @Test func `of one key that is in two of them does not keep the key from being removed`() throws
    {
        let a = device()
        a.goOffline()
        try a.write(batch("k", 7))
        try a.write(batch("j", 7))
        try a.write(["k0": nil, "j0": nil])
        a.goOnline()
        cloud.settle()
        #expect(a.engine.status.pendingKeys.isEmpty)
        #expect(cloud.server.records.count { $0.value.content != .deleted } == 12)
    }

    @Test func `limits that let a value be stored and not sent contradict each other`() {
        var limits = StoreLimits()
        #expect(limits.contradiction == nil)
        limits.pushBytesMax = limits.valueBytesMax
        #expect(limits.contradiction?.contains("1048896") == true)
        limits.pushBytesMax = limits.valueBytesMax + 64 + 256
        #expect(limits.contradiction == nil)
        limits.key = .utf16Units(64)
        #expect(limits.contradiction != nil)
        limits.storeBytesMax = 1_000
        #expect(limits.contradiction == nil)
    }
}
