// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// A removal, and a write by an app that declares no policy, replaces all that its author had seen and
/// nothing else, for good; what anybody does afterwards starts from that, on every device.
@Suite struct `Keys whose writes merge, and that are removed` {
    let cloud = SteppedCloud()
    let key = try! Key("k")

    private func expect(
        _ value: PropertyListValue?, on devices: SteppedDevice...,
        at location: SourceLocation = #_sourceLocation
    ) {
        cloud.settle()
        for device in devices + [cloud.device()] {
            cloud.settle()
            #expect(device[key] == value, sourceLocation: location)
        }
    }

    // MARK: - Counters

    @Test func `a run that continues to count after its counter was removed begins at zero`() throws
    {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        try a.count(key, by: 3)
        cloud.settle()
        b.goOffline()
        a["k"] = nil
        #expect(a[key] == nil)
        cloud.settle()
        try a.count(key, by: 1)
        cloud.settle()
        b.goOnline()
        expect(.integer(1), on: a, b)
    }

    @Test func `a removal and a count made offline are both there afterwards`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 3)
        cloud.settle()
        a.goOffline()
        a["k"] = nil
        try a.count(key, by: 1)
        #expect(a[key] == .integer(1))
        a.goOnline()
        expect(.integer(1), on: a, b)
    }

    @Test func `a removal takes of a run's count what its author had seen`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 5)
        cloud.settle()
        a.goOffline()
        try a.count(key, by: 2)
        b["k"] = nil
        cloud.settle()
        a.goOnline()
        expect(.integer(2), on: a, b)
        try a.count(key, by: 1)
        expect(.integer(3), on: a, b)
    }

    @Test func `two removals of one counter take what either had seen`() throws {
        let (a, b, c) = (cloud.device(), cloud.device(), cloud.device())
        try a.count(key, by: 5)
        cloud.settle()
        c.goOffline()
        try a.count(key, by: 2)
        cloud.settle()
        b["k"] = nil
        cloud.pass(milliseconds: 1_000)
        // It knows of less, and is later.
        c["k"] = nil
        try c.count(key, by: 1)
        c.goOnline()
        expect(.integer(1), on: a, b, c)
    }

    @Test func `a plain number that a counter goes on from is counted once`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        b.goOffline()
        try a.count(key, by: 5)
        b["k"] = .integer(100)
        b.goOnline()
        cloud.settle()
        try a.count(key, by: 1)
        expect(.integer(106), on: a, b)
    }

    @Test func `two devices that know different counts go on from one plain number`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        b.goOffline()
        try a.count(key, by: 5)
        b["k"] = .integer(100)
        b.goOnline()
        cloud.settle()
        a.goOffline()
        try b.count(key, by: 7)
        cloud.settle()
        try a.count(key, by: 1)
        a.goOnline()
        try b.count(key, by: 2)
        expect(.integer(115), on: a, b)
    }

    @Test func `a text under a counter's key gives way to what is counted`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        a["k"] = .string("none yet")
        cloud.settle()
        #expect(b[key] == .string("none yet"))
        try b.count(key, by: 2)
        expect(.integer(2), on: a, b)
    }

    @Test func `a counter can be removed from a full store`() throws {
        cloud.setLimits { $0.storeBytesMax = 100 }
        let a = cloud.device()
        cloud.settle()
        try a.count(key, by: 1)
        a["rest"] = .data(Array(repeating: 1, count: 100 - a.engine.usage.bytes))
        cloud.settle()
        a["k"] = nil
        cloud.settle()
        #expect(a.takeNotices() == [])
        #expect(a[key] == nil)
        #expect(a.engine.status.pendingKeys == [])
    }

    @Test func `what a server refused is not counted on`() throws {
        let a = cloud.device()
        cloud.settle()
        try a.count(key, by: 1)
        cloud.settle()
        let part = try #require(cloud.server.records.keys.first { $0.isPart })
        a.goOffline()
        cloud.setLimits { $0.valueBytesMax = 1 }
        try a.count(key, by: 5)
        a.goOnline()
        cloud.settle()
        #expect(a[key] == .integer(1))
        cloud.setLimits { $0.valueBytesMax = 1_000 }
        a.goOffline()
        a.goOnline()
        cloud.settle()
        try a.count(key, by: 2)
        expect(.integer(3), on: a)
        // A copy of what was refused may still come.
        #expect(cloud.server.records[part].flatMap { Count($0.content.value) }?.times == 1)
    }

    // MARK: - What is kept beside the store

    @Test func `a kept count continues from what others have made of the counter`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        var count = ExternalCount(run: 7)
        func keep(_ amount: Int64) throws {
            count = try #require(count.adding(from: .integer(0), to: .integer(amount)))
            try a.write(merging: [key: MergeOperation(count: count)])
        }
        try keep(3)
        cloud.settle()
        b["k"] = nil
        b["k"] = .integer(1)
        cloud.settle()
        try keep(1)
        expect(.integer(2), on: a, b)
    }

    @Test func `a repeated kept count brings back nothing that was removed`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        let count = try #require(ExternalCount(run: 7).adding(from: .integer(0), to: .integer(3)))
        try a.write(merging: [key: MergeOperation(count: count)])
        cloud.settle()
        b["k"] = nil
        cloud.settle()
        #expect(!a.engine.hasCounted(moreThan: count, under: key))
        try a.write(merging: [key: MergeOperation(count: count)])
        expect(nil, on: a, b)
    }

    @Test func `a kept count whose part was deleted begins anew`() throws {
        let a = cloud.device()
        let count = try #require(ExternalCount(run: 7).adding(from: .integer(0), to: .integer(3)))
        try a.write(merging: [key: MergeOperation(count: count)])
        cloud.settle()
        // As version 0.1.0 removes a counter.
        let deletion = Record(
            key: key.part(count.part), content: .deleted,
            stamp: Stamp(
                HybridTimestamp(milliseconds: cloud.serverNow + 1), DeviceID(rawValue: 999)))
        _ = try cloud.push(Push([Transaction([deletion])]))
        cloud.settle()
        #expect(a[key] == nil)
        #expect(a.engine.hasCounted(moreThan: count, under: key))
    }

    // MARK: - Maxima

    @Test func `a score that rises leaves no deletions`() throws {
        let a = cloud.device()
        for level in Int64(1)...50 {
            try a.raise(key, to: level)
            cloud.settle()
        }
        #expect(cloud.server.records.count == 1)
        #expect(cloud.server.records.values.allSatisfy { $0.content != .deleted })
        expect(.integer(50), on: a)
    }

    @Test func `the last of 10,000 raises costs what the first does`() throws {
        let a = cloud.device()
        var level: Int64 = 0
        // The best of ten, so that a busy machine does not matter.
        func quickest() throws -> Duration {
            try (0..<10).map { _ in
                try ContinuousClock().measure {
                    for _ in 0..<100 {
                        level += 1
                        try a.raise(key, to: level)
                    }
                }
            }.min() ?? .zero
        }
        let first = try quickest()
        while level < 9_000 { _ = try quickest() }
        let last = try quickest()
        #expect(last < first * 10, "100 raises took \(first) at first, and \(last) in the end")
        expect(.integer(level), on: a)
    }

    @Test func `runs that raised a maximum long ago leave at most sixteen parts`() throws {
        for level in Int64(1)...40 {
            let device = cloud.device()
            cloud.settle()
            try device.raise(key, to: level)
            cloud.settle()
        }
        let present = cloud.server.records.values.count { $0.content.value != nil }
        #expect(present == PartChanges.reachedPartsMax)
        expect(.integer(40))
    }

    @Test func `a removal of a maximum leaves what its author had not seen`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.raise(key, to: 5)
        cloud.settle()
        a.goOffline()
        try a.raise(key, to: 7)
        cloud.pass(milliseconds: 1_000)
        b["k"] = nil
        cloud.settle()
        a.goOnline()
        expect(.integer(7), on: a, b)
    }

    @Test func `a removal of a greater value leaves a lesser one that its author had not seen`()
        throws
    {
        let (a, b) = (cloud.device(), cloud.device())
        try a.raise(key, to: 5)
        cloud.settle()
        b.goOffline()
        a["k"] = nil
        try b.raise(key, to: 6)
        cloud.settle()
        b.goOnline()
        expect(.integer(6), on: a, b)
        let (c, d) = (cloud.device(), cloud.device())
        cloud.settle()
        c["k"] = nil
        cloud.settle()
        c.goOffline()
        try c.raise(key, to: 4)
        try d.raise(key, to: 5)
        cloud.settle()
        d["k"] = nil
        c.goOnline()
        expect(.integer(4), on: c, d)
    }

    @Test func `after a removal, a lesser value than before is the greatest`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.raise(key, to: 50)
        cloud.settle()
        b["k"] = nil
        cloud.settle()
        try a.raise(key, to: 3)
        expect(.integer(3), on: a, b)
    }

    @Test func `a maximum that is removed stays so, though an older copy sends it again`() throws {
        let a = cloud.device()
        try a.raise(key, to: 5)
        while a.step() {}
        a.goOffline()
        let copy = a.disk.copy
        a.goOnline()
        cloud.settle()
        a["k"] = nil
        cloud.settle()
        a.goOffline()
        _ = cloud.device(as: a, on: copy)
        expect(nil)
    }

    @Test func `of what a run has raised the better wins, whatever the stamps`() throws {
        for (policy, order) in [(MergePolicy.maximum, [1, 2]), (.minimum, [2, 1])] {
            let id = try #require(PartID("\(policy.rawValue)1"))
            func record(_ value: PropertyListValue, at time: Int64) -> Record {
                Record(
                    key: key.part(id), content: .value(value),
                    stamp: Stamp(HybridTimestamp(milliseconds: time), DeviceID(rawValue: 1)))
            }
            let values = order.map { PropertyListValue.integer(Int64($0)) }
            let steps = [values[0], .array([values[0]]), values[1], .array([values[1]])]
            for (low, value) in steps.enumerated() {
                for (high, other) in steps.enumerated() where low < high {
                    #expect(record(other, at: 1).wins(over: record(value, at: 9)))
                    #expect(!record(value, at: 9).wins(over: record(other, at: 1)))
                    #expect(record(value, at: 9).isOlder(than: record(other, at: 1)))
                }
            }
        }
    }

    // MARK: - Unions and the app's own rule

    @Test(arguments: [MergePolicy.array, .dictionary, .register, .counter, .maximum])
    func `a plain write that a policy's write did not know stays`(policy: MergePolicy) throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        b.goOffline()
        let (plain, merged): (PropertyListValue, PropertyListValue) =
            switch policy {
            case .array: (.array([.string("old")]), .array([.string("new")]))
            case .dictionary: (.dictionary(["a": .integer(1)]), .dictionary(["b": .integer(2)]))
            default: (.integer(100), .integer(1))
            }
        b["k"] = plain
        cloud.pass(milliseconds: 1_000)
        try a.apply(policy, from: nil, to: merged, key)
        cloud.settle()
        b.goOnline()
        let both: PropertyListValue =
            switch policy {
            case .array: .array([.string("old"), .string("new")])
            case .dictionary: .dictionary(["a": .integer(1), "b": .integer(2)])
            case .counter: .integer(101)
            case .register: .integer(1)
            default: .integer(100)
            }
        expect(both, on: a, b)
    }

    @Test func `an element of a plain array that is removed stays removed`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        a["k"] = .array([.string("x"), .string("y")])
        cloud.settle()
        b.goOffline()
        try a.apply(
            .array, from: a[key], to: .array([.string("x"), .string("y"), .string("a")]), key)
        try b.apply(.array, from: b[key], to: .array([.string("y")]), key)
        cloud.settle()
        b.goOnline()
        expect(.array([.string("y"), .string("a")]), on: a, b)
    }

    @Test func `parts of another policy are replaced by what was seen of them`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 5)
        cloud.settle()
        try b.raise(key, to: 7)
        expect(.integer(7), on: a, b)
        try a.count(key, by: 1)
        expect(.integer(8), on: a, b)
        b["k"] = nil
        expect(nil, on: a, b)
    }
}

@Suite struct `Parts that change in place` {
    /// A raise is behind the deletion of the part as it was before, that is behind a removal which saw less,
    /// and that is behind the raise.
    @Test func `a part ends as the server last had it, whatever came in between`() throws {
        let part = try Key("k").part(try #require(PartID("xrun")))
        func record(_ content: Content, at time: Int64) -> Record {
            Record(
                key: part, content: content,
                stamp: Stamp(HybridTimestamp(milliseconds: time), DeviceID(rawValue: 1)))
        }
        var entry = Entry()
        entry.merge(record(.value(.integer(7)), at: 5), isNews: true)
        let removal = record(.value(.array([.integer(5)])), at: 10)
        entry.merge(removal, isNews: true)
        #expect(entry.confirmed == removal)
    }
}

extension SteppedDevice {
    fileprivate func raise(_ key: Key, to level: Int64) throws {
        try apply(.maximum, from: nil, to: .integer(level), key)
    }
}
