// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// What a server does that has forgotten deletions: nothing deleted comes back, and nothing that an
/// author made and the server never had is lost.
@Suite struct `A server that has forgotten deletions` {
    let cloud = TestCloud()

    private func forgetDeletions() {
        var server = cloud.server
        server.forgetDeletions()
        cloud.replaceServer(by: server)
    }

    /// A deletion that is later than all that was written offline before.
    private func deleteSomething(_ key: String = "other", by device: TestDevice) {
        cloud.pass(milliseconds: 60_000)
        device[key] = .integer(0)
        cloud.settle()
        device[key] = nil
        cloud.settle()
        forgetDeletions()
    }

    @Test func `takes what was made offline and it never had, however old`() throws {
        let (first, tablet) = (cloud.device(), cloud.device())
        cloud.settle()
        tablet.goOffline()
        tablet["new"] = .integer(1)
        deleteSomething(by: first)
        tablet.goOnline()
        cloud.settle()
        #expect(cloud.server["new"] == .integer(1))
        #expect(first["new"] == .integer(1))
        #expect(tablet.disk.refused.isEmpty)
    }

    @Test func `gives what it took to devices that remember the deletion of another`() throws {
        let (first, tablet) = (cloud.device(), cloud.device())
        cloud.settle()
        tablet.goOffline()
        tablet["a"] = .integer(1)
        deleteSomething("a", by: first)
        tablet.goOnline()
        cloud.settle()
        for device in [first, tablet] { #expect(device["a"] == .integer(1)) }
        #expect(cloud.server["a"] == .integer(1))
    }

    @Test func `takes what was made before a first sign-in after a month`() throws {
        let first = cloud.device()
        cloud.settle()
        let newcomer = cloud.device()
        newcomer.goOffline()
        newcomer["new"] = .integer(1)
        deleteSomething(by: first)
        newcomer.goOnline()
        cloud.settle()
        #expect(cloud.server["new"] == .integer(1))
    }

    @Test func `refuses a change of what was deleted, and gives it back`() throws {
        let (first, tablet) = (cloud.device(), cloud.device())
        first["a"] = .integer(1)
        cloud.settle()
        tablet.goOffline()
        tablet["a"] = .integer(2)
        cloud.pass(milliseconds: 1_000)
        first["a"] = nil
        cloud.settle()
        forgetDeletions()
        tablet.goOnline()
        cloud.settle()
        #expect(cloud.server["a"] == nil)
        #expect(tablet["a"] == nil)
        #expect(tablet.disk.refused.map(\.record.content) == [.value(.integer(2))])
        #expect(tablet.disk.refused.map(\.refusal.code) == ["older-than-forgotten"])
        #expect(tablet.notices.allSatisfy { $0.reason != .quotaViolation })
    }

    @Test func `refuses a transaction as a whole, and gives all of it back`() throws {
        let (first, tablet) = (cloud.device(), cloud.device())
        try first.write(["a": .integer(1), "b": .integer(1)])
        cloud.settle()
        tablet.goOffline()
        try tablet.write(["a": .integer(2), "b": .integer(2), "c": .integer(2)])
        cloud.pass(milliseconds: 1_000)
        first["b"] = nil
        cloud.settle()
        forgetDeletions()
        tablet.goOnline()
        cloud.settle()
        #expect(cloud.server["a"] == .integer(1))
        #expect(cloud.server["b"] == nil)
        #expect(cloud.server["c"] == nil)
        #expect(first["a"] == .integer(1))
        #expect(Set(tablet.disk.refused.map(\.record.key.string)) == ["a", "b", "c"])
        for key in ["a", "b", "c"] { #expect(tablet[key] == cloud.server[key]) }
    }

    @Test func `refuses a repeat of what was deleted since`() throws {
        let (first, tablet) = (cloud.device(), cloud.device())
        cloud.settle()
        tablet.losesAnswers = true
        tablet.holdsStream = true
        tablet["a"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["a"] == .integer(1))
        tablet.goOffline()
        cloud.pass(milliseconds: 1_000)
        first["a"] = nil
        cloud.settle()
        forgetDeletions()
        tablet.losesAnswers = false
        tablet.holdsStream = false
        tablet.goOnline()
        cloud.settle()
        #expect(cloud.server["a"] == nil)
        #expect(tablet["a"] == nil)
        #expect(tablet.disk.refused.count == 1)
    }

    @Test func `what the author had stays known through later writes, whole pulls and restarts`()
        throws
    {
        let (first, tablet) = (cloud.device(), cloud.device())
        try first.write(["a": .integer(1), "b": .integer(1)])
        cloud.settle()
        tablet.goOffline()
        try tablet.write(["a": .integer(2), "b": .integer(2)])
        tablet["b"] = .integer(3)
        cloud.settle()
        let again = tablet.restarted()
        cloud.settle()
        let had = try ["a", "b"].map { again.engine.entries[try Key($0)]?.pending?.had }
        #expect(had.allSatisfy { $0 != nil && $0 == tablet.engine.meta.cursor })
    }

    @Test func `takes what its author had from a history that is gone`() throws {
        let (first, tablet) = (cloud.device(), cloud.device())
        first["x"] = .integer(1)
        cloud.settle()
        first["x"] = nil
        cloud.settle()
        var copy = cloud.server
        first["a"] = .integer(1)
        cloud.settle()
        tablet.goOffline()
        first.goOffline()
        tablet["a"] = .integer(2)
        copy.forgetDeletions()
        copy.setHorizon(tablet.engine.clock.latest)
        cloud.replaceServer(by: copy)
        cloud.restartServer()
        tablet.goOnline()
        cloud.settle()
        #expect(cloud.server["a"] == .integer(2))
    }

    @Test func `refuses what a client that does not say what it had may bring back`() throws {
        let write = Record(
            key: try Key("a"), content: .value(.integer(1)),
            stamp: Stamp(HybridTimestamp(milliseconds: 1_000), DeviceID(rawValue: 1)))
        let stored = PushAdmission.Stored(newestForgotten: HybridTimestamp(milliseconds: 2_000))
        let rule = PushAdmission(limits: StoreLimits(), now: 3_000)
        func results(_ tellsHad: Bool) throws -> [TransactionResult] {
            try rule.decide(Push([Transaction([write])], tellsHad: tellsHad), on: stored).results
        }
        #expect(try results(false) == [.refused(.olderThanForgotten)])
        #expect(try results(true) == [.committed([.applied])])
    }

    @Test func `has its devices drop the deletions that it has forgotten, and no others`() throws {
        let (first, second) = (cloud.device(), cloud.device())
        try first.write(["a": .integer(1), "b": .integer(1), "kept": .integer(1)])
        cloud.settle()
        first["a"] = nil
        cloud.settle()
        cloud.pass(milliseconds: 1_000)
        forgetDeletions()
        cloud.setHorizon(first.engine.clock.latest.next)
        cloud.pass(milliseconds: 1_000)
        first["b"] = nil
        cloud.settle()
        second.goOffline()
        second.goOnline()
        first.goOffline()
        first.goOnline()
        cloud.settle()
        for device in [first, second] {
            let entry = { (key: String) in device.engine.entries[try Key(key)] }
            #expect(try entry("a")?.confirmed == nil)
            #expect(try entry("b")?.confirmed?.content == .deleted)
            #expect(device["kept"] == .integer(1))
            #expect(device.disk.entries[try Key("a")]?.entry.confirmed == nil)
        }
    }

    @Test func `knows of so many authors, and takes those it does not know for the oldest`() {
        var accepted = AcceptedTimes()
        let max = AcceptedTimes.devicesMax
        for number in 1...UInt64(max + 2) {
            accepted.note(
                Stamp(HybridTimestamp(rawValue: number * 10), DeviceID(rawValue: number)))
        }
        #expect(accepted.times.count == max)
        #expect(accepted.floor == HybridTimestamp(rawValue: 20))
        #expect(accepted[DeviceID(rawValue: 1)] == HybridTimestamp(rawValue: 20))
        #expect(accepted[DeviceID(rawValue: 3)] == HybridTimestamp(rawValue: 30))
    }
}
