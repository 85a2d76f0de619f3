// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// A counter has few parts on devices, however many runs have counted; nothing of it is lost or counted
/// twice, and what was removed stays so.
@Suite struct `Counters whose runs the server folds` {
    let cloud = SteppedCloud()
    let key = try! Key("k")

    /// Everything is folded at once.
    init() { cloud.setPartsMax(0) }

    private func expect(
        _ value: PropertyListValue?, on devices: SteppedDevice...,
        at location: SourceLocation = #_sourceLocation
    ) {
        cloud.settle()
        for device in devices + [cloud.device()] {
            cloud.settle()
            #expect(device[key] == value, sourceLocation: location)
            #expect(device.engine.waitingWrites.isEmpty, sourceLocation: location)
        }
    }

    /// Parts of the key that the server lists, by their names.
    private var listed: [String: PropertyListValue] {
        cloud.server.records.values.reduce(into: [:]) { parts, record in
            if let part = record.key.part { parts["\(part)"] = record.content.value }
        }
    }

    /// A device whose run has counted 3 as its own part and which is offline, and another. From now on the
    /// server folds everything.
    private func oneOffline() throws -> (SteppedDevice, SteppedDevice) {
        cloud.setPartsMax(60)
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        a.goOffline()
        cloud.setPartsMax(0)
        return (a, b)
    }

    // MARK: - What comes late

    @Test func `what is counted and folded by one push is counted once`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        expect(.integer(3), on: a, b)
        try a.count(key, by: 4)
        try b.count(key, by: 5)
        expect(.integer(12), on: a, b)
        #expect(Set(listed.keys) == ["c+"])
    }

    @Test func `what a run counts offline, and its part is folded, is added once`() throws {
        let (a, b) = try oneOffline()
        try a.count(key, by: 4)
        try b.count(key, by: 10)
        cloud.settle()
        #expect(b[key] == .integer(13))
        let copy = a.disk.copy
        a.goOnline()
        expect(.integer(17), on: a, b)
        // An older copy of the device sends it again.
        let clone = cloud.device(as: a, on: copy)
        expect(.integer(17), on: a, b, clone)
        #expect(Set(listed.keys) == ["c+"])
    }

    @Test func `a count waits though its run's part is gone by a later deletion`() throws {
        let (a, b) = try oneOffline()
        a["k"] = nil
        try a.count(key, by: 1)
        cloud.pass(milliseconds: 60_000)
        try b.count(key, by: 10)
        cloud.settle()
        b["k"] = nil
        try b.count(key, by: 20)
        a.goOnline()
        expect(.integer(21), on: a, b)
    }

    @Test func `a store that begins with the whole of it shows a waiting count once`() throws {
        let (a, b) = try oneOffline()
        try a.count(key, by: 4)
        try b.count(key, by: 10)
        cloud.settle()
        cloud.compactTombstones()
        a.goOnline()
        expect(.integer(17), on: a, b)
    }

    @Test func `what comes late of a folded run finds room in a full store`() throws {
        let (a, b) = try oneOffline()
        try a.count(key, by: 4)
        b["k"] = nil
        cloud.settle()
        #expect(listed["c+"] == nil)
        cloud.setLimits { $0.storeBytesMax = 0 }
        a.goOnline()
        expect(.integer(4), on: a, b)
        #expect(a.disk.refused.isEmpty)
    }

    // MARK: - Removals

    @Test func `what is removed when it is folded is nothing, and not zero`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        b["k"] = nil
        expect(nil, on: a, b)
        try a.count(key, by: 2)
        expect(.integer(2), on: a, b)
        a["k"] = nil
        expect(nil, on: a, b)
    }

    @Test func `a removal takes of a fold what its author had seen`() throws {
        let (a, b, c) = (cloud.device(), cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        b.goOffline()
        b["k"] = nil
        try a.count(key, by: 4)
        cloud.settle()
        try c.count(key, by: 8)
        cloud.settle()
        b.goOnline()
        expect(.integer(12), on: a, b, c)
    }

    @Test func `two removals of a fold take what either had seen`() throws {
        let (a, b, c) = (cloud.device(), cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        c.goOffline()
        try a.count(key, by: 4)
        cloud.settle()
        b["k"] = nil
        try a.count(key, by: 1)
        cloud.settle()
        c["k"] = nil
        c.goOnline()
        expect(.integer(1), on: a, b, c)
    }

    @Test func `what was removed as a run's own, and is folded by then, is removed`() throws {
        cloud.setPartsMax(60)
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        b.goOffline()
        b["k"] = nil
        try a.count(key, by: 4)
        cloud.setPartsMax(0)
        cloud.settle()
        try a.count(key, by: 5)
        cloud.settle()
        #expect(a[key] == .integer(12))
        b.goOnline()
        expect(.integer(9), on: a, b)
        // Its copy says the same once more.
        expect(.integer(9), on: a, b, cloud.device(as: b, on: b.disk.copy))
        b["k"] = nil
        expect(nil, on: a, b)
    }

    @Test func `an earlier removal of more is taken after a later one is folded`() throws {
        cloud.setPartsMax(60)
        let (a, b, c) = (cloud.device(), cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        c.goOffline()
        try a.count(key, by: 4)
        cloud.settle()
        b.goOffline()
        b["k"] = nil
        cloud.pass(milliseconds: 1_000)
        c["k"] = nil
        c.goOnline()
        cloud.settle()
        #expect(a[key] == .integer(4))
        cloud.setPartsMax(0)
        try c.count(key, by: 10)
        cloud.settle()
        b.goOnline()
        expect(.integer(10), on: a, b, c)
    }

    @Test func `a fold whose runs were all removed is nothing`() throws {
        cloud.setPartsMax(60)
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        b.goOffline()
        b["k"] = nil
        cloud.setPartsMax(0)
        // The same again in another push: its run is folded.
        try a.count(key, by: 0)
        try a.write(merging: [key: MergeOperation(count: count(0))])
        cloud.settle()
        #expect(a[key] == .integer(3))
        a["k"] = nil
        b.goOnline()
        expect(nil, on: a, b)
    }

    private func count(_ number: Int64) throws -> ExternalCount {
        try #require(
            ExternalCount(run: 1).adding(from: .integer(0), to: .integer(number)))
    }

    // MARK: - Other histories

    /// Its run after that is another one.
    private func restore(_ backup: SteppedServer) {
        var restored = backup
        restored.epoch = cloud.server.epoch + 1
        cloud.replaceServer(by: restored)
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
    }

    @Test func `a restored server is not told of a fold that it does not have`() throws {
        cloud.setPartsMax(60)
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        try b.count(key, by: 4)
        cloud.settle()
        let backup = cloud.server
        cloud.setPartsMax(0)
        try a.count(key, by: 1)
        expect(.integer(8), on: a, b)
        restore(backup)
        // What was counted and folded after the copy is lost.
        expect(.integer(7), on: a, b)
        cloud.setPartsMax(0)
        try a.count(key, by: 10)
        expect(.integer(17), on: a, b)
    }

    @Test func `what a restored server had folded is folded, whoever offers it`() throws {
        let (a, b) = try oneOffline()
        try b.count(key, by: 4)
        cloud.settle()
        let backup = cloud.server
        b["x"] = .integer(1)
        cloud.settle()
        restore(backup)
        a.goOnline()
        expect(.integer(7), on: a, b)
    }

    @Test func `a removal of a fold reaches back to where another history branched off`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        let backup = cloud.server
        try b.count(key, by: 4)
        cloud.settle()
        b.goOffline()
        b["k"] = nil
        restore(backup)
        cloud.settle()
        try a.count(key, by: 10)
        cloud.settle()
        #expect(a[key] == .integer(13))
        b.goOnline()
        expect(.integer(10), on: a, b)
        // It was removed for good.
        restore(backup)
        expect(nil, on: a, b)
    }

    // MARK: - What was folded long ago

    @Test func `what a run goes on from that is remembered no longer is refused and given back`()
        throws
    {
        let (a, b) = try oneOffline()
        try a.count(key, by: 4)
        try b.count(key, by: 10)
        cloud.settle()
        cloud.compactFolded()
        a.goOnline()
        expect(.integer(13), on: a, b)
        #expect(a.disk.refused.count == 1)
    }

    @Test func `so is a removal of what was seen then, and a new one is taken`() throws {
        cloud.setPartsMax(60)
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        a.goOffline()
        a["k"] = nil
        cloud.setPartsMax(0)
        try b.count(key, by: 10)
        cloud.settle()
        cloud.compactFolded()
        a.goOnline()
        expect(.integer(13), on: a, b)
        #expect(!a.disk.refused.isEmpty)
        a["k"] = nil
        expect(nil, on: a, b)
        try b.count(key, by: 1)
        expect(.integer(1), on: a, b)
    }

    @Test func `what a device counted offline before all that is forgotten is taken`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        a.goOffline()
        try a.count(key, by: 4)
        cloud.pass(milliseconds: 60_000)
        try b.count(key, by: 10)
        cloud.settle()
        cloud.compactFolded()
        a.goOnline()
        expect(.integer(14), on: a, b)
    }
}
