// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `Keys whose writes merge` {
    let cloud = SteppedCloud()
    let key = try! Key("k")

    // MARK: - Counter

    @Test func `what two devices count apart adds up`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        b.goOffline()
        try a.count(key, by: 3)
        for _ in 0..<4 { try b.count(key, by: 1) }
        #expect(b[key] == .integer(4))
        cloud.settle()
        b.goOnline()
        cloud.settle()
        #expect(a[key] == .integer(7))
        #expect(b[key] == .integer(7))
        #expect(a.takeNotices() == [Notice(.serverChange, [key])])
    }

    @Test func `a count whose answer was lost is counted once`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        a.losesAnswers = true
        try a.count(key, by: 1)
        cloud.settle()
        try b.count(key, by: 1)
        cloud.settle()
        a.losesAnswers = false
        try a.count(key, by: 1)
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        #expect(a[key] == .integer(3))
        #expect(b[key] == .integer(3))
    }

    @Test func `a device restored from its own older copy counts on without losing any`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        try a.count(key, by: 1)
        cloud.settle()
        let copy = a.disk.copy
        try a.count(key, by: 5)
        cloud.settle()
        a.goOffline()
        let restored = cloud.device(as: a, on: copy)
        restored.goOffline()
        try restored.count(key, by: 2)
        restored.goOnline()
        cloud.settle()
        #expect(restored[key] == .integer(8))
        #expect(b[key] == .integer(8))
    }

    @Test func `a cloned device and its original count separately`() throws {
        let a = cloud.device()
        try a.count(key, by: 1)
        cloud.settle()
        let clone = cloud.device(as: a, on: a.disk.copy)
        let original = cloud.device(as: a, on: a.disk)
        a.goOffline()
        try original.count(key, by: 1)
        try clone.count(key, by: 1)
        cloud.settle()
        #expect(original[key] == .integer(3))
        #expect(clone[key] == .integer(3))
    }

    @Test func `two processes of a device count apart on one disk`() throws {
        let a = cloud.device()
        cloud.settle()
        let helper = a.helper()
        try a.count(key, by: 1)
        try helper.count(key, by: 1)
        while a.step() || helper.step() {}
        try helper.count(key, by: 1)
        while a.step() || helper.step() {}
        cloud.settle()
        #expect(a[key] == .integer(3))
        #expect(helper[key] == .integer(3))
        #expect(cloud.device().settled(cloud)[key] == .integer(3))
    }

    @Test func `a counter that begins as a plain number continues from there`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        a["k"] = .integer(10)
        cloud.settle()
        b.goOffline()
        try a.count(key, by: 1)
        try b.count(key, by: 1)
        cloud.settle()
        b.goOnline()
        cloud.settle()
        #expect(a[key] == .integer(12))
        #expect(b[key] == .integer(12))
    }

    @Test func `a write without a policy begins anew, and what is counted later counts`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 5)
        cloud.settle()
        b["k"] = .integer(100)
        cloud.settle()
        #expect(a[key] == .integer(100))
        try a.count(key, by: 1)
        cloud.settle()
        #expect(b[key] == .integer(101))
    }

    @Test func `a count of zero makes a zero`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.apply(.counter, from: nil, to: .integer(0), key)
        cloud.settle()
        #expect(b[key] == .integer(0))
    }

    @Test func `integers stay integers, and at the end of their range they stay there`() throws {
        let a = cloud.device()
        try a.apply(.counter, from: nil, to: .integer(.max), key)
        try a.count(key, by: 1)
        #expect(a[key] == .integer(.max))
        try a.apply(.counter, from: .integer(0), to: .real(0.5), key)
        #expect(a[key] == .real(Double(Int64.max) + 0.5))
    }

    // MARK: - Maximum and minimum

    @Test func `the level that was reached is never lost, whoever writes later`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        b.goOffline()
        try a.apply(.maximum, from: nil, to: .integer(13), key)
        cloud.settle()
        cloud.pass(milliseconds: 1_000)
        try b.apply(.maximum, from: nil, to: .integer(1), key)
        b.goOnline()
        cloud.settle()
        #expect(a[key] == .integer(13))
        #expect(b[key] == .integer(13))
        #expect(a.takeNotices() == [])
        #expect(b.takeNotices() == [Notice(.serverChange, [key])])
    }

    @Test func `a fresh install's level neither hides the account's level nor is lost`() throws {
        for policy in [FirstSyncPolicy.serverWins, .timestamps] {
            let cloud = SteppedCloud()
            let a = cloud.device()
            try a.apply(.maximum, from: nil, to: .integer(13), key)
            cloud.settle()
            let b = cloud.device(policy: policy)
            try b.apply(.maximum, from: nil, to: .integer(20), key)
            let c = cloud.device(policy: policy)
            try c.apply(.maximum, from: nil, to: .integer(1), key)
            cloud.settle()
            for device in [a, b, c] { #expect(device[key] == .integer(20)) }
        }
    }

    @Test func `a value that is not greater is not a write`() throws {
        let a = cloud.device()
        try a.apply(.maximum, from: nil, to: .integer(13), key)
        cloud.settle()
        let pushes = cloud.server.pushes
        try a.apply(.maximum, from: .integer(13), to: .integer(12), key)
        try a.apply(.maximum, from: .integer(13), to: .integer(13), key)
        cloud.settle()
        #expect(a[key] == .integer(13))
        #expect(cloud.server.pushes == pushes)
    }

    @Test func `each run has one value in the store`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        for level in Int64(1)...20 {
            try (level % 2 == 0 ? a : b).apply(.maximum, from: nil, to: .integer(level), key)
            cloud.settle()
        }
        #expect(cloud.server.records.count == 2)
        #expect(a.engine.usage == cloud.server.state.usage)
    }

    @Test func `a burst of greater values is one part`() throws {
        let a = cloud.device()
        for level in Int64(1)...50 { try a.apply(.maximum, from: nil, to: .integer(level), key) }
        cloud.settle()
        #expect(cloud.server.records.count == 1)
    }

    /// The less and the greater.
    static let pairs: [[PropertyListValue]] = [
        [.real(1.5), .integer(2)], [.date(1), .date(2)], [.string("a"), .string("b")],
        [.real(.nan), .integer(-5)], [.integer(.max), .unsigned(.max)],
    ]

    @Test(arguments: pairs, [true, false])
    func `numbers, dates and strings are compared among themselves`(
        pair: [PropertyListValue], isInOrder: Bool
    ) throws {
        let (a, b) = (cloud.device(), cloud.device())
        let other = try Key("other")
        for (device, value) in zip([a, b], isInOrder ? pair : pair.reversed()) {
            try device.apply(.maximum, from: nil, to: value, key)
            try device.apply(.minimum, from: nil, to: value, other)
        }
        cloud.settle()
        for device in [a, b] {
            #expect(device[key] == pair[1])
            #expect(device[other] == pair[0])
        }
    }

    // MARK: - Unions

    @Test func `both devices' bookmarks are there, and what one removed is not`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.setArray(key, ["x", "y"])
        cloud.settle()
        b.goOffline()
        try a.setArray(key, ["x", "y", "a"])
        try b.setArray(key, ["y", "b"])
        cloud.settle()
        b.goOnline()
        cloud.settle()
        #expect(a[key] == .array([.string("y"), .string("a"), .string("b")]))
        #expect(a[key] == b[key])
    }

    @Test func `an array without elements is empty, and absent when it is removed`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.setArray(key, ["x"])
        cloud.settle()
        try a.setArray(key, [])
        cloud.settle()
        #expect(b[key] == .array([]))
        b["k"] = nil
        cloud.settle()
        #expect(a[key] == nil)
        #expect(a.engine.usage == Usage())
    }

    @Test func `the fields of a dictionary are written apart`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.setDictionary(key, ["title": "t", "text": "x", "old": "o"])
        cloud.settle()
        b.goOffline()
        try a.setDictionary(key, ["title": "T", "text": "x", "old": "o"])
        try b.setDictionary(key, ["title": "t", "text": "X"])
        cloud.settle()
        b.goOnline()
        cloud.settle()
        #expect(
            a[key] == .dictionary(["title": .string("T"), "text": .string("X")]))
        #expect(a[key] == b[key])
    }

    @Test func `of two writes of a field the later wins, though it was removed before a save`()
        throws
    {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        b.goOffline()
        try a.setDictionary(key, ["title": "t"])
        cloud.settle()
        cloud.pass(milliseconds: 1_000)
        try b.setDictionary(key, ["title": "T", "text": "x"])
        try b.setDictionary(key, ["text": "x"])
        b.goOnline()
        cloud.settle()
        #expect(b[key] == .dictionary(["text": .string("x")]))
        #expect(a[key] == b[key])
    }

    @Test func `any text is a field of a dictionary, an accent alone too`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        let fields = ["": "empty", "\u{301}": "accent", "e\u{301}": "two", "\u{0}": "zero"]
        try a.setDictionary(key, fields)
        cloud.settle()
        #expect(b[key] == a[key])
        guard case .dictionary(let entries)? = b[key] else {
            Issue.record("no dictionary")
            return
        }
        #expect(entries["\u{301}"] == .string("accent"))
        #expect(entries[""] == .string("empty"))
        #expect(entries.count == fields.count)
    }

    @Test func `a plain array remains beside what two devices add to it`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        a["k"] = .array([.string("x"), .string("y")])
        cloud.settle()
        b.goOffline()
        try a.setArray(key, ["x", "y", "a"])
        try b.setArray(key, ["x", "y", "b"])
        cloud.settle()
        b.goOnline()
        cloud.settle()
        #expect(a[key] == b[key])
        #expect(a[key]?.strings.sorted() == ["a", "b", "x", "y"])
        #expect(cloud.server.records.values.count { $0.content.value != nil } == 3)
    }

    @Test func `of two devices that remove the same element, each is right`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.setArray(key, ["x", "y"])
        cloud.settle()
        try a.setArray(key, ["y"])
        try b.setArray(key, ["y"])
        cloud.settle()
        #expect(a[key]?.strings == ["y"])
        #expect(b[key]?.strings == ["y"])
    }

    // MARK: - The app's own rule

    @Test func `the app's own rule makes one of two, the same on every device`() throws {
        let (a, b, c) = (cloud.device(), cloud.device(), cloud.device())
        let join: Resolver = { .string("\($0.value.text)+\($1.value.text)") }
        for device in [a, b, c] { device.resolve(key, join) }
        cloud.settle()
        b.goOffline()
        try a.apply(.register, from: nil, to: .string("a"), key)
        cloud.settle()
        cloud.pass(milliseconds: 10)
        try b.apply(.register, from: nil, to: .string("b"), key)
        b.goOnline()
        cloud.settle()
        for device in [a, b, c] { #expect(device[key] == .string("a+b")) }
        try c.apply(.register, from: c[key], to: .string("c"), key)
        cloud.settle()
        for device in [a, b, c] { #expect(device[key] == .string("c")) }
    }

    @Test func `an app that does not know the rule sees the last value`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        b.goOffline()
        try a.apply(.register, from: nil, to: .string("a"), key)
        cloud.settle()
        cloud.pass(milliseconds: 10)
        try b.apply(.register, from: nil, to: .string("b"), key)
        b.goOnline()
        cloud.settle()
        #expect(a[key] == .string("b"))
        a.resolve(key) { earlier, _ in earlier.value }
        #expect(a[key] == .string("a"))
    }

    /// A device whose rule is being called for "b", which has come to a key that shows "a".
    private func deviceWithConflict(plain: Bool = false) throws -> (SteppedDevice, Conflict) {
        let (device, other) = (cloud.device(), cloud.device())
        device.resolve(key) { .string("\($0.value.text)+\($1.value.text)") }
        cloud.settle()
        other.goOffline()
        try device.apply(.register, from: nil, to: .string("a"), key)
        cloud.settle()
        cloud.pass(milliseconds: 10)
        if plain {
            other["k"] = .string("b")
        } else {
            try other.apply(.register, from: nil, to: .string("b"), key)
        }
        device.holdsConflicts = true
        other.goOnline()
        cloud.settle()
        #expect(device[key] == .string("a"))
        #expect(device.takeNotices() == [])
        return (device, try #require(device.conflict))
    }

    @Test func `what waits for the rule is told, whoever calls it`() throws {
        let (device, conflict) = try deviceWithConflict()
        device["other"] = .integer(1)
        try device.apply(.register, from: nil, to: .string("c"), key)
        device.engine.decide(conflict, as: conflict.result)
        #expect(device[key] == .string("a"), "another value has come")
        device.decide()
        cloud.settle()
        #expect(device[key] == .string("a+b+c"))
        #expect(device.takeNotices() == [Notice(.serverChange, [key])])
    }

    @Test func `what the rule made of earlier values does not replace what it made of all`()
        throws
    {
        let (device, early) = try deviceWithConflict()
        try device.apply(.register, from: nil, to: .string("c"), key)
        device.decide()
        device.engine.decide(early, as: early.result)
        #expect(device[key] == .string("a+b+c"))
        try device.apply(.register, from: device[key], to: .string("d"), key)
        #expect(device[key] == .string("d"), "the app had seen the others")
        #expect(!device.engine.hasConflict)
    }

    @Test func `what the rule made is replaced though its values get final timestamps`() throws {
        let device = cloud.device(clockError: 5_000)
        device.resolve(key) { .string("\($0.value.text)+\($1.value.text)") }
        for text in ["a", "b"] {
            try device.apply(.register, from: nil, to: .string(text), key)
        }
        device.decide()
        #expect(device[key] == .string("a+b"))
        device.holdsConflicts = true
        cloud.settle()
        #expect(device.conflict != nil, "the order of the values may be another")
        try device.apply(.register, from: device[key], to: .string("c"), key)
        #expect(device[key] == .string("c"))
    }

    @Test(arguments: [false, true])
    func `a removal leaves what waits for the rule`(plain: Bool) throws {
        let (device, _) = try deviceWithConflict(plain: plain)
        try device.apply(.register, from: device[key], to: nil, key)
        cloud.settle()
        #expect(device[key] == .string("b"))
    }

    @Test func `a change that is taken back leaves what waits for the rule`() throws {
        let (device, _) = try deviceWithConflict()
        try device.engine.revert(to: [key: .value(.integer(5))], at: device.reading)
        let values = device.engine.contents.values
        #expect(Set(values) == [.string("b"), .integer(5)])
    }

    @Test func `a first download that waits for the rule is told as one`() throws {
        let (device, other) = (cloud.device(), cloud.device())
        other.goOffline()
        other.resolve(key) { .string("\($0.value.text)+\($1.value.text)") }
        try device.apply(.register, from: nil, to: .string("a"), key)
        try other.apply(.register, from: nil, to: .string("b"), key)
        cloud.settle()
        other.goOnline()
        cloud.settle()
        #expect(other[key] == .string("a+b"))
        #expect(other.takeNotices() == [Notice(.initialSync, [key])])
    }

    // MARK: - All of them

    @Test func `a value that the policy cannot merge is written as any other`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.apply(.maximum, from: nil, to: .integer(13), key)
        cloud.settle()
        let value = PropertyListValue.dictionary(["x": .integer(1)])
        #expect(!MergeOperation(.maximum, from: nil, to: value).fits)
        try b.apply(.maximum, from: .integer(13), to: value, key)
        cloud.settle()
        #expect(a[key] == value)
        try a.apply(.maximum, from: value, to: .integer(2), key)
        cloud.settle()
        #expect(b[key] == .integer(2))
    }

    @Test func `a key with parts is one key to the app`() throws {
        let a = cloud.device()
        try a.setArray(key, ["x", "y"])
        #expect(a.engine.values == [key: .array([.string("x"), .string("y")])])
        #expect(a.engine.status.pendingKeys == [key])
        cloud.settle()
        let b = cloud.device()
        cloud.settle()
        #expect(b.takeNotices() == [Notice(.initialSync, [key])])
    }

    @Test func `what does not fit into the store is refused as a whole, and told`() throws {
        cloud.setLimits { $0.storeBytesMax = 100 }
        let a = cloud.device()
        cloud.settle()
        try a.setArray(key, ["x"])
        let long = String(repeating: "y", count: 100)
        #expect(throws: LimitViolation.self) { try a.setArray(key, ["x", long]) }
        #expect(a[key]?.strings == ["x"])
        cloud.settle()
        #expect(a.takeNotices() == [Notice(.quotaViolation, [key])])
    }

    @Test func `what two devices fill only together is refused, and the first stays`() throws {
        cloud.setLimits { $0.storeBytesMax = 120 }
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        b.goOffline()
        try a.setArray(key, ["x"])
        try b.setArray(key, [String(repeating: "y", count: 60)])
        cloud.settle()
        b.goOnline()
        cloud.settle()
        #expect(b[key]?.strings == ["x"])
        #expect(b.takeNotices().contains(Notice(.quotaViolation, [key])))
        #expect(b.disk.refused.map(\.record.key.whole).contains(key))
    }

    @Test func `a reset takes all that its author saw, and no more`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.setArray(key, ["x"])
        cloud.settle()
        b.goOffline()
        try b.setArray(key, ["x", "b"])
        a["k"] = nil
        cloud.settle()
        #expect(a[key] == nil)
        b.goOnline()
        cloud.settle()
        #expect(a[key]?.strings == ["b"])
        #expect(b[key]?.strings == ["b"])
    }

    @Test func `parts come back to a server restored from an older copy`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        try a.count(key, by: 1)
        cloud.settle()
        let copy = cloud.server
        try a.count(key, by: 1)
        try b.count(key, by: 1)
        cloud.settle()
        cloud.replaceServer(by: copy)
        cloud.restartServer()
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        let c = cloud.device()
        cloud.settle()
        for device in [a, b, c] { #expect(device[key] == .integer(3)) }
    }

    @Test func `each policy's value survives a restart`() throws {
        let a = cloud.device()
        let keys = try MergePolicy.allCases.map { try Key(String($0.rawValue)) }
        let values: [PropertyListValue] = [
            .integer(1), .integer(2), .integer(3), .array([.integer(4)]),
            .dictionary(["x": .integer(5)]), .integer(6),
        ]
        for (policy, (key, value)) in zip(MergePolicy.allCases, zip(keys, values)) {
            try a.apply(policy, from: nil, to: value, key)
        }
        while a.step() {}
        let again = a.restarted()
        #expect(again.engine.values == Dictionary(uniqueKeysWithValues: zip(keys, values)))
        #expect(again.engine.usage == a.engine.usage)
    }
}

extension SteppedDevice {
    fileprivate func setArray(_ key: Key, _ elements: [String]) throws {
        try apply(.array, from: self[key], to: .array(elements.map { .string($0) }), key)
    }

    fileprivate func setDictionary(_ key: Key, _ entries: [String: String]) throws {
        let entries = entries.map { (ExactString($0.key), PropertyListValue.string($0.value)) }
        try apply(
            .dictionary, from: self[key], to: .dictionary(Dictionary(entries) { $1 }), key)
    }

    fileprivate func settled(_ cloud: SteppedCloud) -> SteppedDevice {
        cloud.settle()
        return self
    }
}

extension PropertyListValue {
    fileprivate var text: String {
        if case .string(let text) = self { text.string } else { "" }
    }

    fileprivate var strings: [String] {
        if case .array(let elements) = self { elements.map(\.text) } else { [] }
    }
}
