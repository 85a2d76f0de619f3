// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// A server that keeps no rule can withhold and delete, show an older value, and make up a counter's
/// number. It can do nothing else.
@Suite struct `A hostile server of a sealed account` {
    let cloud = SteppedCloud()
    let keyring = Keyring([1: .account(Self.key(1))])
    /// After a rotation.
    let newer = Keyring([1: .account(Self.key(1)), 2: .account(Self.key(2))])

    static func key(_ byte: UInt8) -> Bytes32 {
        Bytes32([UInt8](repeating: byte, count: Bytes32.count))!
    }

    private func sealer(_ keyring: Keyring, of store: String = "store") throws -> Sealer {
        try #require(keyring.sealer(of: StoreIdentifier(store)))
    }

    /// Of an account that is sealed from its first day, and has a value.
    private func devices(_ keyring: Keyring? = nil) -> (SteppedDevice, SteppedDevice) {
        let keyring = keyring ?? self.keyring
        cloud.mark(keyring.current)
        let (a, b) = (cloud.device(), cloud.device())
        for device in [a, b] { device.keep(keyring) }
        a["x"] = .string("good")
        a["y"] = .string("other")
        cloud.settle()
        return (a, b)
    }

    private func record(_ key: String) throws -> Record {
        try #require(cloud.server.records[try Key(key)])
    }

    private func settle(_ devices: SteppedDevice...) {
        while devices.reduce(false, { $1.step() || $0 }) {}
    }

    private func isAllSealed() -> Bool {
        cloud.server.records.values.allSatisfy { $0.content == .deleted || $0.content.isSealed }
    }

    // MARK: - Records

    @Test func `cannot move a box to another key, part, time, device or store`() throws {
        let (a, b) = devices()
        let (x, y) = (try record("x"), try record("y"))
        let before = a.engine.contents
        var later = x
        later.stamp.timestamp = x.stamp.timestamp.next
        var ofOther = x
        ofOther.stamp = Stamp(x.stamp.timestamp.next, DeviceID(rawValue: 7), digest: x.stamp.digest)
        let part = Record(
            key: x.key.part(PartID("v1")!), content: x.content, stamp: x.stamp)
        let entry = Record(
            key: x.key.part(PartID("e1.0000001")!), content: x.content, stamp: x.stamp)
        var clear = later
        clear.content = .value(.string("of another store"))
        let ofStore = try sealer(keyring, of: "other").seal(clear)
        let forged = [
            later, ofOther, part, entry, ofStore,
            Record(key: x.key, content: y.content, stamp: y.stamp),
            Record(key: try Key("new"), content: x.content, stamp: x.stamp),
        ]
        for record in forged {
            cloud.forge(record)
            settle(a, b)
            #expect(a.engine.contents == before, "\(record)")
            #expect(b.engine.contents == before, "\(record)")
        }
        // They go on.
        a["x"] = .string("better")
        settle(a, b)
        #expect(b["x"] == .string("better"))
    }

    @Test func `makes up no value, neither of a new key nor in an answer to a push`() throws {
        let (a, b) = devices()
        let foreign = try sealer(Keyring([1: .account(Self.key(9))]))
        func forged(_ key: String) throws -> Record {
            let stamp = Stamp(
                HybridTimestamp(milliseconds: cloud.now + 3_600_000), DeviceID(rawValue: 2))
            return foreign.seal(
                Record(key: try Key(key), content: .value(.string("forged")), stamp: stamp))
        }
        cloud.forge(try forged("new"))
        settle(a, b)
        #expect(a["new"] == nil && b["new"] == nil)
        a.holdsStream = true
        cloud.forge(try forged("x"))
        a["x"] = .string("mine")
        settle(a)
        #expect(a["x"] == .string("good"))
        // The app still gets what it wrote.
        #expect(a.disk.refused.map(\.record.content) == [.value(.string("mine"))])
    }

    @Test func `turns no key into a counter`() throws {
        let (a, b) = devices()
        try a.count(Key("count"), by: 3)
        cloud.settle()
        let count = try #require(cloud.server.records.values.first { $0.key.isCount })
        let x = try record("x")
        var later = x.stamp
        later.timestamp = later.timestamp.next
        guard case .value(.sealed(let box)) = count.content else {
            Issue.record("the count is not sealed")
            return
        }
        var bytes = box.bytes
        bytes[bytes.count - 1] ^= 1
        for content in [count.content, .value(.sealed(SealedBox(generation: 1, bytes: bytes)))] {
            for part in ["c1", "c-1", "c+", "c-+"] {
                cloud.forge(Record(key: x.key.part(PartID(part)!), content: content, stamp: later))
                settle(a, b)
                #expect(a["x"] == .string("good") && b["x"] == .string("good"))
            }
        }
        #expect(b["count"] == 3)
    }

    @Test(arguments: [false, true])
    func `sends clear values to no device, by a stream or by polls`(polls: Bool) throws {
        let (a, _) = devices()
        let new = cloud.device()
        if polls {
            for device in [a, new] {
                device.streamFailure = LinkFailure(
                    .tooManyStreams(retryAfterMilliseconds: 30_000), "too many")
                device.cut()
            }
        }
        var forged = try record("x")
        forged.content = .value(.string("forged"))
        forged.stamp.timestamp = forged.stamp.timestamp.next
        cloud.forge(forged)
        new.keep(keyring)
        for _ in 0..<5 {
            cloud.pass(milliseconds: 120_000)
            settle(a, new)
        }
        #expect(a["x"] == .string("good"))
        #expect(new["x"] == nil && new["y"] == nil)
        #expect(new.engine.status.link.lastError?.contains("not sealed") == true)
    }

    // MARK: - What is set aside

    private func setAside(_ device: SteppedDevice) -> [String: SetAside.Reason] {
        Dictionary(
            uniqueKeysWithValues: device.engine.status.setAside.reasons.map { ($0.key.string, $0.value) })
    }

    @Test func `swaps and damages no boxes without a word`() throws {
        let (a, b) = devices()
        let (x, y) = (try record("x"), try record("y"))
        cloud.forge(Record(key: x.key, content: y.content, stamp: x.stamp))
        cloud.forge(Record(key: y.key, content: x.content, stamp: y.stamp))
        var new = cloud.device()
        new.keep(keyring)
        settle(a, b, new)
        #expect(new["x"] == nil && new["y"] == nil && a["x"] == .string("good"))
        for device in [a, b, new] {
            #expect(setAside(device) == ["x": .unopened, "y": .unopened])
            #expect(device.reports.count == 1 && device.reports[0].contains("\"x\" and \"y\""))
        }
        new = new.restarted()
        settle(new)
        #expect(setAside(new).count == 2 && new.reports.count == 1)
        // To write again what a device has had all along is a change now.
        a["x"] = .string("good")
        a["y"] = nil
        settle(a, b, new)
        #expect(new["x"] == .string("good") && b["y"] == nil)
        for device in [a, b, new] { #expect(setAside(device).isEmpty) }
        #expect(try record("x").stamp.timestamp > x.stamp.timestamp && isAllSealed())
    }

    @Test(arguments: [false, true])
    func `shows nobody an older value than the one agreed on`(polls: Bool) throws {
        let (a, b) = devices()
        let old = try record("x")
        a["x"] = .string("better")
        cloud.settle()
        if polls {
            b.streamFailure = LinkFailure(
                .tooManyStreams(retryAfterMilliseconds: 30_000), "too many")
            b.cut()
        }
        cloud.forge(old)
        for _ in 0..<3 {
            cloud.pass(milliseconds: 120_000)
            settle(a, b)
        }
        for device in [a, b] {
            #expect(device["x"] == .string("better") && setAside(device) == ["x": .older])
        }
        #expect(try record("x") == old)
        b["x"] = .string("better")
        for _ in 0..<3 {
            cloud.pass(milliseconds: 120_000)
            settle(a, b)
        }
        #expect(setAside(a).isEmpty && setAside(b).isEmpty)
        #expect(a["x"] == .string("better") && cloud.server["x"] != nil)
    }

    @Test func `shows nobody an older value by forgetting a cursor`() throws {
        let (a, b) = devices()
        let old = try record("x")
        a["x"] = .string("better")
        a["y"] = nil
        cloud.settle()
        b.isOnline = false
        b.cut()
        a["z"] = 1
        settle(a)
        a["z"] = nil
        settle(a)
        cloud.compactTombstones()
        cloud.forge(old)
        b.isOnline = true
        cloud.pass(milliseconds: 120_000)
        let pushes = b.pushes.count
        settle(b)
        #expect(b["x"] == .string("better") && setAside(b) == ["x": .older])
        #expect(b.pushes.count == pushes && b.engine.waitingRecords.isEmpty)
    }

    // MARK: - Keys

    @Test func `keeps no box of an older key among the values`() throws {
        let (a, b) = devices()
        let old = try record("x")
        cloud.mark(2)
        for device in [a, b] { device.keep(newer) }
        try cloud.seal(with: sealer(newer))
        cloud.settle()
        a["x"] = .string("better")
        cloud.settle()
        #expect(b["x"] == .string("better"))
        cloud.forge(old)
        let new = cloud.device()
        new.keep(newer)
        settle(a, b, new)
        #expect(a["x"] == .string("better") && b["x"] == .string("better"))
        #expect(new["x"] == nil)
        for device in [a, b, new] {
            #expect(device.engine.status.link.lastError?.contains("another key") == true)
        }
    }

    @Test(arguments: [0, 1] as [UInt32])
    func `gets nothing if it names an older key, or none`(generation: UInt32) throws {
        let (a, b) = devices(newer)
        let before = cloud.server.records
        let pushes = a.pushes.count
        cloud.mark(generation)
        a["x"] = .string("secret")
        for _ in 0..<5 {
            cloud.pass(milliseconds: 120_000)
            settle(a, b)
        }
        #expect(a.pushes.count == pushes && cloud.server.records == before)
        #expect(a["x"] == .string("secret") && a.engine.isSaved)
        cloud.mark(2)
        cloud.pass(milliseconds: 120_000)
        settle(a, b)
        #expect(b["x"] == .string("secret") && isAllSealed())
    }

    @Test func `gets everything back, sealed, after it has restored itself`() throws {
        let (a, b) = devices()
        var older = cloud.server
        a["x"] = .string("better")
        a["z"] = .string("new")
        a["y"] = nil
        cloud.settle()
        older.epoch += 1
        cloud.replaceServer(by: older)
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        for device in [a, b] {
            #expect(device["x"] == .string("better") && device["z"] == .string("new"))
            #expect(device["y"] == nil)
        }
        #expect(isAllSealed())
    }

    @Test func `cannot replay a mark, nor pass off its own`() throws {
        let (first, second) = (keyring.check, newer.check)
        func step(
            _ generation: UInt32, _ check: Bytes32?, proposal: Keyring? = nil
        ) throws -> SealingStep {
            var session = SealingSession(account: "A", keyring: newer, proposal: proposal)
            let step = session.mark(
                generation: generation, check: check, unsealed: [try StoreIdentifier("store")])
            let isAdopted = generation == proposal?.current && check == proposal?.check
            #expect(session.keyring == (isAdopted ? proposal : newer))
            return step
        }
        #expect(try step(1, first) == .restored && step(0, nil) == .restored)
        // Nothing is sealed for a mark of the same number that its keys did not make.
        for check in [first, Self.key(7), nil] { #expect(try step(2, check) == .getKey) }
        // A proposal is only adopted if the mark is its own.
        let proposal = try #require(newer.adding(Self.key(3), at: 1))
        #expect(try step(3, Self.key(7), proposal: proposal) == .getKey)
        #expect(try step(3, second, proposal: proposal) == .getKey)
        #expect(
            try step(3, proposal.check, proposal: proposal) == .seal(StoreIdentifier("store")))
        #expect(try step(1, first, proposal: proposal) == .restored)
    }

    @Test func `passes off no other recovery: each key has its own`() throws {
        let before = try #require(RecoveryKey([UInt8](repeating: 1, count: 20)))
        let after = try #require(RecoveryKey([UInt8](repeating: 2, count: 20)))
        let wrap = try #require(before.wrap(keyring))
        #expect(throws: KeyringRefusal.recoveryKeyOther) { try after.open(wrap) }
        // Who kept an old recovery key sees by the mark that its keys are not the account's.
        #expect(try before.open(wrap).check != newer.check)
        // A wrap in a handover's place opens as little.
        let secret = try #require(HandoverSecret([UInt8](repeating: 1, count: 16)))
        #expect(Handover(wrap, of: "account", with: secret) == nil)
    }

    // MARK: - Clocks

    private var far: Int64 { cloud.now + 400 * 86_400_000 }

    @Test func `drives no clock ahead when a stream has come up to date`() throws {
        let (a, b) = devices()
        let cursor = try #require(a.engine.meta.cursor)
        a.buffersStreams = true
        a.cut()
        cloud.pass(milliseconds: 120_000)
        a["x"] = .string("later")
        while a.step() {}
        let stream = try #require(a.engine.link.stream)
        a.receive(.streamReceived(stream, .ready(cursor, cloud.server.config(far))))
        while a.step() {}
        #expect(a.engine.status.link.lastError?.contains("more than a day") == true)
        a.buffersStreams = false
        try expectNow(a, b)
    }

    @Test func `drives no clock ahead when it says that a device's clock is`() throws {
        let (a, b) = devices()
        a.holdsAnswers = true
        a["x"] = .string("later")
        while a.step() {}
        let push = try #require(a.engine.pushInFlight)
        a.receive(.pushFailed(push.number, LinkFailure(.clockAhead(serverMilliseconds: far), "")))
        #expect(a.engine.status.link.lastError?.contains("more than a day") == true)
        a.holdsAnswers = false
        try expectNow(a, b)
    }

    private func deletion(_ key: String, at milliseconds: Int64) throws -> Record {
        let stamp = Stamp(HybridTimestamp(milliseconds: milliseconds), DeviceID(rawValue: 7))
        return Record(key: try Key(key), content: .deleted, stamp: stamp)
    }

    @Test func `stops no writes by a deletion that it dates in the future`() throws {
        let (a, b) = devices()
        cloud.forge(try deletion("y", at: cloud.now + 23 * 3_600_000))
        settle(a, b)
        for device in [a, b] {
            #expect(device["y"] == .string("other") && setAside(device) == ["y": .ahead])
            #expect(device.engine.status.link.state == .connected)
        }
        a["x"] = .string("later")
        settle(a, b)
        #expect(b["x"] == .string("later"))
        #expect(try record("x").stamp.timestamp.milliseconds < cloud.now + 60_000)
        a["y"] = .string("mine")
        settle(a, b)
        #expect(a["y"] == .string("other"))
        #expect(a.disk.refused.map(\.record.content) == [.value(.string("mine"))])
        // What an honest server may have.
        cloud.forge(try deletion("x", at: cloud.now + 59_000))
        settle(a, b)
        #expect(a["x"] == nil && b["x"] == nil)
    }

    @Test func `stops no writes by a clock that was ahead`() throws {
        let (a, b) = devices()
        cloud.serverClockError = 20 * 3_600_000
        for device in [a, b] { device.cut() }
        cloud.pass(milliseconds: 120_000)
        settle(a, b)
        cloud.forge(try deletion("y", at: cloud.serverNow))
        settle(a, b)
        #expect(a["y"] == nil && b["y"] == nil)
        cloud.serverClockError = 0
        for device in [a, b] { device.cut() }
        cloud.pass(milliseconds: 120_000)
        settle(a, b)
        a["x"] = .string("later")
        try expectNow(a, b)
        #expect(try record("x").stamp.timestamp.milliseconds < cloud.now)
    }

    /// Both devices have the later value, of the present.
    private func expectNow(_ a: SteppedDevice, _ b: SteppedDevice) throws {
        for _ in 0..<3 {
            cloud.pass(milliseconds: 120_000)
            cloud.settle()
        }
        #expect(b["x"] == .string("later"))
        #expect(try record("x").stamp.timestamp.milliseconds < cloud.now + 86_400_000)
        a["z"] = 1
        cloud.settle()
        #expect(try record("z").stamp.timestamp.milliseconds < cloud.now + 86_400_000)
    }
}
