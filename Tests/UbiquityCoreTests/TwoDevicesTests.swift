// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `Two devices of one account` {
    let cloud = SteppedCloud()

    @Test func `what one writes the other has, and is told of once`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        try a.write(["x": .integer(1), "y": .string("é")])
        cloud.settle()
        #expect(b["x"] == .integer(1))
        #expect(b["y"] == .string("é"))
        #expect(b.takeNotices() == [Notice(.serverChange, [try Key("x"), try Key("y")])])
        #expect(a.takeNotices() == [])
    }

    @Test func `what was written offline arrives, and deletions too`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        a["x"] = .integer(1)
        a["y"] = .integer(2)
        cloud.settle()
        a.goOffline()
        a["x"] = nil
        a["y"] = .integer(3)
        cloud.settle()
        #expect(b["x"] == .integer(1))
        a.goOnline()
        cloud.settle()
        #expect(b["x"] == nil)
        #expect(b["y"] == .integer(3))
        #expect(b.takeNotices().last?.keys == [try Key("x"), try Key("y")])
    }

    @Test func `agree on a write, or on a later one of its key, while the app writes on`() throws {
        let device = cloud.device()
        cloud.settle()
        device["x"] = .integer(1)
        let first = device.engine.waitingWrites
        #expect(first.count == 1)
        device["x"] = .integer(2)
        #expect(!device.engine.hasConfirmed(first, at: device.reading))
        cloud.settle()
        device["x"] = .integer(3)
        #expect(device.engine.waitingWrites.count == 1)
        #expect(device.engine.hasConfirmed(first, at: device.reading))
        // One that was made before the clock's error is known has no final timestamp yet.
        let fresh = cloud.device(clockError: -3_600_000, policy: .timestamps)
        fresh.isOnline = false
        fresh["y"] = .integer(1)
        let early = fresh.engine.waitingWrites
        fresh["y"] = .integer(2)
        while fresh.step() {}
        #expect(!fresh.engine.hasConfirmed(early, at: fresh.reading))
        fresh.goOnline()
        cloud.settle()
        fresh["y"] = .integer(3)
        #expect(fresh.engine.hasConfirmed(early, at: fresh.reading))
        // A later write waits: the earlier one was not agreed on before it.
        fresh.goOffline()
        let late = fresh.engine.waitingWrites
        fresh["y"] = .integer(4)
        while fresh.step() {}
        #expect(!fresh.engine.hasConfirmed(late, at: fresh.reading))
    }

    /// Vector 5 of the contract, its second half.
    @Test func `a write of the value that is there and the removal of an absent key cause no push`()
    {
        let a = cloud.device()
        a["x"] = .integer(1)
        cloud.settle()
        let pushes = cloud.server.pushes
        a["x"] = .integer(1)
        a["nothing"] = nil
        cloud.settle()
        #expect(cloud.server.pushes == pushes)
        #expect(a.engine.isSaved)
    }

    @Test func `a hundred writes at once are one save and one push`() {
        let a = cloud.device()
        cloud.settle()
        let (version, pushes) = (a.disk.version, cloud.server.pushes)
        for number in 0..<100 { a["x"] = .integer(Int64(number)) }
        cloud.settle()
        #expect(cloud.server.pushes == pushes + 1)
        // One for the writes, one for the answer, one for the echo's cursor.
        #expect(a.disk.version <= version + 3)
    }

    @Test func `a push whose answer was lost is sent again and changes nothing`() {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        a.losesAnswers = true
        a["x"] = .integer(1)
        cloud.settle()
        b["x"] = .integer(2)
        cloud.settle()
        a.losesAnswers = false
        cloud.pass(milliseconds: 60_000)
        cloud.settle()
        #expect(a["x"] == .integer(2))
        #expect(b["x"] == .integer(2))
        #expect(a.engine.status.pendingKeys.isEmpty)
    }

    @Test func `level 13 against level 1 ends at 13 on both, as the guides tell it`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        b.goOffline()
        a["level"] = .integer(13)
        cloud.settle()
        cloud.pass(milliseconds: 3_600_000)
        b["level"] = .integer(1)
        b.goOnline()
        cloud.settle()
        #expect(a["level"] == .integer(1))
        #expect(a.takeNotices() == [Notice(.serverChange, [try Key("level")])])
        a["level"] = .integer(13)
        cloud.settle()
        #expect(a["level"] == .integer(13))
        #expect(b["level"] == .integer(13))
    }

    @Test func `a part of a batch is never seen without the rest, also where it was overwritten`()
        throws
    {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        a.goOffline()
        try a.write(["x": .integer(1), "y": .integer(1)])
        a["x"] = .integer(2)
        a.goOnline()
        cloud.settle()
        #expect(b.takeNotices().map(\.keys) == [[try Key("x"), try Key("y")]])
        #expect(b["x"] == .integer(2))
        #expect(b["y"] == .integer(1))
    }

    @Test func `two that overflow the store only together: the second is put back, told, and kept`()
        throws
    {
        let (a, b) = (cloud.device(), cloud.device())
        a["old"] = .integer(1)
        cloud.settle()
        b.goOffline()
        a["a"] = .data([UInt8](repeating: 1, count: 600_000))
        cloud.settle()
        try b.write(["b": .data([UInt8](repeating: 2, count: 600_000)), "old": .integer(2)])
        b.goOnline()
        cloud.settle()
        #expect(b["b"] == nil)
        #expect(b["old"] == .integer(1))
        #expect(b["a"] != nil)
        #expect(b.takeNotices().contains(Notice(.quotaViolation, [try Key("b"), try Key("old")])))
        #expect(b.disk.refused.count == 2)
        #expect(a["b"] == nil)
        #expect(cloud.server["b"] == nil)
    }
}
