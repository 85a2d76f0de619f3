// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// The contract of ``ServerStorage``, over every backend.
@Suite struct ServerStorageTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: Backend.allCases)
    func `a record comes back bit by bit`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let records = [
            Sample.record("nul\0inside", .integer(.min), at: 500),
            Sample.record("e\u{301}", .real(-0.0), at: 501),
            Sample.record("\u{E9}", .array([.dictionary(["": .data([0])])]), at: 502),
        ]
        try storage.commit(
            PendingPush(store: Sample.store, push: Push([try Transaction(records)])))
        guard case .changes(let read, _, true, _) = try storage.read(Sample.store, since: nil)
        else {
            Issue.record("no changes")
            return
        }
        #expect(Set(try read.map { try $0.record() }) == Set(records))
    }

    @Test(arguments: Backend.allCases)
    func `pushes of one batch see each other and count one revision each`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let outcomes = try storage.commit(
            [
                Sample.push(Sample.record("a", .integer(1), at: 500)),
                Sample.push(Sample.record("a", .integer(0), at: 400)),
                Sample.push(Sample.record("a", nil, at: 600)),
                Sample.push(Sample.record("a", .integer(9), at: 99_000_000)),
            ], rules: Sample.rules())
        let positions = outcomes.map { try? $0.get().position.revision }
        #expect(positions == [1, 1, 2, nil])
        #expect(try storage.keys(since: nil) == [])
        #expect(try storage.keys(since: Sample.position(1)) == ["a"])
        let summary = try storage.stores(of: Sample.account.id)
        #expect(summary.map(\.usage) == [Usage()])
    }

    @Test(arguments: Backend.allCases)
    func `a push is committed only while its device is signed in`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try storage.addCode("code")
        var rights = try storage.redeem(
            SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000
        ).device.rights
        func commit(_ value: Int64) throws {
            let write = Sample.record("a", .integer(value), at: 500 + value)
            let push = PendingPush(
                store: Sample.store, push: Push([try Transaction([write])]),
                rights: rights)
            _ = try storage.commit([push], rules: Sample.rules(now: 1_000))[0].get()
        }
        try commit(1)
        rights.expiresMilliseconds = 1_000
        #expect(throws: PushRefusal.notAllowed(.credentialExpired)) { try commit(2) }
        rights.expiresMilliseconds = nil
        #expect(try !storage.revoke(rights.reference, now: 1_000, by: .operatorLocally).isEmpty)
        #expect(throws: PushRefusal.notAllowed(.credentialInvalid)) { try commit(3) }
        guard case .changes(let records, _, _, _) = try storage.read(Sample.store, since: nil)
        else { return #expect(Bool(false)) }
        #expect(try records.map { try $0.record().content } == [.value(.integer(1))])
    }

    @Test(arguments: Backend.allCases)
    func `usage is counted, and stores are listed`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let write = Sample.record("a", .string("xyz"), at: 500)
        try storage.commit(Sample.push(write, Sample.record("b", .integer(1), at: 500)))
        let summary = try #require(storage.stores(of: Sample.account.id).first)
        #expect(summary.usage == Usage(bytes: 11, keys: 2))
        #expect(summary.position == Sample.position(1))
        #expect(try storage.stores(of: AccountID(rawValue: 1)).isEmpty)
    }

    @Test(arguments: Backend.allCases)
    func `an account has a limited number of stores`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        func store(_ name: String) throws -> StoreReference {
            StoreReference(account: Sample.account.id, identifier: try StoreIdentifier(name))
        }
        let write = Sample.record("a", .integer(1), at: 500)
        for name in ["one", "two"] {
            #expect(try storage.commit(Sample.push(write, to: store(name))) != nil)
        }
        let third = try storage.commit(
            [Sample.push(write, to: store("three"))], rules: Sample.rules())
        #expect(third == [.failure(.tooManyStores)])
    }

    @Test(arguments: Backend.allCases)
    func `a position of another epoch does not hold`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)), epoch: 7)
        try storage.commit(Sample.push(Sample.record("b", .integer(1), at: 500)), epoch: 8)
        #expect(try storage.keys(since: Sample.position(1, run: 7)) == ["b"])
        #expect(
            try storage.read(Sample.store, since: Sample.position(2, run: 7)) == .otherHistory)
        #expect(
            try storage.read(Sample.store, since: Sample.position(3, run: 8)) == .otherHistory)
    }

    @Test(arguments: Backend.allCases)
    func `a position is unchanged until the next commit to its store`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let other = StoreReference(
            account: Sample.account.id, identifier: try StoreIdentifier("other"))
        let write = Sample.record("a", .integer(1), at: 500)
        let first = try #require(try storage.commit(Sample.push(write))?.position)
        try storage.commit(Sample.push(write, to: other))
        let read = try storage.read(Sample.store, since: first)
        // A storage of several nodes has to look.
        #expect(
            storage.unchanged(Sample.store, since: first, sealedWith: nil)
                == (storage.isShared ? nil : read))
        #expect(storage.unchanged(other, since: first, sealedWith: nil) == nil)
        try storage.commit(Sample.push(Sample.record("b", .integer(1), at: 500)))
        #expect(storage.unchanged(Sample.store, since: first, sealedWith: nil) == nil)
        #expect(try storage.keys(since: first) == ["b"])
        #expect(try storage.erase(Sample.account.id, now: 2, by: .operatorLocally))
        #expect(storage.unchanged(Sample.store, since: Sample.position(2), sealedWith: nil) == nil)
        #expect(try storage.read(Sample.store, since: Sample.position(2)) == .otherHistory)
    }

    @Test(arguments: Backend.allCases)
    func `compacted tombstones make older positions gone, and older changes refused`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let rule = CompactionRule(
            retentionMilliseconds: 100, liveMilliseconds: 1_000, tombstonesMax: 10)
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        try storage.commit(Sample.push(Sample.record("a", nil, at: 600)))
        try storage.commit(Sample.push(Sample.record("b", .integer(1), at: 700)))
        try storage.addRunningTime(99)
        #expect(try storage.compact(rule, in: Sample.store, now: 9_000_000) == 0)
        try storage.addRunningTime(1)
        #expect(try storage.compact(rule, in: Sample.store, now: 0) == 1)
        #expect(try storage.read(Sample.store, since: Sample.position(1)) == .compacted)
        #expect(try storage.keys(since: Sample.position(2)) == ["b"])
        let late = try storage.commit(Sample.push(Sample.record("a", .integer(2), at: 599)))
        #expect(late?.results == [.refused(.olderThanCompacted)])
        #expect(late?.deletions == 0)
        let other = DeviceID(rawValue: 3)
        let own = try storage.commit(
            Sample.push(Sample.record("a", .integer(2), at: 599, by: other)))
        #expect(own?.results == [.committed([.applied])])
        #expect(own?.horizon.milliseconds == 600)
        #expect(try storage.compact(rule, in: Sample.store, now: 9_000) == 0)
        guard case .changes(_, _, _, let horizon) = try storage.read(Sample.store, since: nil)
        else { return #expect(Bool(false)) }
        #expect(horizon.milliseconds == 600)
    }

    @Test(arguments: Backend.allCases)
    func `deletions wait for live devices that have not passed them`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let device = try signIn(storage, now: 1_000).device.reference
        let rule = CompactionRule(
            retentionMilliseconds: 100, liveMilliseconds: 1_000, tombstonesMax: 10)
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        try storage.commit(Sample.push(Sample.record("a", nil, at: 600)))
        try storage.commit(Sample.push(Sample.record("b", .integer(1), at: 900)))
        try storage.addRunningTime(500)
        let deviceStore = LastSeenUpdate.DeviceStore(device: device, store: Sample.store)
        try storage.note(LastSeenUpdate(passed: [deviceStore: Sample.position(1)]))
        #expect(try storage.compact(rule, in: Sample.store, now: 1_500) == 0)
        try storage.note(LastSeenUpdate(seenMilliseconds: [device: 1_200]))
        #expect(try storage.compact(rule, in: Sample.store, now: 2_150) == 0)
        #expect(try storage.compact(rule, in: Sample.store, now: 2_201) == 1)
    }

    @Test(arguments: Backend.allCases)
    func `what devices have of a store and of a key`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let device = try signIn(storage, now: 1_000).device.reference
        #expect(try storage.holdings(of: Sample.store, key: nil).entries.isEmpty)
        let part = try Key("ab").part(#require(PartID("n1")))
        try storage.commit(
            Sample.push(Sample.record("a", .integer(1), at: 500, by: device.id)))
        let write = Record(
            key: part, content: .value(.integer(1)),
            stamp: Stamp(HybridTimestamp(milliseconds: 510), Sample.device))
        try storage.commit(Sample.push(write, Sample.record("ab", nil, at: 510)))
        try storage.commit(Sample.push(Sample.record("b", .integer(1), at: 520)))
        let said = LastSeenUpdate.DeviceStore(device: device, store: Sample.store)
        let clock = ClockMeasurement(aheadMilliseconds: -90_000, milliseconds: 1_100)
        try storage.note(
            LastSeenUpdate(
                passed: [said: Sample.position(2)], clocks: [device: clock],
                versions: [device: "0.2.0"]))
        let whole = try storage.holdings(of: Sample.store, key: nil)
        #expect(whole.entries.map(\.revision).sorted() == [1, 2, 2, 3])
        #expect(whole.entries.first { $0.revision == 1 }?.author == device.id)
        #expect(whole.passed == [device.id: 2])
        #expect(whole.devices.map(\.clock) == [clock])
        #expect(whole.devices.map(\.version) == ["0.2.0"])
        #expect(try storage.devices(of: Sample.account.id) == whole.devices)
        #expect(
            whole.deliveries.map(\.delivery)
                == [Delivery(isCurrent: false, behind: 1, hasStore: true)])
        let key = try storage.holdings(of: Sample.store, key: Key("ab"))
        #expect(key.entries.map(\.revision) == [2, 2])
        #expect(key.deliveries.map(\.delivery.isCurrent) == [true])
        try storage.note(LastSeenUpdate(passed: [said: Sample.position(1)]))
        let less = try storage.holdings(of: Sample.store, key: Key("ab"))
        #expect(less.deliveries.map(\.delivery.behind) == [2])
    }

    /// What a node has heard outlives its database, in whose place another one may be. SQLite's file
    /// cannot be replaced while it is open.
    @Test(arguments: Backend.shared)
    func `what a device has saved of another history does not count`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let device = try signIn(storage, now: 1_000).device.reference
        for number in 1...2 {
            try storage.commit(
                Sample.push(Sample.record("a", .integer(1), at: 500 + Int64(number))))
        }
        let said = LastSeenUpdate.DeviceStore(device: device, store: Sample.store)
        for position in [Sample.position(2, run: 8), Sample.position(3)] {
            try storage.note(LastSeenUpdate(passed: [said: position]))
            #expect(try storage.holdings(of: Sample.store, key: nil).passed == [:])
        }
        let buffer = LastSeenBuffer(clock: .system)
        for (position, revision) in [
            (Sample.position(2, run: 8), nil), (Sample.position(3), nil), (Sample.position(2), 2),
        ] as [(Position, Int64?)] {
            buffer.pass(position, of: Sample.store, by: device)
            var holdings = try storage.holdings(of: Sample.store, key: nil)
            buffer.complete(&holdings, of: Sample.store)
            #expect(holdings.passed[device.id] == revision)
            #expect(holdings.deliveries.map(\.delivery.isCurrent) == [revision != nil])
        }
    }

    @Test(arguments: Backend.allCases)
    func `a cursor of one store holds in no other of the same run`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let other = StoreReference(
            account: Sample.account.id, identifier: try StoreIdentifier("other"))
        let write = Sample.record("a", .integer(1), at: 500)
        let first = try storage.commit(Sample.push(write))
        try storage.commit(Sample.push(write, to: other))
        let position = try #require(first?.position)
        #expect(try storage.keys(since: position) == [])
        #expect(try storage.read(other, since: position) == .otherHistory)
    }

    @Test(arguments: Backend.allCases)
    func `a record keeps its digest`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        var write = Sample.record("a", .integer(1), at: 500)
        write.stamp.digest = .max
        try storage.commit(Sample.push(write))
        guard case .changes(let records, _, _, _) = try storage.read(Sample.store, since: nil)
        else { return #expect(Bool(false)) }
        #expect(try records.map { try $0.record() } == [write])
        let again = try storage.commit(Sample.push(write))
        #expect(again?.results == [.committed([.applied])])
        #expect(again?.writes == [])
    }

    @Test(arguments: Backend.allCases)
    func `a code is redeemed once, and not after it expired`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let signedIn = try signIn(storage, now: 1_000)
        #expect(signedIn.account == Sample.account)
        let again = Sample.newDevice("c2")
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(SecretHash(of: "code"), by: again, now: 1_000)
        }
        try storage.addCode("late", expiresMilliseconds: 2_000)
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(SecretHash(of: "late"), by: again, now: 2_000)
        }
    }

    @Test(arguments: Backend.allCases)
    func `a code outlives an account that has too many devices`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        _ = try signIn(storage, now: 1_000)
        try storage.addCode("next")
        var device = Sample.newDevice("c2", displayName: "x", devicesMax: 1)
        #expect(throws: StorageError.tooManyDevices("in this account", 1, max: 1)) {
            try storage.redeem(SecretHash(of: "next"), by: device, now: 1_000)
        }
        device.devicesPerAccountMax = 2
        #expect(
            try storage.redeem(SecretHash(of: "next"), by: device, now: 1_000).device.displayName
                == "x")
    }

    @Test(arguments: Backend.allCases)
    func `a revoked device has no credential any more`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let device = try signIn(storage, now: 1_000).device
        #expect(try storage.device(credential: SecretHash(of: "credential")) == device)
        #expect(try storage.devices(of: Sample.account.id) == [device])
        #expect(try !storage.revoke(device.reference, now: 1_001, by: .operatorLocally).isEmpty)
        #expect(try storage.revoke(device.reference, now: 1_002, by: .operatorLocally).isEmpty)
        #expect(try storage.device(credential: SecretHash(of: "credential")) == nil)
        #expect(try storage.devices(of: Sample.account.id).isEmpty)
    }

    @Test(arguments: Backend.allCases)
    func `rights are in the order of the credentials`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let rights = try signIn(storage, now: 1_000).device.rights
        let (known, unknown) = (SecretHash(of: "credential"), SecretHash(of: "other"))
        #expect(
            try storage.rights(of: [unknown, known, unknown, known])
                == [.success(nil), .success(rights), .success(nil), .success(rights)])
        #expect(try storage.rights(of: []) == [])
    }

    @Test(arguments: Backend.allCases)
    func `a device that is looked up while it is revoked pushes nothing afterwards`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let credential = SecretHash(of: "credential")
        for round in 1...50 {
            try storage.addCode("code \(round)")
            let rights = try storage.redeem(
                SecretHash(of: "code \(round)"), by: Sample.newDevice(), now: 1_000
            ).device.rights
            let push = PendingPush(
                store: Sample.store,
                push: Push([try Transaction([Sample.record("a", .integer(1), at: 500)])]),
                rights: rights)
            let isRevoked = Mutex(false)
            let lookUp: @Sendable () throws -> Void = {
                while !isRevoked.withLock(\.self) { _ = try storage.rights(of: [credential]) }
            }
            let revoke: @Sendable () throws -> Void = {
                defer { isRevoked.withLock { $0 = true } }
                if round.isMultiple(of: 2) {
                    _ = try storage.commit([push], rules: Sample.rules())[0].get()
                }
                _ = try storage.revoke(rights.reference, now: 1_000, by: .operatorLocally)
            }
            try atOnce([lookUp, lookUp, revoke])
            #expect(throws: PushRefusal.notAllowed(.credentialInvalid)) {
                try storage.commit([push], rules: Sample.rules())[0].get()
            }
        }
    }

    @Test func `what devices have said is divided by device`() {
        var update = LastSeenUpdate()
        for number in 1...10 {
            let device = DeviceReference(
                account: Sample.account.id, id: DeviceID(rawValue: UInt64(number)))
            update.seenMilliseconds[device] = Int64(number)
            update.versions[device] = "0.2.0"
            if number.isMultiple(of: 2) {
                update.clocks[device] = ClockMeasurement(aheadMilliseconds: 1, milliseconds: 2)
            }
            let saved = LastSeenUpdate.DeviceStore(device: device, store: Sample.store)
            update.passed[saved] = Sample.position(Int64(number))
        }
        let parts = update.parts(of: 3)
        #expect(parts.count == 8)
        #expect(parts.allSatisfy { max($0.versions.count, $0.passed.count) <= 3 })
        #expect(parts.allSatisfy { Set($0.clocks.keys).isSubset(of: Set($0.versions.keys)) })
        #expect(parts.allSatisfy { Set($0.seenMilliseconds.keys) == Set($0.versions.keys) })
        #expect(parts.reduce(into: LastSeenUpdate()) { $0.add(older: $1) } == update)
        #expect(update.parts(of: .max).count == 2)
        #expect(LastSeenUpdate().parts(of: 3).isEmpty)
    }

    @Test(arguments: Backend.allCases)
    func `an account's name is taken once`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        var other = Sample.account
        other.id = .random()
        #expect(throws: StorageError.accountExists) {
            try storage.createAccount(other, accountsMax: 2, by: .operatorLocally)
        }
        other.name = try #require(AccountName("bob"))
        #expect(throws: StorageError.tooMany("accounts")) {
            try storage.createAccount(other, accountsMax: 1, by: .operatorLocally)
        }
        #expect(try storage.account(named: other.name) == nil)
        #expect(try storage.accounts() == [Sample.account])
    }

    private func signIn(
        _ storage: any ServerStorage, now: Int64
    ) throws -> (account: Account, device: Device) {
        try storage.addCode("code", expiresMilliseconds: now + 1, now: now)
        return try storage.redeem(SecretHash(of: "code"), by: Sample.newDevice(), now: now)
    }
}
