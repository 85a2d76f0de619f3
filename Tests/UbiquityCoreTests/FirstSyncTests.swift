// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `The first sync of a device` {
    let cloud = SteppedCloud()

    @Test func `takes the server's values, uploads what only the device has, and tells once`()
        throws
    {
        let a = cloud.device()
        a["a"] = .integer(13)
        a["c"] = .integer(3)
        cloud.settle()
        let b = cloud.device()
        b["a"] = .integer(1)
        b["b"] = .integer(2)
        cloud.settle()
        #expect(["a", "b", "c"].map { b[$0] } == [.integer(13), .integer(2), .integer(3)])
        #expect(["a", "b", "c"].map { a[$0] } == [.integer(13), .integer(2), .integer(3)])
        #expect(b.takeNotices() == [Notice(.initialSync, [try Key("a"), try Key("c")])])
        #expect(a.takeNotices() == [Notice(.serverChange, [try Key("b")])])
    }

    @Test func `lets the later write win if the app asks for timestamps`() throws {
        let a = cloud.device()
        a["level"] = .integer(13)
        cloud.settle()
        cloud.pass(milliseconds: 1_000)
        let b = cloud.device(policy: .timestamps)
        b["level"] = .integer(1)
        cloud.settle()
        #expect(a["level"] == .integer(1))
        #expect(a.takeNotices() == [Notice(.serverChange, [try Key("level")])])
        a["level"] = .integer(13)
        cloud.settle()
        #expect(b["level"] == .integer(13))
    }

    @Test func `merges what the device and the account have of a key with a policy`() throws {
        let a = cloud.device()
        let (dictionary, array) = (try Key("dictionary"), try Key("array"))
        func put(_ entries: [ExactString: PropertyListValue], _ device: SteppedDevice) throws {
            try device.write(merging: [
                dictionary: MergeOperation(.dictionary, from: nil, to: .dictionary(entries))
            ])
        }
        func add(_ element: Int64, _ device: SteppedDevice) throws {
            try device.write(merging: [
                array: MergeOperation(.array, from: nil, to: .array([.integer(element)]))
            ])
        }
        let b = cloud.device()
        b.goOffline()
        try put(["early": .integer(1), "own": .integer(2)], b)
        cloud.pass(milliseconds: 1_000)
        try put(["early": .integer(3), "late": .integer(4)], a)
        try add(1, a)
        cloud.settle()
        cloud.pass(milliseconds: 1_000)
        try put(["late": .integer(5)], b)
        try add(2, b)
        b.goOnline()
        cloud.settle()
        for device in [a, b] {
            #expect(
                device["dictionary"]
                    == .dictionary([
                        "early": .integer(3), "own": .integer(2), "late": .integer(5),
                    ]))
            #expect(device["array"] == .array([.integer(1), .integer(2)]))
        }
    }

    @Test func `keeps what the account had of a key before there was a policy`() throws {
        let a = cloud.device()
        a["k"] = .dictionary(["plain": .integer(1)])
        cloud.settle()
        cloud.pass(milliseconds: 1_000)
        let b = cloud.device()
        try b.write(merging: [
            try Key("k"): MergeOperation(
                .dictionary, from: nil, to: .dictionary(["part": .integer(2)]))
        ])
        cloud.settle()
        for device in [a, b] {
            #expect(
                device["k"] == .dictionary(["plain": .integer(1), "part": .integer(2)]))
        }
    }

    @Test func `is not mistaken for news where it changes nothing`() {
        let a = cloud.device()
        cloud.settle()
        #expect(a.takeNotices() == [])
        #expect(a.engine.status.hasCompletedFirstSync)
    }

    @Test func `of a device that was used before it was signed in brings its writes along`() {
        let local = SteppedDevice(
            number: 7, cloud: cloud, clockError: 0, policy: .serverWins, isSignedIn: false)
        local["x"] = .integer(1)
        while local.step() {}
        #expect(local.engine.isSaved)
        let a = cloud.device()
        let b = local.restarted()
        while b.step() {}
        cloud.settle()
        #expect(a["x"] == .integer(1))
    }
}
