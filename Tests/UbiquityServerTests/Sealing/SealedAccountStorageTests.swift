// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Synchronization
internal import Testing

@testable internal import UbiquityCore
@testable internal import UbiquityServer

/// Sealed accounts, over every backend.
@Suite struct SealedAccountStorageTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// When devices seal the account.
    private static let now: Int64 = 1_800_000_000_000
    /// Of every key.
    private static let proof = Bytes32([UInt8](repeating: 1, count: 32))!

    private static func mark(_ generation: UInt32, recovery: [UInt8] = [1]) -> AccountSealing {
        AccountSealing(
            generation: generation, check: SHA256.hash(proof.bytes), recovery: recovery)!
    }

    @discardableResult
    private func seal(
        _ storage: any ServerStorage, _ mark: AccountSealing = mark(1), proof: Bytes32? = nil,
        by actor: AuditActor = .operatorLocally
    ) throws -> Bool {
        try storage.seal(Sample.account.id, with: mark, proof: proof, now: Self.now, by: actor)
    }

    private static func box(
        _ key: String, at time: Int64, generation: UInt32 = 1, fill: UInt8 = 0
    ) -> Record {
        let bytes = [1] + [UInt8](repeating: fill, count: 48)
        return Sample.record(
            key, .sealed(SealedBox(generation: generation, bytes: bytes)), at: time)
    }

    private func records(_ storage: any ServerStorage) throws -> [Record] {
        guard case .changes(let records, _, _, _) = try storage.read(Sample.store, since: nil)
        else { return [] }
        return try records.map { try $0.record() }.sorted { $0.key < $1.key }
    }

    private func whole(
        _ storage: any ServerStorage, _ records: [Record], generation: UInt32 = 1
    ) throws -> WholeStore {
        let position = try #require(try storage.positions(of: [Sample.store])[Sample.store])
        return WholeStore(
            cursor: position.cursor, generation: generation, records: records, proof: Self.proof)
    }

    @discardableResult
    private func replace(
        _ storage: any ServerStorage, by whole: WholeStore
    ) throws -> Result<Position, PushRefusal> {
        try storage.replace(Sample.store, by: whole, rights: nil, rules: Sample.rules())
    }

    @Test(arguments: Backend.allCases)
    func `a mark is kept, replaced by the rule, and in the audit log`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        #expect(try seal(storage))
        #expect(try !seal(storage))
        #expect(try seal(storage, Self.mark(5, recovery: [2]), proof: Self.proof))
        #expect(
            try storage.account(Sample.account.id)?.sealing.mark == Self.mark(5, recovery: [2]))
        #expect(throws: StorageError.sealing(.otherGeneration(5, asked: 3))) {
            try seal(storage, Self.mark(3), proof: Self.proof)
        }
        #expect(throws: StorageError.sealing(.noProof)) { try seal(storage, Self.mark(6)) }
        #expect(try seal(storage, Self.mark(6), proof: Self.proof))
        #expect(try storage.accounts().map(\.sealing.generation) == [6])
        let deeds = try storage.auditEntries(before: nil, max: 9).filter {
            $0.event.action == .accountSealed
        }
        #expect(deeds.reduce(0) { $0 + $1.count } == 3)
        #expect(throws: StorageError.noSuchAccount) {
            try storage.seal(
                AccountID(rawValue: 1), with: Self.mark(1), proof: nil, now: Self.now,
                by: .operatorLocally)
        }
    }

    @Test(arguments: Backend.allCases)
    func `a device's rights name the account's key`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try storage.addCode("code")
        let device = try storage.redeem(
            SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000
        ).device
        func generation() throws -> UInt32? {
            switch try storage.rights(of: [SecretHash(of: "credential")])[0] {
            case .success(let rights): return rights?.generation
            case .failure(let error): throw error
            }
        }
        #expect(try generation() == 0)
        let actor = AuditActor.device(device.reference.id)
        try seal(storage, by: actor)
        #expect(try generation() == 1)
        let author = SealingState.Author(
            device: device.reference.id, name: Sample.newDevice().displayName,
            milliseconds: Self.now)
        #expect(try storage.account(Sample.account.id)?.sealing.author == author)
        _ = try storage.revoke(device.reference, now: 5, by: .operatorLocally)
        #expect(throws: StorageError.noSuchDevice) {
            try seal(storage, Self.mark(2), proof: Self.proof, by: actor)
        }
        #expect(throws: StorageError.noSuchDevice) {
            try storage.reset(Sample.account.id, proof: nil, now: 5, run: 7, by: actor)
        }
        #expect(throws: StorageError.noSuchDevice) {
            try storage.keep(
                [1], as: Self.name(1), by: device.reference, isConfined: false, now: 5)
        }
    }

    // MARK: - Handovers

    private static func name(_ number: UInt8) -> HandoverName {
        HandoverName([UInt8](repeating: number, count: HandoverName.bytesCount))!
    }

    @Test(arguments: Backend.allCases)
    func `handovers are kept for their account, for a while, and not too many`(backend: Backend)
        throws
    {
        let storage = try backend.open(in: folder)
        try storage.addCode("code")
        let device = try storage.redeem(
            SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000
        ).device.reference
        func keep(
            _ number: UInt8, _ box: [UInt8], isConfined: Bool = false, now: Int64
        ) throws {
            try storage.keep(
                box, as: Self.name(number), by: device, isConfined: isConfined, now: now)
        }
        func box(_ number: UInt8, now: Int64 = 1_100, of account: AccountID? = nil) throws
            -> [UInt8]?
        {
            try storage.handover(
                Self.name(number), of: account ?? device.account, now: now)
        }
        try keep(1, [1, 2], now: 1_000)
        #expect(try box(1) == [1, 2])
        #expect(try box(2) == nil)
        #expect(try box(1, of: AccountID("00000000000000ff")) == nil)
        #expect(try box(1, now: 1_000 + HandoverShelf.keptMilliseconds) == nil)
        try keep(1, [3], now: 1_001)
        #expect(try box(1) == [3])
        for number in UInt8(2)...17 { try keep(number, [number], now: 1_000 + Int64(number)) }
        #expect(try box(1) == nil && box(2) == [2] && box(17) == [17])
        // Confined devices displace only each other's.
        for number in UInt8(20)...36 {
            try keep(number, [number], isConfined: true, now: 1_050 + Int64(number))
        }
        #expect(try box(2) == [2] && box(17) == [17])
        #expect(try box(20) == nil && box(21) == [21] && box(36) == [36])
        try storage.removeCodes(expiredBy: 1_002 + HandoverShelf.keptMilliseconds)
        #expect(try box(2) == nil && box(3) == [3])
        _ = try storage.erase(device.account, now: 2_000, by: .operatorLocally)
        #expect(try box(3) == nil)
        #expect(throws: StorageError.noSuchAccount) { try keep(1, [1], now: 2_000) }
    }

    @Test(arguments: Backend.allCases)
    func `an account that is not sealed is not reset`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let clear = try push(Sample.record("a", .integer(1), at: 500), generation: 0)
        _ = try result(clear, storage).get()
        #expect(throws: StorageError.sealing(.notSealed)) {
            _ = try storage.reset(
                Sample.account.id, proof: nil, now: 6, run: 7, by: .operatorLocally)
        }
        #expect(try storage.keys(since: nil) == ["a"])
    }

    @Test(arguments: Backend.allCases)
    func `a reset without the key waits for a week, and for no device with it`(backend: Backend)
        throws
    {
        let storage = try backend.open(in: folder)
        try storage.addCode("code")
        let device = try storage.redeem(
            SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000
        ).device.reference
        let account = Sample.account.id
        func announced() throws -> [UInt8]? {
            let rights = try storage.rights(of: [SecretHash(of: "credential")])[0].get()
            return rights?.announcedCheck
        }
        func reset(
            _ proof: Bytes32? = nil, at now: Int64, by actor: AuditActor? = nil
        ) throws -> Bool {
            try storage.reset(
                account, proof: proof, now: now, run: 7, by: actor ?? .device(device.id))
        }
        let due = Self.now + SealingState.noticeMilliseconds
        try seal(storage)
        _ = try result(push(Self.box("a", at: 500), generation: 1), storage).get()
        #expect(try announced() == nil)
        #expect(try reset(at: Self.now))
        #expect(try !reset(at: Self.now + 5))
        #expect(try announced() == Self.mark(1).check.bytes)
        #expect(try storage.account(account)?.sealing.ends == due)
        #expect(try storage.accountsToReset(by: due - 1) == [])
        #expect(try storage.accountsToReset(by: due) == [account])
        #expect(try !reset(at: due - 1, by: .housekeeping))
        // A proof that is wrong changes nothing.
        let wrong = Self.mark(1).check
        try storage.withdrawReset(account, proof: wrong, now: 7, by: .device(device.id))
        #expect(throws: StorageError.sealing(.noProof)) { try reset(wrong, at: Self.now) }
        #expect(try announced() != nil)
        for _ in 0..<2 {
            try storage.withdrawReset(account, proof: Self.proof, now: 7, by: .device(device.id))
        }
        #expect(try announced() == nil && storage.accountsToReset(by: due) == [])
        #expect(try !reset(at: due, by: .housekeeping))
        #expect(try storage.keys(since: nil) == ["a"])
        #expect(try reset(at: Self.now))
        #expect(try reset(at: due, by: .housekeeping))
        #expect(try storage.account(account)?.sealing.mark == nil)
        #expect(try announced() == nil && storage.keys(since: nil) == [])
        // With the key, at once.
        try seal(storage, Self.mark(2))
        #expect(try reset(Self.proof, at: Self.now))
        #expect(try storage.account(account)?.sealing.mark == nil)
        let deeds = try storage.auditEntries(before: nil, max: 99)
        func actors(_ action: AuditAction) -> [AuditActor] {
            deeds.filter { $0.event.action == action }.flatMap { entry in
                [AuditActor](repeating: entry.event.actor, count: entry.count)
            }
        }
        let own = AuditActor.device(device.id)
        #expect(actors(.accountResetAnnounced) == [own, own])
        #expect(actors(.accountResetWithdrawn) == [own])
        #expect(Set(actors(.accountReset)) == [own, .housekeeping])
    }

    @Test(arguments: Backend.allCases)
    func `a push is committed only with the account's key, in a store that has it`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let clear = try push(Sample.record("a", .integer(1), at: 500), generation: 0)
        _ = try result(clear, storage).get()
        #expect(
            try result(push(Self.box("b", at: 500), generation: 1), storage).failure
                == .sealing(.otherGeneration(0, asked: 1)))
        try seal(storage)
        let later = try push(Sample.record("a", .integer(2), at: 501), generation: 0)
        #expect(try result(later, storage).failure == .sealing(.otherGeneration(1, asked: 0)))
        let sealed = try push(Self.box("b", at: 501), generation: 1)
        #expect(try result(sealed, storage).failure == .sealing(.storeUnsealed))
        #expect(try storage.read(Sample.store, since: nil, sealedWith: 1) == .unsealed)
        #expect(
            try storage.read(Sample.store, since: Sample.position(1), sealedWith: 1) == .unsealed)
        #expect(try storage.stores(of: Sample.account.id).map(\.contentGeneration) == [0])
        #expect(
            try replace(storage, by: whole(storage, [Self.box("a", at: 500)])).get()
                == Sample.position(2))
        #expect(try result(sealed, storage).get().results == [.committed([.applied])])
        #expect(try records(storage).map(\.key.string) == ["a", "b"])
        #expect(try records(storage).allSatisfy { $0.content.isSealed })
        #expect(try storage.stores(of: Sample.account.id).map(\.contentGeneration) == [1])
        // A store that is new takes the account's key.
        let other = StoreReference(
            account: Sample.account.id, identifier: try StoreIdentifier("other"))
        var fresh = sealed
        fresh.store = other
        _ = try result(fresh, storage).get()
        guard case .changes(let found, _, _, _) = try storage.read(other, since: nil, sealedWith: 1)
        else {
            Issue.record("the new store is not readable")
            return
        }
        #expect(found.count == 1)
    }

    @Test(arguments: Backend.allCases)
    func `a store is replaced with its history, once, and only as it was read`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        for time in 500..<510 as Range<Int64> {
            let write = Sample.record("a", .integer(time), at: time)
            _ = try result(push(write, generation: 0), storage).get()
        }
        _ = try result(
            push(Sample.record("gone", nil, at: 520), generation: 0), storage
        ).get()
        let other = StoreReference(
            account: Sample.account.id, identifier: try StoreIdentifier("other"))
        _ = try storage.commit(Sample.push(Sample.record("x", .integer(1), at: 500), to: other))
        try seal(storage)
        let before = Sample.position(11)
        let whole = try whole(storage, [Self.box("a", at: 509)])
        var stale = whole
        stale.cursor = Sample.position(10).cursor
        #expect(try replace(storage, by: stale).failure == .sealing(.storeChanged))
        var unproven = whole
        for proof in [nil, Self.mark(1).check] {
            unproven.proof = proof
            #expect(try replace(storage, by: unproven).failure == .sealing(.noProof))
        }
        #expect(try records(storage).map(\.key.string) == ["a"])
        #expect(try replace(storage, by: whole).get() == Sample.position(12))
        #expect(try replace(storage, by: whole).failure == .sealing(.storeChanged))
        #expect(try records(storage) == whole.records)
        #expect(try storage.read(Sample.store, since: before, sealedWith: 1) == .compacted)
        #expect(
            try storage.read(Sample.store, since: Sample.position(12), sealedWith: 1)
                == .changes(
                    [], position: Sample.position(12), isWhole: false,
                    horizon: HybridTimestamp(milliseconds: 520, counter: 3)))
        let versions = try storage.versions(of: Sample.store, key: nil, currentOnly: false) {
            _, lines in Array(lines.indices)
        }
        #expect(versions.count == 1)
        while try storage.eraseRest(for: 100) {}
        #expect(try records(storage) == whole.records)
        guard case .changes(let rest, _, _, _) = try storage.read(other, since: nil) else {
            Issue.record("another store is gone")
            return
        }
        #expect(rest.count == 1)
        // It goes on.
        let next = try push(Self.box("b", at: 600, fill: 1), generation: 1)
        #expect(try result(next, storage).get().position == Sample.position(13))
        #expect(try records(storage).count == 2)
    }

    @Test(arguments: Backend.shared)
    func `what a store had before it was sealed is vacuumed, an hour after the last time`(
        backend: Backend
    ) throws {
        let storage = try #require(try backend.open(in: folder) as? PostgresServerStorage)
        func number(_ sql: String) throws -> Int64 {
            try storage.reading(SQLStatement(sql)) { try $0.rows[0].integer(0) }
        }
        func count() throws -> Int64 {
            try number(
                """
                SELECT vacuum_count FROM pg_stat_user_tables
                WHERE schemaname = 'ubiquity' AND relname = 'record'
                """)
        }
        func file() throws -> Int64 {
            try number("SELECT pg_relation_filenode('ubiquity.record')::bigint")
        }
        let clear = try push(Sample.record("a", .string("secret"), at: 500), generation: 0)
        _ = try result(clear, storage).get()
        let first = try file()
        #expect(try !storage.vacuum(pacedAt: 0) && file() == first)
        try seal(storage)
        _ = try replace(storage, by: whole(storage, [Self.box("a", at: 500)])).get()
        while try storage.eraseRest(for: 100) {}
        #expect(try storage.vacuum(pacedAt: 1))
        let second = try file()
        #expect(try second != first && count() == 0)
        _ = try storage.reset(
            Sample.account.id, proof: nil, now: Self.now, run: 7, by: .operatorLocally)
        while try storage.eraseRest(for: 100) {}
        #expect(try !storage.vacuum(pacedAt: 3_600_000))
        // Where others use the table, it is not rewritten.
        let other = try PostgresConnection(storage.settings)
        func run(_ statements: String...) throws {
            _ = try other.run(
                statements.map { SQLStatement($0) },
                milliseconds: storage.settings.answerMilliseconds)
        }
        try run("SET idle_in_transaction_session_timeout = 0")
        try run("BEGIN", "SELECT count(*) FROM ubiquity.record")
        #expect(try storage.vacuum(pacedAt: 3_600_001))
        try run("ROLLBACK")
        #expect(try file() == second && count() == 1)
        #expect(try !storage.vacuum(pacedAt: .max))
    }

    @Test(arguments: Backend.allCases)
    func `what cannot be in a sealed store replaces nothing`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        _ = try result(push(Sample.record("a", .integer(1), at: 500), generation: 0), storage).get()
        #expect(
            try replace(storage, by: whole(storage, [Self.box("a", at: 500)])).failure
                == .sealing(.otherGeneration(0, asked: 1)))
        try seal(storage)
        let clear = try whole(storage, [Sample.record("a", .integer(1), at: 500)])
        #expect(
            try replace(storage, by: clear).failure
                == .records(
                    "records[0]: the account is sealed, and a value was not sealed with its key"))
        #expect(try records(storage).map(\.content) == [.value(.integer(1))])
        let rights = DeviceRights(
            reference: DeviceReference(account: Sample.account.id, id: Sample.device))
        #expect(
            try storage.replace(
                Sample.store, by: whole(storage, [Self.box("a", at: 500)]), rights: rights,
                rules: Sample.rules()
            ).failure == .notAllowed(.credentialInvalid))
    }

    @Test(arguments: Backend.allCases)
    func `counts that were folded before a store was sealed are counted once`(backend: Backend)
        throws
    {
        let storage = try backend.open(in: folder)
        func count(_ run: Int, _ times: Int64, _ total: Int64, at time: Int64) throws -> Record {
            var record = Sample.record(
                "k", .array([.integer(times), .integer(total)]), at: time)
            record.key = record.key.part(PartID("c\(run)")!)
            return record
        }
        func sealed(_ record: Record) throws -> Record {
            var record = record
            let count = try #require(record.content.value.flatMap(SealedCount.init))
            record.content = .value(
                .sealed(SealedBox(generation: 1, bytes: count.bytes + [1, 2, 3, 4, 5, 6, 7, 8])))
            return record
        }
        for run in 0..<70 {
            _ = try result(push(count(run, 1, 1, at: 500 + Int64(run)), generation: 0), storage)
                .get()
        }
        try seal(storage)
        let all = try records(storage).map(sealed)
        #expect(all.count < 65)
        _ = try replace(storage, by: whole(storage, all)).get()
        // The first run was folded.
        _ = try result(push(sealed(count(0, 2, 5, at: 700)), generation: 1), storage).get()
        let sums = try records(storage).compactMap { Count($0.content.value)?.total }
        let sum = sums.reduce(Number.zero) { $0 + $1 }
        #expect(sum.value == .integer(74))
        #expect(try records(storage).allSatisfy { $0.content.isSealed })
    }

    @Test(arguments: Backend.allCases)
    func `a reset leaves devices, and nothing else`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try storage.addCode("code")
        _ = try storage.redeem(SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000)
        try seal(storage)
        _ = try result(push(Self.box("a", at: 500), generation: 1), storage).get()
        _ = try storage.reset(
            Sample.account.id, proof: nil, now: 6, run: 7, by: .operatorLocally)
        let sealing = try #require(try storage.account(Sample.account.id)?.sealing)
        #expect(sealing.mark == nil && sealing.greatest == 1)
        #expect(throws: StorageError.sealing(.spentGeneration)) { try seal(storage) }
        #expect(try storage.devices(of: Sample.account.id).count == 1)
        #expect(try storage.keys(since: nil) == [])
        #expect(try storage.read(Sample.store, since: Sample.position(1)) == .compacted)
        let clear = try push(Sample.record("a", .integer(1), at: 600), generation: 0)
        #expect(try result(clear, storage).get().results == [.committed([.applied])])
        while try storage.eraseRest(for: 100) {}
        #expect(try storage.keys(since: nil) == ["a"])
        #expect(
            try storage.auditEntries(before: nil, max: 9).contains {
                $0.event.action == .accountReset
            })
    }

    @Test(arguments: Backend.allCases)
    func `a push that races with the mark stores nothing in clear after it`(backend: Backend)
        throws
    {
        let nodes =
            backend == .sqlite
            ? [try backend.open(in: folder)] : try backend.openNodes(2, in: folder)
        _ = try result(push(Sample.record("k0", .integer(1), at: 400), generation: 0), nodes[0])
            .get()
        let isSealed = Atomic(false)
        let late = Atomic(0)
        var bodies = nodes.map { node -> @Sendable () throws -> Void in
            {
                for number in 1...200 {
                    let wasSealed = isSealed.load(ordering: .acquiring)
                    let record = Sample.record(
                        "k\(number % 9)", .integer(Int64(number)), at: 400 + Int64(number))
                    let refusal = try result(push(record, generation: 0), node).failure
                    if wasSealed, refusal == nil { late.add(1, ordering: .relaxed) }
                }
            }
        }
        bodies.append {
            Thread.sleep(forTimeInterval: 0.02)
            try seal(nodes[nodes.count - 1])
            isSealed.store(true, ordering: .releasing)
        }
        try atOnce(bodies)
        #expect(late.load(ordering: .relaxed) == 0)
        let position = try nodes[0].positions(of: [Sample.store])
        #expect(
            try result(push(Sample.record("z", .integer(1), at: 900), generation: 0), nodes[0])
                .failure == .sealing(.otherGeneration(1, asked: 0)))
        #expect(try nodes[0].positions(of: [Sample.store]) == position)
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}

private func push(_ writes: Record..., generation: UInt32) throws -> PendingPush {
    var push = Push([try Transaction(writes)])
    push.generation = generation
    return PendingPush(store: Sample.store, push: push)
}

private func result(
    _ push: PendingPush, _ storage: any ServerStorage
) throws -> Result<CommittedPush, PushRefusal> {
    try storage.commit([push], rules: Sample.rules())[0]
}
