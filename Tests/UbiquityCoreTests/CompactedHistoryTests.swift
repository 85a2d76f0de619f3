// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// Tests that nothing deleted comes back, and that nothing is lost that the server never had.
@Suite struct `A server that has compacted tombstones` {
    let cloud = SteppedCloud()

    private func compactTombstones() {
        var server = cloud.server
        server.compactTombstones()
        cloud.replaceServer(by: server)
    }

    /// A deletion that is later than all that was written offline before.
    private func deleteSomething(_ key: String = "other", by device: SteppedDevice) {
        cloud.pass(milliseconds: 60_000)
        device[key] = .integer(0)
        cloud.settle()
        device[key] = nil
        cloud.settle()
        compactTombstones()
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
        compactTombstones()
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
        compactTombstones()
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
        compactTombstones()
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
        for key in ["a", "b"] {
            let had = again.engine.entries[try Key(key)]?.pending?.had
            #expect(had == first.engine.entries[try Key(key)]?.confirmed?.stamp.withoutDigest)
        }
    }

    /// The tablet writes over what it has sent without hearing so, and somebody deletes that.
    private func writeOverUnanswered(
        _ first: SteppedDevice, _ tablet: SteppedDevice, restarts: Bool
    ) -> SteppedDevice {
        cloud.settle()
        (tablet.losesAnswers, tablet.holdsStream) = (true, true)
        tablet["a"] = .integer(1)
        cloud.settle()
        #expect(first["a"] == .integer(1))
        tablet.goOffline()
        let author = restarts ? tablet.restarted() : tablet
        author.goOffline()
        author["a"] = .integer(2)
        while author.step() {}
        cloud.pass(milliseconds: 1_000)
        first["a"] = nil
        while first.step() {}
        compactTombstones()
        (author.losesAnswers, author.holdsStream) = (false, false)
        author.goOnline()
        while author.step() || first.step() {}
        return author
    }

    @Test(arguments: [false, true])
    func `refuses a change of what its author sent without hearing of it, and was deleted since`(
        restarts: Bool
    ) {
        let (first, tablet) = (cloud.device(), cloud.device())
        let author = writeOverUnanswered(first, tablet, restarts: restarts)
        #expect(cloud.server["a"] == nil)
        #expect(author["a"] == nil)
        #expect(author.disk.refused.map(\.record.content) == [.value(.integer(2))])
    }

    @Test func `refuses a change of what another process may have sent, too`() throws {
        let key = try Key("a")
        func write(_ value: Int64, at time: Int64) -> PendingWrite {
            let stamp = Stamp(HybridTimestamp(milliseconds: time), DeviceID(rawValue: 1), digest: 3)
            return PendingWrite(
                record: Record(key: key, content: .value(.integer(value)), stamp: stamp),
                transaction: 7)
        }
        var base = write(1, at: 5)
        base.provisional = ProvisionalStamp(
            madeAt: ClockReading(wall: 5, uptime: 5, boot: 1), seen: .zero)
        var entry = Entry()
        entry.pending = write(2, at: 9)
        let sent = write(1, at: 6)
        entry.rebase(
            onto: StoredEntry(key: key, pending: sent), base: base, keepConfirmed: false,
            isEarlier: { $0.record.stamp < $1.record.stamp })
        #expect(entry.pending?.record == write(2, at: 9).record)
        #expect(entry.pending?.had == sent.record.stamp.withoutDigest)
    }

    @Test func `takes a change of what its author wrote and never sent`() {
        let (first, tablet) = (cloud.device(), cloud.device())
        first["b"] = .integer(0)
        cloud.settle()
        tablet.goOffline()
        tablet["a"] = .integer(1)
        while tablet.step() {}
        let author = tablet.restarted()
        author.goOffline()
        author["b"] = .integer(1)
        author["a"] = .integer(2)
        while author.step() {}
        cloud.pass(milliseconds: 1_000)
        deleteSomething(by: first)
        author.goOnline()
        while author.step() || first.step() {}
        #expect(first["a"] == .integer(2))
        #expect(first["b"] == .integer(1))
        #expect(author.disk.refused.isEmpty)
    }

    @Test func `refuses a change of what was deleted after it was restored`() {
        let (first, tablet) = (cloud.device(), cloud.device())
        first["a"] = .integer(1)
        cloud.settle()
        let copy = cloud.server
        first["b"] = .integer(1)
        cloud.settle()
        tablet.goOffline()
        tablet["a"] = .integer(2)
        cloud.replaceServer(by: copy)
        cloud.restartServer()
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        first["a"] = nil
        cloud.settle()
        compactTombstones()
        tablet.goOnline()
        cloud.settle()
        #expect(cloud.server["a"] == nil)
        #expect(tablet["a"] == nil)
        #expect(tablet["b"] == .integer(1))
        #expect(tablet.disk.refused.map(\.record.content) == [.value(.integer(2))])
    }

    @Test func `takes what was made offline in small pushes where transactions overlap`() throws {
        let (first, tablet) = (cloud.device(), cloud.device())
        cloud.settle()
        tablet.goOffline()
        let kilobyte = PropertyListValue.data([UInt8](repeating: 7, count: 1_000))
        try tablet.write(["a": kilobyte, "b": kilobyte])
        cloud.pass(milliseconds: 10)
        tablet["between"] = kilobyte
        tablet["again"] = kilobyte
        cloud.pass(milliseconds: 10)
        tablet["b"] = .integer(2)
        tablet["again"] = .integer(2)
        tablet["after"] = kilobyte
        deleteSomething(by: first)
        tablet.engine.outbox.bytesMax = 2_048
        tablet.goOnline()
        cloud.settle()
        #expect(tablet.disk.refused.isEmpty)
        for key in ["a", "between", "after"] { #expect(cloud.server[key] == kilobyte) }
        #expect(cloud.server["again"] == .integer(2))
        #expect(tablet.pushes.count == 2)
    }

    @Test func `takes what was made offline of what overlaps without end, in pushes of some size`()
    {
        let tablet = cloud.device()
        cloud.settle()
        tablet.goOffline()
        let kilobyte = PropertyListValue.data([UInt8](repeating: 7, count: 1_000))
        tablet["again"] = .integer(0)
        for number in 0..<64 {
            cloud.pass(milliseconds: 10)
            while tablet.step() {}
            tablet["again"] = .integer(Int64(number))
            tablet["k\(number)"] = kilobyte
        }
        tablet.engine.outbox.bytesMax = 2_048
        tablet.goOnline()
        cloud.settle()
        #expect(cloud.server.records.count == 65)
        #expect(tablet.pushes.allSatisfy { $0.bytes <= 65_536 / 2 })
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
        copy.compactTombstones()
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
        var stored = PushAdmission.Stored()
        stored.state.newestCompacted = HybridTimestamp(milliseconds: 2_000)
        let rule = PushAdmission(limits: StoreLimits(), now: 3_000)
        func results(_ tellsHad: Bool) throws -> [TransactionResult] {
            try rule.decide(Push([Transaction([write])], tellsHad: tellsHad), on: stored).results
        }
        #expect(try results(false) == [.refused(.olderThanCompacted)])
        #expect(try results(true) == [.committed([.applied])])
    }

    @Test func `has its devices drop the deletions that it has forgotten, and no others`() throws {
        let (first, second) = (cloud.device(), cloud.device())
        // One has a stream, and one polls.
        second.streamFailure = LinkFailure(.tooManyStreams(retryAfterMilliseconds: 30_000), "full")
        try first.write(["a": .integer(1), "b": .integer(1), "kept": .integer(1)])
        cloud.settle()
        first["a"] = nil
        cloud.settle()
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        compactTombstones()
        cloud.setHorizon(first.engine.clock.latest.next)
        cloud.pass(milliseconds: 1_000)
        first["b"] = nil
        cloud.settle()
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        for device in [first, second] {
            let entry = { (key: String) in device.engine.entries[try Key(key)] }
            #expect(try entry("a")?.confirmed == nil)
            #expect(try entry("b")?.confirmed?.content == .deleted)
            #expect(device["kept"] == .integer(1))
            #expect(device.disk.entries[try Key("a")]?.entry.confirmed == nil)
        }
    }

    @Test func `knows a limited number of authors, and takes unknown ones for the oldest`() {
        var accepted = VersionVector()
        let max = VersionVector.devicesMax
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
