// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `A device whose clock is wrong` {
    let cloud = SteppedCloud()
    static let hours: Int64 = 5 * 3_600_000

    @Test(arguments: [-hours, hours])
    func `has its offline edits count at the time at which they were made`(error: Int64) {
        let a = cloud.device()
        let b = cloud.device(clockError: error)
        for (index, isBLater) in [true, false].enumerated() {
            let key = "key\(index)"
            cloud.settle()
            b.goOffline()
            if !isBLater { b[key] = .string("b") } else { a[key] = .string("a") }
            cloud.settle()
            cloud.pass(milliseconds: 60_000)
            if isBLater { b[key] = .string("b") } else { a[key] = .string("a") }
            cloud.settle()
            b.goOnline()
            cloud.settle()
            #expect(a[key] == .string(isBLater ? "b" : "a"))
            #expect(b[key] == a[key])
        }
    }

    @Test(arguments: [-hours, hours])
    func `is corrected also for what it wrote before it ever met a server`(error: Int64) {
        let a = cloud.device()
        cloud.settle()
        a["early"] = .string("a")
        cloud.settle()
        cloud.pass(milliseconds: 60_000)
        let b = SteppedDevice(number: 9, cloud: cloud, clockError: error, policy: .timestamps)
        b["early"] = .string("b")
        b["late"] = .string("b")
        cloud.pass(milliseconds: 60_000)
        a["late"] = .string("a")
        cloud.settle()
        while b.step() {}
        cloud.settle()
        while b.step() {}
        #expect(a["early"] == .string("b"))
        #expect(a["late"] == .string("a"))
        #expect(b["late"] == .string("a"))
    }

    @Test func `takes the middle of a request for the time of its answer`() {
        let a = cloud.device()
        a["x"] = .integer(1)
        a.way = (200, 20_000)
        cloud.settle()
        let made = cloud.server.records[try! Key("x")]?.stamp.timestamp.milliseconds
        #expect(made == Int64(1_799_999_990_100))
    }

    @Test func `keeps the best of what it measured, and follows a server whose clock is set`() {
        let a = cloud.device()
        a.way = (10, 10)
        cloud.settle()
        func error() -> Int64 { a.engine.clock.milliseconds(at: a.reading) - cloud.serverNow }
        #expect(error() == 0)
        a.way = (0, 4_000)
        _ = a.requestSync()
        cloud.settle()
        #expect(error() == 0)
        cloud.serverClockError = 3_600_000
        _ = a.requestSync()
        cloud.settle()
        #expect(error().magnitude <= 2_000)
        a.way = (10, 10)
        _ = a.requestSync()
        cloud.settle()
        #expect(error() == 0)
    }

    @Test func `keeps the order of its own writes when the clock is set back between them`() {
        let a = cloud.device()
        let b = SteppedDevice(number: 9, cloud: cloud, clockError: Self.hours, policy: .timestamps)
        b["x"] = .integer(1)
        b.clockError = 0
        b["x"] = .integer(2)
        b["y"] = .integer(3)
        while b.step() {}
        cloud.settle()
        #expect(a["x"] == .integer(2))
        #expect(a["y"] == .integer(3))
    }

    @Test func `never has a write count as older than what its author had seen`() {
        let a = cloud.device()
        let b = cloud.device(clockError: -Self.hours)
        a["x"] = .integer(1)
        cloud.settle()
        b.goOffline()
        b["x"] = .integer(2)
        b.goOnline()
        cloud.settle()
        #expect(a["x"] == .integer(2))
    }

    @Test func `stamps anew what the server finds ahead of its time`() {
        let a = cloud.device()
        cloud.settle()
        a.goOffline()
        a["x"] = .integer(1)
        // The server's clock is set back, and its newest record is from long ago.
        cloud.serverClockError = -Self.hours
        a.goOnline()
        cloud.settle()
        #expect(cloud.server["x"] == nil)
        cloud.pass(milliseconds: 1_000)
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
    }

    @Test func `does not take the time of a push for its end where the way there was long`() {
        cloud.serverClockError = Self.hours
        let a = cloud.device()
        cloud.settle()
        a.goOffline()
        a["x"] = .integer(1)
        cloud.serverClockError = 0
        a.pushMilliseconds = 150_000
        a.goOnline()
        cloud.settle()
        #expect(cloud.server["x"] == nil)
        #expect((a.engine.clock.milliseconds(at: a.reading) - cloud.serverNow).magnitude <= 10)
        a.pushMilliseconds = 0
        cloud.pass(milliseconds: 1_000)
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
    }

    @Test func `learns of a push without an answer from what it asks for afterwards alone`() {
        let a = cloud.device()
        a.buffersStreams = true
        cloud.settle()
        cloud.pass(milliseconds: ConnectingStream.patienceMilliseconds)
        cloud.settle()
        a.receive(.streamEnded(a.engine.link.stream ?? 0, nil))
        cloud.pass(milliseconds: Backoff.firstMilliseconds)
        cloud.settle()
        #expect(a.engine.link.stream != nil)
        a.losesAnswers = true
        a["x"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
        a.bringStream()
        #expect(a.engine.isLive)
        #expect(a.engine.outbox.unknownPush != nil)
        a.losesAnswers = false
        a.cut()
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        #expect(a.engine.outbox.unknownPush == nil)
    }

    @Test func `keeps two transactions apart to which two processes gave one time`() {
        let reading = ClockReading(wall: 1_000, uptime: 1_000, boot: 1)
        var clock = DeviceClock(
            correction: ClockCorrection(reading: reading, serverMilliseconds: 9_000, doubt: 0))
        let device = DeviceID(rawValue: 1)
        let (first, second) = (
            Stamp(HybridTimestamp(milliseconds: 500), device, digest: 2),
            Stamp(HybridTimestamp(milliseconds: 500), device, digest: 1)
        )
        func made(at uptime: Int64) -> ProvisionalStamp {
            ProvisionalStamp(
                madeAt: ClockReading(wall: uptime, uptime: uptime, boot: 1), seen: .zero)
        }
        let final = clock.finalize([first: made(at: 500), second: made(at: 600)], at: reading)
        #expect(final[first] == HybridTimestamp(milliseconds: 8_500))
        #expect(final[second] == HybridTimestamp(milliseconds: 8_600))
    }

    @Test func `keeps the order of writes of two processes, each with an uptime of its own`() {
        let reading = ClockReading(wall: 9_000, uptime: 9_000, boot: 1)
        var clock = DeviceClock(
            correction: ClockCorrection(reading: reading, serverMilliseconds: 9_000, doubt: 0))
        let device = DeviceID(rawValue: 1)
        var made: [Stamp: ProvisionalStamp] = [:]
        // The first one began earlier, and wrote last.
        for (wall, boot): (Int64, UInt64) in [(1_400, 1), (3_600, 1), (8_000, 2), (9_000, 1)] {
            made[Stamp(HybridTimestamp(milliseconds: wall), device)] = ProvisionalStamp(
                madeAt: ClockReading(
                    wall: wall, uptime: boot == 1 ? wall : wall - 7_900, boot: boot),
                seen: .zero)
        }
        for (old, new) in clock.finalize(made, at: reading) { #expect(new == old.timestamp) }
    }

    @Test func `keeps a write later than one whose answer was lost, on a server that is set back`()
    {
        let a = cloud.device()
        cloud.settle()
        a.holdsStream = true
        a.losesAnswers = true
        a["x"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
        cloud.pass(milliseconds: 5_000)
        a["x"] = .integer(2)
        a.losesAnswers = false
        cloud.serverClockError -= 300_000
        for _ in 0..<5 {
            cloud.pass(milliseconds: 60_000)
            cloud.settle()
        }
        #expect(cloud.server["x"] == .integer(2))
        #expect(a["x"] == .integer(2))
    }
}
