// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `Devices of a sealed account` {
    let cloud = SteppedCloud()
    let keyring = Keyring([1: .account(Self.key(1))])

    static func key(_ byte: UInt8) -> Bytes32 {
        Bytes32([UInt8](repeating: byte, count: Bytes32.count))!
    }

    /// Seals the account and all that it has with a device, and has those that are online hear of it.
    private func seal(with device: SteppedDevice) throws {
        cloud.mark(1)
        device.keep(keyring)
        try cloud.seal(with: sealer(keyring))
        cloud.settle()
    }

    private func sealer(_ keyring: Keyring) throws -> Sealer {
        try #require(keyring.sealer(of: StoreIdentifier("store")))
    }

    /// An account that is sealed from its first day.
    private func devices() -> (SteppedDevice, SteppedDevice) {
        cloud.mark(1)
        let (a, b) = (cloud.device(), cloud.device())
        for device in [a, b] { device.keep(keyring) }
        cloud.settle()
        return (a, b)
    }

    private func record(_ key: String) -> Record? { cloud.server.records[try! Key(key)] }

    private var contents: [Content] { cloud.server.records.values.map(\.content) }

    @Test func `send values that only they can read`() throws {
        let (a, b) = devices()
        a["x"] = .string("secret")
        cloud.settle()
        #expect(b["x"] == .string("secret"))
        #expect(contents.count == 1 && contents.allSatisfy { $0.isSealed })
        b["x"] = nil
        cloud.settle()
        #expect(a["x"] == nil)
        #expect(contents == [.deleted])
        #expect(a.engine.isSaved && a.engine.waitingRecords.isEmpty)
        #expect(a.pushes.allSatisfy { $0.generation == 1 })
    }

    @Test func `give no digest that the server could compute, and repeat a write as it was`() throws
    {
        let (a, b) = devices()
        a.losesAnswers = true
        a["x"] = .integer(1)
        while a.step() {}
        a.cut()
        let sent = try #require(record("x"))
        let guess = ValueFingerprint.digest(of: [(key: try Key("x"), content: .value(.integer(1)))])
        #expect(sent.stamp.digest != guess)
        let again = a.restarted()
        again.keep(keyring)
        while again.step() {}
        cloud.settle()
        #expect(record("x") == sent)
        #expect(again.engine.waitingRecords.isEmpty)
        #expect(b["x"] == .integer(1))
    }

    // MARK: - Without the key

    @Test func `send nothing without the key, and go on with what was written when they have it`() {
        let (a, b) = devices()
        let locked = cloud.device()
        locked["x"] = .string("mine")
        cloud.settle()
        #expect(locked.engine.status.link.state == .locked)
        #expect(locked.pushes.isEmpty && contents.isEmpty)
        cloud.pass(milliseconds: 120_000)
        let request = locked.requestSync()
        while locked.step() {}
        #expect((locked.finished[request] ?? nil)?.kind == .sealed(generation: 1))
        a["y"] = .string("theirs")
        cloud.settle()
        #expect(locked["y"] == nil)
        locked.keep(keyring)
        cloud.settle()
        #expect(locked["y"] == .string("theirs"))
        #expect(a["x"] == .string("mine") && b["x"] == .string("mine"))
        #expect(contents.allSatisfy { $0.isSealed })
        #expect(locked.engine.status.link.state == .connected)
    }

    @Test func `send nothing clear to a server that called the account sealed, and takes it back`()
    {
        let (a, b) = (cloud.device(isSignedIn: false), cloud.device())
        a["x"] = .string("secret")
        a.signIn(isSealed: true)
        cloud.settle()
        #expect(a.engine.status.link.state == .locked)
        let request = a.requestSync()
        while a.step() {}
        #expect((a.finished[request] ?? nil)?.kind == .sealed(generation: 1))
        #expect(a.pushes.isEmpty && contents.isEmpty)
        a.signIn()
        cloud.settle()
        #expect(a.engine.status.link.state == .locked)
        // A person signs in anew, and allows it.
        a.signInInClear()
        cloud.settle()
        #expect(b["x"] == .string("secret"))
    }

    @Test(arguments: [false, true])
    func `send nothing clear to a server that refused a request and goes back`(restarts: Bool) {
        var (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        a.isOnline = false
        a["x"] = .string("secret")
        cloud.mark(1)
        a.isOnline = true
        cloud.pass(milliseconds: 120_000)
        let second = a.helper()
        while a.step() || second.step() {}
        #expect(a.engine.status.link.state == .locked && a.state.sealedAccounts == ["account"])
        #expect(a.engine.status.link.lastError == LinkStatus.lockedReason)
        // Its account is deleted and made anew, or its database is one from before.
        cloud.mark(0)
        if restarts { a = a.restarted() }
        for _ in 0..<3 {
            cloud.pass(milliseconds: 120_000)
            while a.step() || second.step() || b.step() {}
        }
        #expect(a.pushes.isEmpty && contents.isEmpty && a.engine.isSaved)
        #expect(a["x"] == .string("secret"))
        #expect(a.engine.status.link.state == .locked)
        // Another process of the device cannot send it either.
        a.receive(.leading(false))
        second.receive(.leading(true))
        second.happened(.accountRead(a.state))
        second["y"] = .string("secret")
        while second.step() || b.step() {}
        #expect(second.pushes.isEmpty && contents.isEmpty)
        // With the key it goes on, sealed.
        cloud.mark(1)
        for device in [second, b] { device.keep(keyring) }
        while second.step() || b.step() {}
        #expect(b["x"] == .string("secret") && b["y"] == .string("secret"))
        #expect(contents.allSatisfy { $0.isSealed })
    }

    @Test func `keep what they know of an account before a store's file has it`() throws {
        let a = cloud.device()
        cloud.settle()
        a["x"] = .string("secret")
        cloud.mark(1)
        cloud.pass(milliseconds: 120_000)
        var isNoted = false
        a.onNoteSealed = {
            isNoted = true
            #expect(a.disk.meta.generation == 0)
        }
        while a.step() {}
        #expect(isNoted && a.disk.meta.generation == 1)
    }

    @Test func `send what waits and what they have in clear when a person says so`() throws {
        let (a, b) = devices()
        a["x"] = .string("agreed")
        cloud.settle()
        a.isOnline = false
        a.cut()
        a["y"] = .string("waits")
        while a.step() {}
        // The account has ended, and its values are gone.
        cloud.replaceServer(by: SteppedServer(epoch: 9))
        a.isOnline = true
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        #expect(contents.isEmpty && a["x"] == .string("agreed") && b["x"] == .string("agreed"))
        a.signInInClear()
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        #expect(
            Set(contents) == [.value(.string("agreed")), .value(.string("waits"))])
        #expect(a.engine.waitingRecords.isEmpty && a.engine.isSaved)
        #expect(b.engine.generation == 1 && b["x"] == .string("agreed"))
    }

    @Test func `send nothing from a process that finds a key in the file that it has not`() {
        let (a, b) = (cloud.device(), cloud.device())
        cloud.settle()
        let helper = a.helper()
        // The command takes the key, and waits for the process that leads. The account is not sealed yet.
        helper.keep(keyring)
        let request = helper.requestSync()
        while helper.step() {}
        #expect(helper.finished[request] == nil)
        while a.step() || helper.step() {}
        #expect(a.engine.status.link.state == .locked)
        #expect(helper.finished[request] != nil)
        a["x"] = .string("secret")
        while a.step() || helper.step() {}
        #expect(a.pushes.isEmpty && contents.isEmpty)
        cloud.mark(1)
        for device in [a, b] { device.keep(keyring) }
        while a.step() || helper.step() || b.step() {}
        #expect(b["x"] == .string("secret"))
        #expect(contents.allSatisfy { $0.isSealed })
    }

    @Test
    func `send nothing to a server that says that the account is not sealed, or was set back`() {
        let (a, _) = devices()
        cloud.mark(0)
        a["x"] = .string("secret")
        cloud.settle()
        #expect(contents.isEmpty)
        #expect(a.engine.status.link.state == .waiting)
        cloud.mark(1)
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        #expect(contents.count == 1)
    }

    @Test func `take a server's word that there is a newer key for one connection alone`() {
        let (a, b) = devices()
        cloud.mark(9)
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        #expect(a.engine.status.link.state == .locked)
        cloud.mark(1)
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        a["x"] = .integer(1)
        cloud.settle()
        #expect(b["x"] == .integer(1))
    }

    // MARK: - An account that is sealed, or gets another key

    @Test(arguments: [false, true])
    func `keep what was there and what waits when an account is sealed`(isRotated: Bool) throws {
        let (a, b) = (cloud.device(), cloud.device())
        let away = cloud.device()
        if isRotated {
            cloud.mark(1)
            for device in [a, b, away] { device.keep(keyring) }
        }
        a["plain"] = .string("old")
        a["gone"] = .string("x")
        let dictionary = try Key("d")
        try a.write(merging: [
            dictionary: MergeOperation(
                .dictionary, from: nil, to: .dictionary(["one": 1, "two": 2, "three": 3])),
            Key("most"): MergeOperation(.maximum, from: nil, to: 5),
            Key("count"): MergeOperation(.counter, from: nil, to: 3),
        ])
        cloud.settle()
        away.isOnline = false
        away.cut()
        cloud.pass(milliseconds: 1_000)
        away["plain"] = .string("newer")
        away["gone"] = nil
        try away.write(merging: [
            dictionary: MergeOperation(
                .dictionary, from: away["d"],
                to: .dictionary(["one": 11, "three": 3, "four": 4])),
            Key("most"): MergeOperation(.maximum, from: 5, to: 7),
            Key("count"): MergeOperation(.counter, from: 3, to: 5),
        ])
        while away.step() {}
        var newer = keyring
        newer.roots[isRotated ? 2 : 1] = .account(Self.key(isRotated ? 2 : 1))
        cloud.mark(newer.current)
        for device in [a, b] { device.keep(newer) }
        try cloud.seal(with: sealer(newer))
        cloud.settle()
        #expect(b["plain"] == .string("old"))
        #expect(b["d"] == .dictionary(["one": 1, "two": 2, "three": 3]))
        #expect(b["most"] == 5 && b["count"] == 3)
        away.isOnline = true
        away.cut()
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        #expect(away.engine.status.link.state == .locked)
        away.keep(newer)
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        for device in [a, b, away] {
            #expect(device["plain"] == .string("newer"))
            #expect(device["gone"] == nil)
            #expect(device["d"] == .dictionary(["one": 11, "three": 3, "four": 4]))
            #expect(device["most"] == 7 && device["count"] == 5)
            #expect(device.engine.waitingRecords.isEmpty)
        }
        #expect(contents.allSatisfy { $0 == .deleted || $0.isSealed })
        let generations = contents.compactMap { content -> UInt32? in
            guard case .value(.sealed(let box)) = content else { return nil }
            return box.generation
        }
        #expect(generations.allSatisfy { $0 == newer.current })
        let names = cloud.server.records.keys.compactMap { $0.part?.text.string }
        #expect(
            names.allSatisfy { name in
                !["one", "two", "three", "four"].contains { name.contains($0) }
            })
    }

    @Test(arguments: [false, true])
    func `keep a raise that waited, or whose answer was lost, when an account is sealed`(
        hasArrived: Bool
    ) throws {
        let (a, b) = (cloud.device(), cloud.device())
        let key = try Key("most")
        try a.write(merging: [key: MergeOperation(.maximum, from: nil, to: 5)])
        cloud.settle()
        a.isOnline = hasArrived
        a.losesAnswers = hasArrived
        if !hasArrived { a.cut() }
        cloud.pass(milliseconds: 1_000)
        try a.write(merging: [key: MergeOperation(.maximum, from: 5, to: 7)])
        while a.step() {}
        a.isOnline = false
        a.losesAnswers = false
        a.cut()
        cloud.pass(milliseconds: 1_000)
        b["later"] = .integer(1)
        cloud.settle()
        try seal(with: b)
        a.isOnline = true
        a.keep(keyring)
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        for device in [a, b] {
            #expect(device["most"] == 7 && device["later"] == 1)
            #expect(device.engine.waitingRecords.isEmpty)
        }
        #expect(cloud.server.records.values.count { $0.content.isSealed } == 2)
    }

    @Test(arguments: [false, true])
    func `are not told of an entry that they have cleared and that was sealed since`(
        polls: Bool
    ) throws {
        let (a, b) = (cloud.device(), cloud.device())
        let key = try Key("d")
        try a.write(merging: [
            key: MergeOperation(
                .dictionary, from: nil, to: .dictionary(["one": 1, "two": 2]))
        ])
        cloud.settle()
        if polls {
            a.streamFailure = LinkFailure(.tooManyStreams(retryAfterMilliseconds: 30_000), "many")
        }
        a.isOnline = false
        a.cut()
        cloud.pass(milliseconds: 1_000)
        try a.write(merging: [
            key: MergeOperation(.dictionary, from: a["d"], to: .dictionary(["two": 2]))
        ])
        while a.step() {}
        try seal(with: b)
        a.keep(keyring)
        a.isOnline = true
        _ = a.takeNotices()
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        #expect(a.engine.status.link.state == (polls ? .polling : .connected))
        #expect(a["d"] == .dictionary(["two": 2]) && b["d"] == a["d"])
        #expect(a.takeNotices().isEmpty)
    }

    @Test func `remove a raise that another process knows by the name from before`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        let helper = a.helper()
        let key = try Key("most")
        a["x"] = .integer(1)
        cloud.settle()
        a.isOnline = false
        a.cut()
        cloud.pass(milliseconds: 1_000)
        try helper.write(merging: [key: MergeOperation(.maximum, from: nil, to: 7)])
        while helper.step() || a.step() {}
        #expect(a["most"] == 7)
        try seal(with: b)
        // The leader gives the raise another name before the other process hears of anything.
        a.keep(keyring)
        a.isOnline = true
        cloud.pass(milliseconds: 120_000)
        a.disk.isFull = true
        while a.step() {}
        helper.keep(keyring)
        try helper.write(merging: [key: MergeOperation(.maximum, from: 7, to: nil)])
        while helper.step() {}
        a.disk.isFull = false
        cloud.pass(milliseconds: 120_000)
        while a.step() || helper.step() || b.step() {}
        for device in [a, helper, b] { #expect(device["most"] == nil) }
        #expect(a.engine.waitingRecords.isEmpty)
    }

    @Test func `keep an entry that they write anew over one with a name from before`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        let key = try Key("d")
        func write(_ value: PropertyListValue) throws {
            try a.write(merging: [
                key: MergeOperation(.dictionary, from: a["d"], to: .dictionary(["one": value]))
            ])
            while a.step() {}
        }
        a["x"] = .integer(1)
        cloud.settle()
        a.isOnline = false
        a.cut()
        try write(1)
        try seal(with: b)
        a.keep(keyring)
        cloud.pass(milliseconds: 1_000)
        try write(2)
        a.isOnline = true
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        for device in [a, b] { #expect(device["d"] == .dictionary(["one": 2])) }
    }

    @Test func `clear an entry that they know by the name from before`() throws {
        let (a, b) = (cloud.device(), cloud.device())
        let key = try Key("d")
        try a.write(merging: [
            key: MergeOperation(
                .dictionary, from: nil, to: .dictionary(["one": 1, "two": 2]))
        ])
        cloud.settle()
        a.isOnline = false
        a.cut()
        try seal(with: b)
        a.keep(keyring)
        cloud.pass(milliseconds: 1_000)
        try a.write(merging: [
            key: MergeOperation(.dictionary, from: a["d"], to: .dictionary(["two": 2]))
        ])
        while a.step() {}
        a.isOnline = true
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        for device in [a, b] {
            #expect(device["d"] == .dictionary(["two": 2]))
            #expect(device.engine.waitingRecords.isEmpty)
        }
        let names = cloud.server.records.keys.compactMap { $0.part?.text.string }
        #expect(!names.contains { $0.contains("one") })
    }

    @Test func `know by a poll, too, with which key is sealed what they agree about`() {
        let (a, _) = devices()
        a.cut()
        let polling = cloud.device()
        polling.streamFailure = LinkFailure(
            .tooManyStreams(retryAfterMilliseconds: 30_000), "too many")
        polling.keep(keyring)
        a["x"] = .string("secret")
        for _ in 0..<4 {
            cloud.pass(milliseconds: 10_000)
            cloud.settle()
        }
        #expect(polling["x"] == .string("secret") && polling.engine.status.link.state == .polling)
        #expect(polling.engine.meta.agreedGeneration == 1 && polling.engine.isSaved)
    }

    @Test func `offer to another server what it lacks under names that say nothing`() throws {
        let a = cloud.device()
        let key = try Key("d")
        try a.write(merging: [
            key: MergeOperation(.dictionary, from: nil, to: .dictionary(["one": 1]))
        ])
        a["x"] = .integer(1)
        cloud.settle()
        let clear = cloud.server.records.values.map(\.stamp.digest)
        cloud.replaceServer(by: SteppedServer(epoch: 9))
        cloud.mark(1)
        a.keep(keyring)
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        let b = cloud.device()
        b.keep(keyring)
        cloud.settle()
        #expect(b["d"] == .dictionary(["one": 1]) && b["x"] == 1)
        #expect(a.engine.waitingRecords.isEmpty)
        for record in cloud.server.records.values {
            #expect(record.key.part?.text.string.contains("one") != true)
            #expect(record.content.isSealed && !clear.contains(record.stamp.digest))
        }
    }

    // MARK: - Policies

    @Test func `merge dictionaries without telling inner keys`() throws {
        let (a, b) = devices()
        let key = try Key("d")
        func write(_ device: SteppedDevice, _ value: PropertyListValue) throws {
            try device.write(merging: [
                key: MergeOperation(.dictionary, from: device["d"], to: value)
            ])
        }
        try write(a, .dictionary(["one": 1]))
        cloud.settle()
        for device in [a, b] { device.isOnline = false; device.cut() }
        cloud.pass(milliseconds: 10)
        try write(a, .dictionary(["one": 1, "both": 2]))
        cloud.pass(milliseconds: 10)
        try write(b, .dictionary(["both": 3]))
        for device in [a, b] { device.isOnline = true; device.cut() }
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        #expect(a["d"] == .dictionary(["both": 3]) && b["d"] == a["d"])
        try write(a, .dictionary(["both": 4]))
        cloud.settle()
        #expect(b["d"] == .dictionary(["both": 4]))
        let entries = cloud.server.records.filter { $0.key.isPart && $0.value.content.isSealed }
        #expect(entries.count == 1)
        try write(b, .dictionary([:]))
        cloud.settle()
        #expect(a["d"] == .dictionary([:]))
    }

    @Test func `keep a maximum that was raised while another device removed a smaller one`() throws
    {
        let (a, b) = devices()
        let key = try Key("most")
        func raise(_ device: SteppedDevice, to value: PropertyListValue?) throws {
            try device.write(merging: [
                key: MergeOperation(.maximum, from: device["most"], to: value)
            ])
        }
        try raise(a, to: 5)
        cloud.settle()
        for device in [a, b] { device.isOnline = false; device.cut() }
        try raise(a, to: 7)
        cloud.pass(milliseconds: 10)
        try raise(b, to: nil)
        #expect(b["most"] == nil)
        for device in [a, b] { device.isOnline = true; device.cut() }
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        #expect(a["most"] == 7 && b["most"] == 7)
        try raise(b, to: 6)
        cloud.settle()
        #expect(a["most"] == 7)
    }

    @Test func `add up counts, which the server folds`() throws {
        let (a, b) = devices()
        cloud.setPartsMax(2)
        let key = try Key("count")
        for number in 1...6 {
            let device = number % 2 == 0 ? a : b
            let run = device.restarted()
            run.keep(keyring)
            while run.step() {}
            try run.write(merging: [
                key: MergeOperation(.counter, from: run["count"], to: .integer(Int64(number)))
            ])
            while run.step() {}
            run.cut()
        }
        let reader = cloud.device()
        reader.keep(keyring)
        cloud.settle()
        #expect(reader["count"] == 6)
        #expect(cloud.server.records.keys.contains { $0.part == .fold })
    }

    // MARK: - A hostile server

    @Test func `leave a value as it was that the key does not open`() throws {
        let (a, b) = devices()
        a["x"] = .string("good")
        a["y"] = .string("other")
        cloud.settle()
        let mine = try #require(record("x"))
        let other = try #require(record("y"))
        // Another key's box, and one of another key of the account.
        cloud.forge(Record(key: mine.key, content: other.content, stamp: mine.stamp))
        cloud.settle()
        let foreign = try sealer(Keyring([1: .account(Self.key(9))]))
        var later = mine
        later.stamp.timestamp = mine.stamp.timestamp.next
        later.content = .value(.string("forged"))
        cloud.forge(foreign.seal(later))
        cloud.settle()
        #expect(a["x"] == .string("good") && b["x"] == .string("good"))
        let new = cloud.device()
        new.keep(keyring)
        cloud.settle()
        #expect(new["x"] == nil && new["y"] == .string("other"))
        a["x"] = .string("better")
        cloud.settle()
        #expect(b["x"] == .string("better") && new["x"] == .string("better"))
    }

    @Test func `take nothing from a server that sends what a sealed account does not have`() throws
    {
        let (a, _) = devices()
        a["x"] = .string("good")
        cloud.settle()
        let mine = try #require(record("x"))
        var clear = mine
        clear.content = .value(.string("forged"))
        clear.stamp.timestamp = mine.stamp.timestamp.next
        cloud.forge(clear)
        while a.step() {}
        #expect(a["x"] == .string("good"))
        #expect(a.engine.status.link.lastError?.contains("not sealed") == true)
    }

    @Test func `follow no time that is more than a day ahead of their clock`() throws {
        let (a, b) = devices()
        a["x"] = .string("good")
        cloud.settle()
        let far = HybridTimestamp(milliseconds: cloud.now + 400 * 86_400_000)
        cloud.forge(
            Record(key: try Key("x"), content: .deleted, stamp: Stamp(far, DeviceID(rawValue: 9))))
        while a.step() || b.step() {}
        #expect(a["x"] == .string("good") && a.engine.status.setAside.sentence.contains("future"))
        a["y"] = .string("now")
        cloud.settle()
        #expect(b["y"] == .string("now"))
        #expect(try #require(record("y")).stamp.timestamp.milliseconds <= cloud.now)
    }

    @Test func `make no write at the time that a server claims at the end of its changes`() throws {
        let (a, b) = devices()
        a["x"] = .string("good")
        cloud.settle()
        let latest = HybridTimestamp(milliseconds: cloud.now + 86_400_000)
        cloud.claimed = Int64(1) << 47
        for device in [a, b] { device.cut() }
        cloud.pass(milliseconds: 120_000)
        a["x"] = .string("better")
        while a.step() {}
        #expect(a.engine.status.link.lastError?.contains("more than a day") == true)
        let key = try Key("x")
        var written: HybridTimestamp? { a.engine.entries[key]?.pending?.record.stamp.timestamp }
        #expect(try #require(written) < latest)
        cloud.claimed = nil
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        // It refuses a push with the same claim.
        cloud.claimed = Int64(1) << 47
        a["x"] = .string("best")
        while a.step() {}
        #expect(try #require(written) < latest)
        cloud.claimed = nil
        cloud.pass(milliseconds: 120_000)
        cloud.settle()
        #expect(b["x"] == .string("best"))
    }
}

extension PropertyListValue: ExpressibleByIntegerLiteral {
    /// The integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
}
