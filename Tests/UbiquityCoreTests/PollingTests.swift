// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `A device that cannot have a stream` {
    let cloud = SteppedCloud()
    private static let tooMany = LinkFailure(
        .tooManyStreams(retryAfterMilliseconds: 30_000), "the account has too many open streams")

    private func pollingDevice() -> SteppedDevice {
        let device = cloud.device()
        device.streamFailure = Self.tooMany
        return device
    }

    /// Lets time pass as a driver does.
    private func wait(milliseconds: Int64) {
        let end = cloud.now + milliseconds
        while cloud.now < end {
            cloud.settle()
            let wakes = cloud.devices.compactMap { device in
                device.engine.nextWake.map { $0 - device.reading.uptime }
            }
            cloud.pass(milliseconds: max(1, min(wakes.min() ?? .max, end - cloud.now)))
        }
        cloud.settle()
    }

    @Test func `sends what it writes at once, hears of others, and says how`() {
        let (a, b) = (pollingDevice(), cloud.device())
        a["x"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["x"] == .integer(1))
        #expect(a.engine.status.link.state == .polling)
        #expect(a.engine.status.link.lastError == Self.tooMany.detail)
        b["y"] = .integer(2)
        wait(milliseconds: 60_000)
        #expect(a["y"] == .integer(2))
        #expect(a.engine.status.pendingKeys.isEmpty)
        #expect(a.engine.ownRecords.isEmpty)
    }

    @Test func `asks at pauses that grow to a minute, and soon again when something happens`() {
        let (a, b) = (pollingDevice(), cloud.device())
        wait(milliseconds: 300_000)
        let before = a.polls
        wait(milliseconds: 600_000)
        #expect((8...25).contains(a.polls - before))
        b["x"] = .integer(1)
        for _ in 0..<60 where a["x"] == nil { wait(milliseconds: 1_000) }
        #expect(a["x"] == .integer(1))
        b["x"] = .integer(2)
        wait(milliseconds: 5_000)
        #expect(a["x"] == .integer(2))
    }

    @Test func `gets its round trips`() {
        let (a, b) = (pollingDevice(), cloud.device())
        wait(milliseconds: 300_000)
        b["x"] = .integer(1)
        cloud.settle()
        let request = a.requestSync()
        wait(milliseconds: 1_000)
        #expect(a.finished[request] == .some(nil))
        #expect(a["x"] == .integer(1))
    }

    @Test func `takes the stream when it can`() {
        let a = pollingDevice()
        wait(milliseconds: 10_000)
        a.streamFailure = nil
        wait(milliseconds: 31_000)
        #expect(a.engine.status.link.state == .connected)
        let polls = a.polls
        wait(milliseconds: 300_000)
        #expect(a.polls == polls)
    }

    @Test func `does not wait for a stream that says nothing`() {
        let (a, b) = (cloud.device(), cloud.device())
        a.buffersStreams = true
        a["x"] = .integer(1)
        b["y"] = .integer(2)
        wait(milliseconds: 15_000)
        #expect(cloud.server["x"] == .integer(1))
        #expect(a["y"] == .integer(2))
        #expect(a.engine.status.link.state == .polling)
        // The server is not to blame, neither now nor when the stream is given up.
        #expect(a.engine.status.link.lastError == SyncEngine.streamHeldBack)
        a.receive(
            .streamEnded(a.engine.link.stream ?? 0, LinkFailure(.timedOut, "it does not answer")))
        cloud.settle()
        #expect(a.engine.status.link.state == .polling)
        #expect(a.engine.status.link.lastError == SyncEngine.streamHeldBack)
    }

    @Test func `gets its round trip though the server ends its stream before it is ready`() {
        let a = cloud.device()
        a.buffersStreams = true
        a["x"] = .integer(1)
        let request = a.requestSync()
        cloud.settle()
        #expect(a.finished[request] == nil)
        a.receive(.streamEnded(a.engine.link.stream ?? 0, nil))
        cloud.settle()
        #expect(a.finished[request] == .some(nil))
        #expect(cloud.server["x"] == .integer(1))
    }

    private static let gone = LinkFailure(.cursorGone(isOtherHistory: false), "forgotten")

    /// A device with a silent stream and a poll under way.
    private func deviceWithBoth() throws -> (SteppedDevice, stream: Int, pull: Int) {
        let a = cloud.device()
        a["x"] = .integer(1)
        cloud.settle()
        a.buffersStreams = true
        a.cut()
        wait(milliseconds: 15_000)
        a.holdsPulls = true
        var both = (pull: pull(of: a), stream: a.engine.link.stream)
        // Its pauses are random.
        for _ in 0..<60 where both.pull == nil || both.stream == nil {
            wait(milliseconds: 1_000)
            both = (pull(of: a), a.engine.link.stream)
        }
        return try (a, #require(both.stream), #require(both.pull))
    }

    /// Has it poll.
    private func pull(of device: SteppedDevice) -> Int? {
        _ = device.requestSync()
        cloud.settle()
        return device.engine.link.pull?.number
    }

    @Test(arguments: [false, true])
    func `gets its round trip though a stream and a poll both hear that its cursor is forgotten`(
        isStreamFirst: Bool
    ) throws {
        let (a, stream, pull) = try deviceWithBoth()
        let request = a.requestSync()
        if isStreamFirst { a.receive(.streamEnded(stream, Self.gone)) }
        a.receive(.pullFailed(pull, Self.gone))
        if !isStreamFirst { a.receive(.streamEnded(stream, Self.gone)) }
        a.answer(pulls: false)
        wait(milliseconds: 2_000)
        #expect(a.finished[request] == .some(nil))
        #expect(a["x"] == .integer(1))
    }

    @Test
    func `does not begin anew once more when its stream hears late of what its poll has heard`()
        throws
    {
        let (a, stream, pull) = try deviceWithBoth()
        a.receive(.pullFailed(pull, Self.gone))
        a.answer(pulls: false)
        let b = cloud.device()
        b["y"] = .integer(2)
        wait(milliseconds: 2_000)
        #expect(a["y"] == .integer(2))
        a.receive(.streamEnded(stream, Self.gone))
        #expect(a.engine.snapshotReason == nil)
    }

    @Test
    func `is told that its cursor is forgotten by a server that has not even the whole store`()
        throws
    {
        let (a, stream, pull) = try deviceWithBoth()
        a.receive(.streamEnded(stream, Self.gone))
        a.receive(.pullFailed(pull, Self.gone))
        a.answer(pulls: false)
        a.holdsPulls = true
        let request = a.requestSync()
        let next = try #require(self.pull(of: a))
        #expect(a.finished[request] == nil)
        a.receive(.pullFailed(next, Self.gone))
        while a.step() {}
        #expect(a.finished[request] == .some(Self.gone))
    }

    @Test func `offers all that it has if either of them hears of another history`() throws {
        let (a, stream, pull) = try deviceWithBoth()
        cloud.replaceServer(by: SteppedServer(epoch: 9), cuts: false)
        a.receive(.pullFailed(pull, Self.gone))
        a.receive(.streamEnded(stream, LinkFailure(.cursorGone(isOtherHistory: true), "another")))
        a.answer(pulls: false)
        wait(milliseconds: 2_000)
        #expect(cloud.server["x"] == .integer(1) && a["x"] == .integer(1))
    }

    @Test func `is told that a round trip failed when polls fail`() {
        let a = pollingDevice()
        wait(milliseconds: 10_000)
        a.goOffline()
        let request = a.requestSync()
        wait(milliseconds: 2_000)
        #expect(a.finished[request]??.kind == .unreachable)
        a.goOnline()
        a["x"] = .integer(1)
        wait(milliseconds: 1_000)
        #expect(cloud.server["x"] == .integer(1))
    }

    @Test func `sends again what a restored server has forgotten`() {
        let a = pollingDevice()
        wait(milliseconds: 10_000)
        let backup = cloud.server
        a["x"] = .integer(1)
        cloud.settle()
        var restored = backup
        restored.epoch += 1
        cloud.replaceServer(by: restored)
        wait(milliseconds: 70_000)
        #expect(cloud.server["x"] == .integer(1))
    }

    @Test func `does not take from a pull what its stream has not brought`() {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        a.holdsStream = true
        b["x"] = .integer(1)
        cloud.settle()
        let cursor = a.engine.meta.cursor
        let request = a.requestSync()
        while a.step() {}
        #expect(a["x"] == nil)
        #expect(a.engine.meta.cursor == cursor)
        #expect(a.finished[request] == nil)
        a.holdsStream = false
        cloud.settle()
        #expect(a["x"] == .integer(1))
        #expect(a.finished[request] == .some(nil))
    }

    @Test func `opens a stream again that lags behind and is silent`() {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        a.holdsStream = true
        b["x"] = .integer(1)
        cloud.settle()
        let request = a.requestSync()
        wait(milliseconds: 5_000)
        #expect(a["x"] == .integer(1))
        #expect(a.finished[request] == .some(nil))
    }

    @Test func `makes pushes smaller after a time-out, and greater again after a success`() throws {
        let a = cloud.device()
        cloud.settle()
        a.goOffline()
        for number in 0..<64 { a["k\(number)"] = .data([UInt8](repeating: 7, count: 1_000)) }
        cloud.settle()
        a.pushBytesThatTimeOut = 10_000
        a.goOnline()
        wait(milliseconds: 120_000)
        #expect(a.engine.status.pendingKeys.isEmpty)
        #expect(cloud.server.records.count == 64)
        a.pushBytesThatTimeOut = .max
        let pushes = cloud.server.pushes
        for round in 0..<40 {
            a["x"] = .integer(Int64(round))
            cloud.settle()
        }
        for number in 0..<64 { a["k\(number)"] = .data([UInt8](repeating: 8, count: 1_000)) }
        cloud.settle()
        #expect(cloud.server.pushes == pushes + 41)
    }

    @Test func `gets through a line that bears little, though what waits overlaps in time`() {
        let a = cloud.device()
        cloud.settle()
        a.goOffline()
        for number in 0..<8 {
            while a.step() {}
            cloud.pass(milliseconds: 10)
            a["again"] = .integer(Int64(number))
            a["k\(number)"] = .data([UInt8](repeating: 7, count: 1_000))
        }
        cloud.settle()
        a.pushBytesThatTimeOut = 1_500
        a.goOnline()
        wait(milliseconds: 300_000)
        #expect(a.engine.status.pendingKeys.isEmpty)
    }

    @Test func `makes pushes smaller if a proxy does not accept large ones`() {
        let a = cloud.device()
        cloud.settle()
        a.goOffline()
        for number in 0..<64 { a["k\(number)"] = .data([UInt8](repeating: 7, count: 1_000)) }
        cloud.settle()
        a.pushBytesTooLarge = 10_000
        a.goOnline()
        wait(milliseconds: 120_000)
        #expect(a.engine.status.pendingKeys.isEmpty)
        #expect(cloud.server.records.count == 64)
    }

    @Test
    func `lets others pass if one write is too large by itself, says so, and rarely retries it`() {
        let a = cloud.device()
        cloud.settle()
        a.goOffline()
        a["big"] = .data([UInt8](repeating: 7, count: 20_000))
        for number in 0..<8 { a["k\(number)"] = .integer(1) }
        cloud.settle()
        a.pushBytesTooLarge = 10_000
        a.goOnline()
        wait(milliseconds: 120_000)
        a["later"] = .integer(1)
        wait(milliseconds: 600_000)
        #expect(a.engine.status.pendingKeys == [try! Key("big")])
        #expect(cloud.server["later"] == .integer(1))
        #expect(a.engine.status.link.lastError?.contains("\"big\"") == true)
        #expect(a.pushes.count < 12)
        let request = a.requestSync()
        wait(milliseconds: 60_000)
        #expect(a.finished[request]??.detail.contains("\"big\"") == true)
        a.pushBytesTooLarge = .max
        wait(milliseconds: SyncEngine.tooLargeRetryMilliseconds)
        #expect(a.engine.status.pendingKeys.isEmpty)
        #expect(a.engine.status.link.lastError == nil)
        #expect(a.pushes.count < 14)
    }

    @Test func `never splits a transaction, however small pushes have become`() throws {
        let a = cloud.device()
        cloud.settle()
        a.goOffline()
        var batch: [String: PropertyListValue?] = [:]
        for number in 0..<20 { batch["k\(number)"] = .data([UInt8](repeating: 7, count: 1_000)) }
        try a.write(batch)
        a["x"] = .integer(1)
        a.pushBytesThatTimeOut = 20_001
        a.goOnline()
        wait(milliseconds: 120_000)
        #expect(cloud.server.records.count == 21)
        #expect(Set(cloud.server.revisions.filter { $0.key.string != "x" }.values).count == 1)
    }
}
