// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// Bugs that the simulator found, each in the fewest steps that show it.
struct FoundBySimulationTests {
    private let cloud = SteppedCloud()

    @Test func `a write whose answer came, but not the stream, survives a restored server`() {
        let device = cloud.device()
        device["a"] = .integer(1)
        cloud.settle()
        let copy = cloud.server
        device.holdsStream = true
        device["a"] = .integer(2)
        cloud.settle()
        #expect(cloud.server["a"] == .integer(2))
        #expect(device.engine.status.pendingKeys.isEmpty)

        device.holdsStream = false
        var restored = copy
        restored.epoch += 1
        cloud.replaceServer(by: restored)
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        #expect(cloud.server["a"] == .integer(2))
        #expect(device["a"] == .integer(2))
    }

    @Test(arguments: [false, true])
    func `a write whose answer came when the server was restored already survives`(
        isReplaced: Bool
    ) {
        let device = cloud.device()
        device["b"] = .integer(1)
        cloud.settle()
        let copy = cloud.server
        (device.holdsAnswers, device.holdsStream) = (true, true)
        device["a"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["a"] == .integer(1))

        var restored = copy
        restored.epoch += 1
        cloud.replaceServer(by: restored)
        device.holdsStream = false
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        #expect(device.engine.isLive)
        if isReplaced { device["a"] = .integer(2) }
        device.answer()
        cloud.settle()
        #expect(device["a"] == .integer(isReplaced ? 2 : 1))
        #expect(cloud.server["a"] == device["a"])
    }

    /// As a node reads what others committed at once.
    @Test func `no lost write stays if an event brings more than the push that lost`() {
        let (other, device) = (cloud.device(), cloud.device())
        device.isOnline = false
        device["a"] = .integer(1)
        device["b"] = .integer(1)
        cloud.pass(milliseconds: 5_000)
        other["a"] = .integer(2)
        cloud.settle()
        other["a"] = nil
        cloud.settle()
        // The whole store does not list the deletion.
        device.holdsStream = true
        device.goOnline()
        cloud.settle()
        #expect(cloud.server["b"] == .integer(1))
        #expect(device["a"] == .integer(1))
        other["c"] = .integer(1)
        cloud.settle()
        device.holdsStream = false
        cloud.settle()
        #expect(device["c"] == .integer(1))
        // The stream is silent; then a new one is opened.
        for _ in 0..<2 {
            cloud.pass(milliseconds: Backoff.maxMilliseconds)
            cloud.settle()
        }
        #expect(device["a"] == nil)
        #expect(device.engine.status.pendingKeys.isEmpty)
    }

    @Test func `what is stamped anew is later than what the server has answered`() {
        let device = cloud.device()
        cloud.settle()
        device.holdsStream = true
        device.holdsAnswers = true
        device["a"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["a"] == .integer(1))
        cloud.pass(milliseconds: 5_000)
        device["a"] = .integer(2)
        device.holdsAnswers = false
        device.answer()
        cloud.serverClockError = -300_000
        cloud.settle()
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        #expect(cloud.server["a"] == .integer(2))
    }

    @Test func `a write of another boot is the later one though the server's clock was set back`() {
        let device = cloud.device()
        cloud.settle()
        device.holdsStream = true
        device["a"] = .integer(1)
        cloud.settle()
        #expect(cloud.server["a"] == .integer(1))
        cloud.serverClockError = -300_000
        var restarted = device
        for boot in 2...3 as ClosedRange<UInt64> {
            cloud.pass(milliseconds: 1_000)
            restarted.goOffline()
            restarted = restarted.restarted(boot: boot)
            restarted.isOnline = false
            restarted["a"] = .integer(Int64(boot))
            while restarted.step() {}
        }
        restarted.goOnline()
        for _ in 0..<3 {
            while restarted.step() {}
            cloud.pass(milliseconds: Backoff.maxMilliseconds)
        }
        #expect(cloud.server["a"] == .integer(3))
    }

    @Test(arguments: [(0, -300_000), (-18_000_000, 0)] as [(Int64, Int64)])
    func `a write of another boot is the later one though its file could not be opened`(
        clockError: Int64, serverClockError: Int64
    ) {
        let first = cloud.device(clockError: clockError)
        first["a"] = .integer(1)
        cloud.settle()
        first.goOffline()
        cloud.pass(milliseconds: 5_000)
        first["a"] = .integer(2)
        while first.step() {}

        cloud.serverClockError = serverClockError
        cloud.pass(milliseconds: 5_000)
        let next = SteppedDevice(
            number: Int(first.id.rawValue), cloud: cloud, clockError: clockError,
            policy: .serverWins, disk: TestDisk(), isSignedIn: false, boot: 2)
        next.isOnline = false
        next.signIn(to: "other")
        first.disk.isUnreadable = true
        next.turn(to: "account", in: cloud, first.disk)
        next["a"] = .integer(3)
        while next.step() {}
        first.disk.isUnreadable = false
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        while next.step() {}
        #expect(next["a"] == .integer(3))
        next.goOnline()
        for _ in 0..<3 {
            while next.step() {}
            cloud.pass(milliseconds: Backoff.maxMilliseconds)
        }
        #expect(cloud.server["a"] == .integer(3))
        #expect(next["a"] == .integer(3))
    }

    @Test func `a write that loses to a deletion which the whole store does not list gives way`() {
        let (first, second) = (cloud.device(), cloud.device(policy: .timestamps))
        second.goOffline()
        second["a"] = .integer(1)
        cloud.pass(milliseconds: 1_000)
        first["a"] = .integer(2)
        cloud.settle()
        first["a"] = nil
        cloud.settle()
        second.goOnline()
        cloud.settle()
        #expect(cloud.server["a"] == nil)
        #expect(second["a"] == nil)
        #expect(second.engine.status.pendingKeys.isEmpty)
    }

    @Test func `a write that lost gives way though the stream begins beyond the answer's cursor`() {
        let (first, second) = (cloud.device(), cloud.device(policy: .timestamps))
        second.goOffline()
        second["a"] = .integer(1)
        cloud.pass(milliseconds: 1_000)
        first["a"] = .integer(2)
        cloud.settle()
        first["a"] = nil
        cloud.settle()
        second.buffersStreams = true
        second.losesAnswers = true
        second.goOnline()
        cloud.settle()
        cloud.pass(milliseconds: ConnectingStream.patienceMilliseconds)
        cloud.settle()
        #expect(second.engine.link.stream != nil)
        // The push is repeated, and the stream opened anew, without a poll that tells what came since.
        first["b"] = .integer(1)
        while first.step() {}
        (second.losesAnswers, second.holdsAnswers) = (false, true)
        second.receive(.hurry)
        while second.step() {}
        first["c"] = .integer(1)
        while first.step() {}
        second.receive(.streamEnded(second.engine.link.stream ?? 0, nil))
        second.holdsPulls = true
        cloud.pass(milliseconds: SyncEngine.hurryMilliseconds)
        while second.step() {}
        second.answer(pulls: false)
        second.bringStream()
        cloud.settle()
        #expect(second["c"] == .integer(1))
        #expect(second["a"] == nil)
        #expect(second.engine.ownRecords.isEmpty)
    }

    @Test func `a round trip waits for the write that is newer than the push under way`() {
        let device = cloud.device()
        cloud.settle()
        device.holdsAnswers = true
        device["a"] = .integer(1)
        cloud.settle()
        device.disk.isFull = true
        device["a"] = .integer(2)
        let request = device.requestSync()
        device.answer()
        cloud.settle()
        #expect(device.finished[request] == nil)
        device.disk.isFull = false
        cloud.pass(milliseconds: 1_000)
        cloud.settle()
        #expect(device.finished[request] == .some(nil))
        #expect(cloud.server["a"] == .integer(2))
    }

    @Test func `two processes that write in the same moment do not mix their transactions`() throws
    {
        let device = cloud.device()
        let helper = device.helper()
        cloud.settle()
        for round: Int64 in 1...20 {
            cloud.pass(milliseconds: 10)
            try device.write(["a": .integer(round), "b": .string("device \(round)")])
            try helper.write(["a": .integer(-round), "b": .string("helper \(round)")])
            while helper.step() || device.step() {}
            cloud.settle()
            let mine = PropertyListValue.string(ExactString("device \(round)"))
            let isMine = cloud.server["a"] == .integer(round)
            #expect(isMine == (cloud.server["b"] == mine))
            #expect(device["a"] == cloud.server["a"])
            #expect(device["b"] == cloud.server["b"])
        }
    }

    @Test func `the later write of two processes wins though the clock was set between them`() {
        let device = cloud.device(clockError: 18_000_000)
        device.goOffline()
        let helper = device.helper()
        helper.goOffline()
        device["a"] = .integer(1)
        cloud.pass(milliseconds: 1_000)
        (device.clockError, helper.clockError) = (0, 0)
        helper["a"] = .integer(2)
        while device.step() || helper.step() {}
        #expect(device["a"] == .integer(2))
        device.goOnline()
        cloud.settle()
        #expect(cloud.server["a"] == .integer(2))
    }

    @Test func `that a stamp became final does not make an earlier write the later one`() {
        let (earlier, later) = (
            write(1, at: 100, isFinal: false), write(2, at: 200, isFinal: false)
        )
        // In the future: what was written in a boot before counts as made when the error is known.
        let final = write(1, at: 900, isFinal: true)
        var entry = Entry()
        entry.pending = later
        entry.rebase(
            onto: StoredEntry(key: earlier.record.key, pending: final), base: earlier,
            keepConfirmed: false, isEarlier: { $0.record.stamp < $1.record.stamp })
        #expect(entry.pending?.record == later.record)
        entry.pending = final
        entry.rebase(
            onto: StoredEntry(key: earlier.record.key, pending: later), base: earlier,
            keepConfirmed: false, isEarlier: { $0.record.stamp < $1.record.stamp })
        #expect(entry.pending == later)
    }

    private func write(_ value: Int64, at milliseconds: Int64, isFinal: Bool) -> PendingWrite {
        let stamp = Stamp(HybridTimestamp(milliseconds: milliseconds), DeviceID(rawValue: 1))
        let reading = ClockReading(wall: milliseconds, uptime: milliseconds, boot: 1)
        return PendingWrite(
            record: Record(key: try! Key("k"), content: .value(.integer(value)), stamp: stamp),
            transaction: 7,
            provisional: isFinal ? nil : ProvisionalStamp(madeAt: reading, seen: .zero))
    }

    @Test func `a follower that is signed in again is as connected as the leader`() {
        let device = cloud.device()
        let helper = device.helper()
        cloud.settle()
        while helper.step() {}
        #expect(helper.engine.status.link.state == .connected)
        helper.signOut()
        #expect(helper.engine.status.link.state == .signedOut)
        helper.signIn()
        #expect(helper.engine.status.link.state == .connected)
    }

    @Test func `a follower's round trip brings what another device wrote before it`() {
        let (device, other) = (cloud.device(), cloud.device())
        let helper = device.helper()
        func settle() {
            cloud.settle()
            while helper.step() { cloud.settle() }
        }
        settle()
        device.holdsStream = true
        other["a"] = .integer(1)
        settle()
        let request = helper.requestSync()
        settle()
        #expect(helper.finished[request] == nil)
        device.holdsStream = false
        settle()
        #expect(helper.finished[request] == .some(nil))
        #expect(helper["a"] == .integer(1))
    }

    @Test func `a clock that knows its error does not go on from stamps that were far ahead`() {
        let now = ClockReading(wall: 18_000_000, uptime: 1_000, boot: 1)
        var clock = DeviceClock(correction: nil)
        #expect(clock.issue(at: now).timestamp == HybridTimestamp(milliseconds: 18_000_000))
        clock.adopt(ClockCorrection(reading: now, serverMilliseconds: 5_000), at: now)
        #expect(clock.issue(at: now).timestamp == HybridTimestamp(milliseconds: 5_000))
    }

    @Test func `a deletion of what was deleted and forgotten is done, not refused`() {
        let (first, second) = (cloud.device(), cloud.device())
        first["a"] = .integer(1)
        cloud.settle()
        second.goOffline()
        second["a"] = nil
        cloud.pass(milliseconds: 1_000)
        first["a"] = nil
        cloud.settle()
        var server = cloud.server
        server.compactTombstones()
        cloud.replaceServer(by: server)
        _ = second.takeNotices()
        second.goOnline()
        cloud.settle()
        #expect(second["a"] == nil)
        #expect(second.disk.refused.isEmpty)
        #expect(second.takeNotices().isEmpty)
    }

    @Test func `what replaced a refused write is taken, whatever was forgotten meanwhile`() {
        cloud.setLimits { $0.storeBytesMax = 100 }
        let (first, second) = (cloud.device(), cloud.device())
        cloud.settle()
        second.goOffline()
        let long = PropertyListValue.string(ExactString(String(repeating: "x", count: 60)))
        second["k"] = long
        cloud.pass(milliseconds: 1_000)
        second["z"] = .integer(1)
        first["x"] = long
        cloud.settle()
        second.goOnline()
        second.holdsAnswers = true
        cloud.settle()
        #expect(cloud.server["k"] == nil && cloud.server["z"] == .integer(1))
        second["k"] = .integer(2)
        second.answer()
        second.goOffline()
        cloud.pass(milliseconds: 1_000)
        first["x"] = nil
        cloud.settle()
        cloud.compactTombstones()
        second.goOnline()
        cloud.settle()
        #expect(cloud.server["k"] == .integer(2))
        #expect(second.disk.refused.isEmpty)
    }

    @Test func `what was deleted twice and forgotten stays deleted until the stream has told`() {
        let (first, second) = (cloud.device(), cloud.device())
        first["a"] = .integer(1)
        cloud.settle()
        second.holdsStream = true
        second["a"] = nil
        cloud.pass(milliseconds: 1_000)
        first["a"] = nil
        while first.step() {}
        cloud.compactTombstones()
        _ = second.takeNotices()
        while second.step() {}
        #expect(second["a"] == nil)
        #expect(second.engine.status.pendingKeys.isEmpty)
        second.cut()
        second.holdsStream = false
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        cloud.settle()
        #expect(second["a"] == nil)
        #expect(second.takeNotices().isEmpty)
        #expect(second.engine.ownRecords.isEmpty)
    }

    @Test func `a round trip brings what a write lost to that was made after it was asked for`() {
        let device = deviceThatIsBeingAnswered(afterDeletionOf: "a")
        let request = device.requestSync()
        write(on: device)
        device.disk.isFull = true
        device.answer()
        device.holdsPulls = true
        cloud.pass(milliseconds: 1_000)
        while device.step() {}
        device.disk.isFull = false
        device.receive(.hurry)
        while device.step() {}
        #expect(cloud.server["b"] == .integer(1))
        #expect(device["a"] == .integer(1))
        #expect(device.finished[request] == nil)
        device.answer()
        finish(request, of: device)
        #expect(device.finished[request] == .some(nil))
        #expect(device["a"] == nil)
    }

    @Test func `a round trip brings what a write lost to that a restored server is sent again`() {
        let copy = cloud.server
        let device = deviceThatIsBeingAnswered(afterDeletionOf: "a")
        write(on: device)
        device.answer()
        while device.step() {}
        #expect(cloud.server["b"] == .integer(1))
        #expect(device["a"] == .integer(1))
        var restored = copy
        restored.epoch += 1
        cloud.replaceServer(by: restored)
        cloud.pass(milliseconds: Backoff.maxMilliseconds)
        while cloud.devices[0].step() {}
        let request = device.requestSync()
        finish(request, of: device)
        #expect(device.finished[request] == .some(nil))
        #expect(device["a"] == nil)
    }

    /// A device that polls. Its first request was answered one second after another device deleted a
    /// key, which it is not told; the answer is under way for ten seconds.
    private func deviceThatIsBeingAnswered(afterDeletionOf key: String) -> SteppedDevice {
        let (first, device) = (cloud.device(), cloud.device(policy: .timestamps))
        first[key] = .integer(2)
        while first.step() {}
        first[key] = nil
        while first.step() {}
        cloud.pass(milliseconds: 1_000)
        device.streamFailure = LinkFailure(.tooManyStreams(retryAfterMilliseconds: 600_000), "")
        device.holdsPulls = true
        while device.step() {}
        return device
    }

    /// Its clock will be taken for five seconds faster than it is, and these writes for earlier ones.
    private func write(on device: SteppedDevice) {
        device["a"] = .integer(1)
        device["b"] = .integer(1)
        cloud.pass(milliseconds: 10_000)
    }

    private func finish(_ request: Int, of device: SteppedDevice) {
        for _ in 0..<100 {
            while device.finished[request] == nil, device.step() {}
            if device.finished[request] != nil { return }
            cloud.pass(milliseconds: 1_000)
        }
    }
}
