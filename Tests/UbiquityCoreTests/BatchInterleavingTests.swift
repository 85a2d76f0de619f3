// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// Vector 20 of the contract, with whatever order of things chance finds.
@Suite struct `Batches on the same keys from two devices` {
    @Test(arguments: UInt64(0)..<300)
    func `are seen whole at all times, whatever happens in between`(seed: UInt64) throws {
        var story = BatchStory(seed: seed)
        for _ in 0..<80 {
            try story.goOn()
            try story.check()
        }
        story.makePeace()
        try story.check()
        let (a, b) = (story.devices[0], story.devices[1])
        #expect(a["x"] != nil)
        #expect(a["x"] == b["x"])
        #expect(a["x"] == story.cloud.server["x"])
        #expect(a.engine.status.pendingKeys.isEmpty && b.engine.status.pendingKeys.isEmpty)
    }

    @Test func `are whole also where one of them sets a key to what it was`() throws {
        let cloud = SteppedCloud()
        let (a, b) = (cloud.device(), cloud.device())
        try a.write(["x": .integer(1), "y": .integer(1)])
        cloud.settle()
        for device in [a, b] { device.goOffline() }
        try b.write(["x": .integer(3), "y": .integer(3)])
        cloud.pass(milliseconds: 10)
        try a.write(["x": .integer(1), "y": .integer(2)])
        for device in [b, a] {
            device.goOnline()
            cloud.settle()
        }
        for device in [a, b] {
            #expect(device["x"] == .integer(1))
            #expect(device["y"] == .integer(2))
        }
    }
}

/// Two devices that write batches while connections come and go, and answers are late or lost.
private struct BatchStory {
    let cloud = SteppedCloud()
    let devices: [SteppedDevice]
    private var random: RandomSource
    private var written: Int64 = 0

    private static let keys = ["x", "y", "z"]

    init(seed: UInt64) {
        random = RandomSource(seed: seed)
        devices = [cloud.device(), cloud.device()]
        cloud.settle()
    }

    mutating func goOn() throws {
        guard let device = devices.randomElement(using: &random) else { return }
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2: try writeBatch(on: device)
        case 3...6: _ = device.step()
        case 7: device.isOnline ? device.goOffline() : device.goOnline()
        case 8: device.losesAnswers.toggle()
        case 9: device.holdsAnswers ? device.answer() : (device.holdsAnswers = true)
        case 10: device.cut()
        default: cloud.pass(milliseconds: Int64.random(in: 0...3_000, using: &random))
        }
    }

    private mutating func writeBatch(on device: SteppedDevice) throws {
        written += 1
        let value = PropertyListValue.integer(written)
        try device.write(Dictionary(uniqueKeysWithValues: Self.keys.map { ($0, value) }))
    }

    /// Checks that apps, notices and the server each show the values of a single batch.
    func check() throws {
        let all = try Set(Self.keys.map { try Key($0) })
        for device in devices {
            let values = Self.keys.map { device[$0] }
            #expect(Set(values).count == 1, "\(values)")
            for notice in device.takeNotices() { #expect(notice.keys == all, "\(notice)") }
        }
        let values = Self.keys.map { cloud.server[$0] }
        #expect(Set(values).count == 1, "\(values)")
    }

    func makePeace() {
        for device in devices {
            device.losesAnswers = false
            device.answer()
            device.goOnline()
        }
        for _ in 0..<3 {
            cloud.settle()
            cloud.pass(milliseconds: Backoff.maxMilliseconds)
        }
        cloud.settle()
    }
}
