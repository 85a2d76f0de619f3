// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `Taking a change back` {
    let cloud = SteppedCloud()
    let key = try! Key("k")

    @Test func `is a new write, which other devices get and which can be taken back too`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        a["k"] = .string("old")
        cloud.settle()
        b["k"] = .string("new")
        cloud.settle()
        let stamp = a.engine.entries[key]?.confirmed?.stamp
        try a.revert([key: .value(.string("old"))])
        cloud.settle()
        #expect(b[key] == .string("old"))
        #expect(a.engine.entries[key]!.confirmed!.stamp > stamp!)
        try b.revert([key: .value(.string("new"))])
        cloud.settle()
        #expect(a[key] == .string("new"))
    }

    @Test func `of several keys is one transaction without those that have their value`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.write(["k": .integer(1), "same": .integer(1), "gone": .integer(1)])
        cloud.settle()
        a.goOffline()
        try a.revert([
            key: .value(.integer(0)), try Key("same"): .value(.integer(1)),
            try Key("gone"): .deleted,
        ])
        let writes = a.engine.waitingWrites.values
        #expect(Set(writes.map(\.record.key.string)) == ["k", "gone"])
        #expect(Set(writes.map(\.transaction)).count == 1)
        a.goOnline()
        cloud.settle()
        #expect(b[key] == .integer(0))
        #expect(b[try Key("gone")] == nil)
    }

    @Test func `of a counter subtracts what was counted since, and what others count stays`() throws
    {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 5)
        cloud.settle()
        try b.count(key, by: 3)
        cloud.settle()
        b.goOffline()
        try b.count(key, by: 1)
        // By a device whose app declares no policy, such as the command line.
        try a.revert([key: .value(.integer(5))])
        cloud.settle()
        #expect(a[key] == .integer(5))
        b.goOnline()
        cloud.settle()
        #expect(a[key] == .integer(6))
        #expect(b[key] == .integer(6))
    }

    @Test(arguments: [(Int64.max, Int64.min), (Int64.min, Int64.max)])
    func `of a counter at the ends of its range gives the value back`(from: Int64, to: Int64)
        throws
    {
        let (a, b) = (cloud.device(), cloud.device())
        try a.write(["k": .integer(to)])
        cloud.settle()
        try a.write(["k": .integer(from)])
        cloud.settle()
        try a.count(key, by: from > 0 ? -1 : 1)
        cloud.settle()
        try b.revert([key: .value(.integer(to))])
        cloud.settle()
        #expect(a[key] == .integer(to))
        #expect(b[key] == .integer(to))
    }

    @Test func `of a counter whose runs together are too many gives the value back`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        for device in [a, b] { try device.count(key, by: .max - 1) }
        cloud.settle()
        try a.revert([key: .value(.integer(7))])
        cloud.settle()
        #expect(a[key] == .integer(7))
        #expect(b[key] == .integer(7))
    }

    @Test func `of a dictionary leaves alone the entries that others write meanwhile`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.apply(.dictionary, from: nil, to: .dictionary(["x": .integer(1)]), key)
        cloud.settle()
        try a.apply(
            .dictionary, from: a[key], to: .dictionary(["x": .integer(2), "y": .integer(2)]), key)
        cloud.settle()
        b.goOffline()
        try b.apply(
            .dictionary, from: b[key],
            to: .dictionary(["x": .integer(2), "y": .integer(2), "z": .integer(3)]), key)
        try a.revert([key: .value(.dictionary(["x": .integer(1)]))])
        cloud.settle()
        b.goOnline()
        cloud.settle()
        #expect(a[key] == .dictionary(["x": .integer(1), "z": .integer(3)]))
        #expect(b[key] == a[key])
    }

    @Test func `of a maximum lowers it, unless somebody has raised it meanwhile`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        a.engine.setPolicy(.maximum, for: key)
        try a.write(["k": .integer(5)])
        cloud.settle()
        try a.write(["k": .integer(13)])
        cloud.settle()
        b.goOffline()
        try a.revert([key: .value(.integer(5))])
        cloud.settle()
        #expect(a[key] == .integer(5))
        try b.apply(.maximum, from: b[key], to: .integer(20), key)
        b.goOnline()
        cloud.settle()
        #expect(a[key] == .integer(20))
        #expect(b[key] == .integer(20))
    }

    @Test func `to a value that the policy cannot merge replaces it, without a complaint`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        a.engine.setPolicy(.counter, for: key)
        try a.write(["k": .integer(5)])
        cloud.settle()
        try a.revert([key: .value(.string("a word"))])
        cloud.settle()
        #expect(b[key] == .string("a word"))
        #expect(a.engine.takeMisfits().isEmpty)
    }

    @Test func `to before a key was there removes it, with all its parts`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 5)
        cloud.settle()
        try b.revert([key: .deleted])
        cloud.settle()
        #expect(a[key] == nil)
        #expect(b[key] == nil)
    }

    @Test func `is refused as a whole where it does not fit`() throws {
        let a = cloud.device()
        cloud.setLimits { $0.keysMax = 1 }
        cloud.settle()
        try a.write(["k": .integer(1)])
        #expect(throws: LimitViolation.self) {
            try a.revert([
                key: .deleted, try Key("more"): .value(.integer(1)),
                try Key("m"): .value(.integer(1)),
            ])
        }
        #expect(a[key] == .integer(1))
    }

    @Test func `a device knows what it wrote and what was agreed, without its server`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try b.count(key, by: 2)
        cloud.settle()
        a.goOffline()
        try a.count(key, by: 1)
        let versions = a.engine.ownVersions(of: key)
        #expect(versions.map(\.value) == [.integer(3), .integer(2)])
        #expect(versions.map(\.outcome) == [.waiting, .current])
        #expect(versions.map(\.stamp.device) == [a.id, b.id])
        #expect(a.engine.ownVersions(of: try Key("other")).isEmpty)
    }
}

extension SteppedDevice {
    fileprivate func revert(_ contents: [Key: Content]) throws {
        try engine.revert(to: contents, at: reading)
    }
}
