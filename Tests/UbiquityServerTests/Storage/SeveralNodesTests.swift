// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// The contract of a ``ServerStorage`` that several nodes share, over every backend that can be.
@OwnThread @Suite struct SeveralNodesTests {
    private let folder: TemporaryFolder
    private let ada = Sample.account.id
    init() throws { folder = try TemporaryFolder() }

    // MARK: - Pushes

    @Test(arguments: Backend.shared)
    func `nodes that push to the same stores at once lose nothing and skip no revision`(
        backend: Backend
    ) throws {
        let nodes = try backend.openNodes(3, in: folder)
        let stores = try Self.stores("one", "two")
        let log = PushLog()
        try atOnce(
            nodes.enumerated().map { number, node in
                {
                    for round in 0..<20 {
                        let pushes = (0..<4).map { Self.push(number, round, $0, to: stores) }
                        let results = try node.commit(pushes, rules: Sample.rules())
                        for (push, result) in zip(pushes, results) {
                            log.note(push, at: try result.get().position)
                        }
                    }
                }
            })
        let summaries = try nodes[0].stores(of: ada)
        #expect(summaries.map(\.identifier) == stores.map(\.identifier))
        for (store, summary) in zip(stores, summaries) {
            let revisions = log.revisions(of: store)
            #expect(revisions == Array(1...Int64(revisions.count)))
            #expect(summary.position.revision == Int64(revisions.count))
            for node in nodes {
                let records = try Self.records(in: store, node)
                #expect(Set(records.map(\.key)).isSuperset(of: log.keys(of: store)))
                #expect(try Self.usage(of: records) == summary.usage)
                #expect(try node.positions(of: [store]) == [store: summary.position])
            }
        }
    }

    @Test(arguments: Backend.shared)
    func `one node pushes to stores of several accounts on several threads at once`(
        backend: Backend
    ) throws {
        let node = try backend.openNodes(1, in: folder)[0]
        let accounts = (0..<node.commitLanes).map { number in
            Account(
                id: AccountID(rawValue: UInt64(number)), name: AccountName("person \(number)")!,
                createdMilliseconds: 1)
        }
        for account in accounts {
            try node.createAccount(account, accountsMax: 99, by: .operatorLocally)
        }
        let log = PushLog()
        try atOnce(
            accounts.enumerated().map { number, account in
                {
                    let stores = try Self.stores("one", "two", of: account.id)
                    for round in 0..<20 {
                        let pushes = (0..<4).map { Self.push(number, round, $0, to: stores) }
                        let results = try node.commit(pushes, rules: Sample.rules())
                        for (push, result) in zip(pushes, results) {
                            log.note(push, at: try result.get().position)
                        }
                    }
                }
            })
        for account in accounts {
            for store in try Self.stores("one", "two", of: account.id) {
                #expect(log.revisions(of: store) == Array(1...40))
                let keys = try Self.records(in: store, node).map(\.key)
                #expect(Set(keys).isSuperset(of: log.keys(of: store)))
            }
        }
    }

    @Test(arguments: Backend.shared)
    func `who reads while others push sees each revision once, and all of it`(
        backend: Backend
    ) throws {
        let nodes = try backend.openNodes(3, in: folder)
        let (store, log) = (Sample.store, PushLog())
        let reads = Mutex<[(from: Position?, to: Position, keys: Set<Key>)]>([])
        let writers = Mutex(2)
        // Writers and the reader take turns, more or less.
        let rounds = Mutex(0)

        try atOnce(
            (0..<2).map { number in
                {
                    defer { writers.withLock { $0 -= 1 } }
                    for round in 0..<40 {
                        while rounds.withLock({ $0 }) < round { usleep(50) }
                        let push = Self.push(number, round, 0, to: [store])
                        let result = try nodes[number].commit([push], rules: Sample.rules())[0]
                        log.note(push, at: try result.get().position)
                    }
                }
            } + [
                {
                    defer { rounds.withLock { $0 = .max } }
                    var position: Position?
                    // Once more when all has been said.
                    var isLast = false
                    while !isLast {
                        isLast = writers.withLock { $0 } == 0
                        guard
                            case .changes(let records, let next, _, _) =
                                try nodes[2].read(store, since: position)
                        else { throw Trouble("another history") }
                        let keys = try Set(records.map { try $0.record().key })
                        rounds.withLock { $0 += 1 }
                        let from = position
                        reads.withLock { $0.append((from, next, keys)) }
                        if next.revision > 0 { position = next }
                    }
                }
            ])
        let done = reads.withLock(\.self)
        for (from, to, keys) in done {
            let revisions = (from?.revision ?? 0)..<max(from?.revision ?? 0, to.revision)
            let expected = log.keys(of: store, revisions: revisions)
            #expect(keys.subtracting([Self.contested]) == expected)
        }
        let last = try #require(done.last)
        #expect(last.to.revision == 80)
    }

    // MARK: - Ends

    @Test(arguments: Backend.shared)
    func `no push commits once its device's revocation has returned`(backend: Backend) throws {
        let nodes = try backend.openNodes(2, in: folder)
        for round in 0..<8 {
            try nodes[0].addCode("code \(round)")
            let device = try nodes[1].redeem(
                SecretHash(of: "code \(round)"), by: Sample.newDevice("credential \(round)"),
                now: 1_000
            ).device
            try expectNoPush(after: round, device.rights, nodes) { node in
                try !node.revoke(device.reference, now: 1_000, by: .operatorLocally).isEmpty
            }
        }
    }

    @Test(arguments: Backend.shared)
    func `no push commits once its account's erasure has returned, and nothing is left of it`(
        backend: Backend
    ) throws {
        let nodes = try backend.openNodes(2, in: folder)
        for round in 0..<8 {
            try expectNoPush(after: round, nil, nodes) { node in
                try node.erase(Sample.account.id, now: 1_000, by: .operatorLocally)
            }
            for node in nodes {
                #expect(try node.stores(of: ada).isEmpty)
                #expect(try node.positions(of: [Sample.store]).isEmpty)
                #expect(try Self.records(in: Sample.store, node).isEmpty)
            }
            while try nodes[round % 2].eraseRest(for: 1_000) {}
            // What the nodes remember of the old store holds for the new one in nothing.
            try nodes[1].makeSampleAccount()
            let push = Sample.push(Sample.record("new", .integer(1), at: 500))
            for node in nodes { #expect(try node.commit(push)?.position.revision == 1) }
            #expect(try nodes.map { try $0.keys(since: nil) } == [["new"], ["new"]])
            #expect(
                try nodes[0].stores(of: ada).map(\.usage)
                    == [Self.usage(of: Self.records(in: Sample.store, nodes[1]))])
        }
    }

    /// One node pushes without end, while the other one does something after which it cannot.
    private func expectNoPush(
        after round: Int, _ rights: DeviceRights?, _ nodes: [any ServerStorage],
        _ end: @escaping @Sendable (any ServerStorage) throws -> Bool
    ) throws {
        let pushes = Mutex(0)
        let position = Mutex<[StoreReference: Position]>([:])
        try atOnce([
            {
                defer { pushes.withLock { $0 += 3 } }
                while true {
                    var push = Self.push(
                        round, pushes.withLock { $0 }, 0, to: [Sample.store])
                    push.rights = rights
                    switch try nodes[0].commit([push], rules: Sample.rules())[0] {
                    case .success: pushes.withLock { $0 += 1 }
                    case .failure(.notAllowed(.credentialInvalid)), .failure(.noSuchAccount): return
                    case .failure(let refusal): throw refusal
                    }
                }
            },
            {
                while pushes.withLock({ $0 }) < 3 { usleep(200) }
                guard try end(nodes[1]) else { throw Trouble("the end") }
                let positions = try nodes[1].positions(of: [Sample.store])
                position.withLock { $0 = positions }
            },
        ])
        let last = try nodes[0].positions(of: [Sample.store])
        #expect(position.withLock { $0 } == last)
    }

    // MARK: - What only one may have

    @Test(arguments: Backend.shared)
    func `a code that several nodes redeem at once signs one device in`(backend: Backend) throws {
        let nodes = try backend.openNodes(3, in: folder)
        for round in 0..<8 {
            let code = "code \(round)"
            try nodes[0].addCode(code)
            let devices = try succeeding(nodes, else: .codeInvalid) { number, node in
                try node.redeem(
                    SecretHash(of: code),
                    by: Sample.newDevice("credential \(round) \(number)"), now: 1_000
                ).device
            }
            #expect(devices.count == 1)
        }
        #expect(try nodes[1].devices(of: ada).count == 8)
        #expect(try Self.actions(nodes[2]).count { $0 == .deviceSignedIn } == 8)
    }

    @Test(arguments: Backend.shared)
    func `a name that several nodes give at once is given once`(backend: Backend) throws {
        let nodes = try backend.openNodes(3, in: folder)
        for round in 0..<8 {
            let name = try #require(AccountName("person \(round)"))
            let made = try succeeding(nodes, else: .accountExists) { _, node in
                let account = Account(id: .random(), name: name, createdMilliseconds: 2)
                try node.createAccount(account, accountsMax: 99, by: .operatorLocally)
                return account
            }
            #expect(made.count == 1)
            #expect(try nodes[0].account(named: name) == made.first)
        }
        #expect(try nodes[1].accounts().count == 9)
        #expect(try Self.actions(nodes[2]).count { $0 == .accountCreated } == 9)
    }

    @Test(arguments: Backend.shared)
    func `an identity that signs in at several nodes at once gets one account`(
        backend: Backend
    ) throws {
        let nodes = try backend.openNodes(3, in: folder)
        for round in 0..<4 {
            let identity = Identity(issuer: "i", subject: "\(round)")
            let signedIn = try succeeding(nodes, else: .accountExists) { number, node in
                try node.signIn(
                    identity, preferredName: AccountName("person \(round)"), accountsMax: 99,
                    by: Sample.newDevice("credential \(round) \(number)"), now: 5)
            }
            #expect(signedIn.count == 3)
            #expect(Set(signedIn.map(\.account.id)).count == 1)
        }
        #expect(try nodes[1].accounts().count == 5)
    }

    @Test(arguments: Backend.shared)
    func `limits of accounts, devices, apps and stores hold for all nodes together`(
        backend: Backend
    ) throws {
        let nodes = try backend.openNodes(3, in: folder)
        let many = nodes + nodes + nodes
        for number in many.indices { try nodes[0].addCode("code \(number)") }
        let full = StorageError.tooManyDevices("in this account", 4, max: 4)
        let devices = try succeeding(many, else: full) { number, node in
            try node.redeem(
                SecretHash(of: "code \(number)"),
                by: Sample.newDevice("credential \(number)", devicesMax: 4), now: 1_000)
        }
        #expect((devices.count, try nodes[1].devices(of: ada).count) == (4, 4))
        let accounts = try succeeding(many, else: .tooMany("accounts")) { number, node in
            let account = Account(
                id: .random(), name: AccountName("person \(number)")!, createdMilliseconds: 2)
            try node.createAccount(account, accountsMax: 5, by: .operatorLocally)
            return account
        }
        #expect(try (accounts.count, nodes[1].accounts().count) == (4, 5))
        let apps = try succeeding(many, else: .tooMany("registered apps")) { number, node in
            let app = RegisteredApp(
                identifier: try StoreIdentifier("app-\(number)"), registered: 7)
            return try node.register(app, appsMax: 4, by: .operatorLocally)
        }
        #expect(apps == [true, true, true, true])
        #expect(try nodes[1].apps().count == 4)
        let results = try succeeding(many, else: .codeInvalid) { number, node in
            let store = try Self.stores("store-\(number)")[0]
            let push = Sample.push(Sample.record("a", .integer(1), at: 500), to: store)
            return try node.commit([push], rules: Sample.rules())[0]
        }
        #expect(results.count { $0 == .failure(.tooManyStores) } == 7)
        #expect(try nodes[2].stores(of: ada).count == 2)
    }

    /// Has each node do something at once.
    /// - Returns: The results of all that did not fail with this error.
    private func succeeding<T: Sendable>(
        _ nodes: [any ServerStorage], else expected: StorageError,
        _ body: @escaping @Sendable (Int, any ServerStorage) throws -> T
    ) throws -> [T] {
        let results = Mutex<[T]>([])
        try atOnce(
            nodes.enumerated().map { number, node in
                {
                    do {
                        let result = try body(number, node)
                        results.withLock { $0.append(result) }
                    } catch let error as StorageError where error == expected {}
                }
            })
        return results.withLock(\.self)
    }

    // MARK: - Hearing of each other

    @Test(arguments: Backend.shared)
    func `each node hears what another one did`(backend: Backend) async throws {
        let nodes = try backend.openNodes(2, in: folder)
        let heard = Mutex<Set<StorageNews>>([])
        nodes[0].observe { news in heard.withLock { _ = $0.insert(news) } }
        func hears(_ news: StorageNews) async throws {
            try await until("\(news)") { heard.withLock { $0.contains(news) } }
        }
        // Something may have happened before.
        try await hears(.anything)
        let commit = try #require(
            try nodes[1].commit(Sample.push(Sample.record("a", .integer(1), at: 500))))
        try await hears(.committed(Sample.store, commit.position))
        try nodes[1].addCode("code")
        let device = try nodes[1].redeem(
            SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000
        ).device.reference
        let stranger = DeviceReference(account: ada, id: .random())
        #expect(try nodes[0].signedIn(among: [device, stranger]) == [device])
        #expect(try nodes[1].revoke(device, now: 1_000, by: .operatorLocally) == [device])
        try await hears(.revoked(device))
        #expect(try nodes[0].signedIn(among: [device, stranger]).isEmpty)
        let app = RegisteredApp(identifier: Sample.store.identifier, registered: 7)
        #expect(try nodes[1].register(app, appsMax: 9, by: .operatorLocally))
        try await hears(.appsChanged)
        #expect(try nodes[1].erase(ada, now: 1_000, by: .operatorLocally))
        try await hears(.accountChanged(ada))
    }

    @Test(arguments: Backend.shared)
    func `news of an app that was lost is made up for by the next comparison`(
        backend: Backend
    ) throws {
        let nodes = try backend.openNodes(2, in: folder)
        var settings = ServerSettings(dataFolder: folder.file("data"))
        settings.apps = .registered
        // It follows no news.
        let server = Server(settings, storage: nodes[0], operatorHash: nil, logger: .off)
        defer { server.closeThreads() }
        let app = Sample.store.identifier
        try server.otherNodes.compare()
        #expect(!server.apps.rule.admits(app))
        _ = try nodes[1].register(
            RegisteredApp(identifier: app, registered: 7), appsMax: 9, by: .operatorLocally)
        try server.otherNodes.compare()
        #expect(server.apps.rule.admits(app))
        #expect(try nodes[1].removeApp(app, now: 8, by: .operatorLocally))
        try server.otherNodes.compare()
        #expect(!server.apps.rule.admits(app))
    }

    @Test(arguments: Backend.shared)
    func `one node has the chores until it does not renew them`(backend: Backend) async throws {
        let nodes = try backend.openNodes(2, in: folder)
        #expect(try nodes[0].lease(for: 600_000))
        #expect(try !nodes[1].lease(for: 600_000))
        #expect(try nodes[0].lease(for: 1))
        try await until("the end of the lease") { try nodes[1].lease(for: 600_000) }
        #expect(try !nodes[0].lease(for: 600_000))
        // It is given up, and nobody else can do that.
        _ = try nodes[0].lease(for: 0)
        #expect(try !nodes[0].lease(for: 600_000))
        _ = try nodes[1].lease(for: 0)
        try await until("the end of the lease") { try nodes[0].lease(for: 600_000) }
    }

    /// Eleven minutes ahead, and behind.
    @Test(arguments: Backend.shared, [660, -660])
    func `a node whose clock is wrong works by the storage's, and leaves the chores to others`(
        backend: Backend, seconds: Int64
    ) async throws {
        let nodes = try backend.openNodes(2, in: folder)
        let (first, other) = (nodes[0], nodes[1])
        let (wrong, now) = (TestClock(uptime: ServerClock.system.uptime), nowMilliseconds())
        wrong.advance(seconds: seconds)
        var settings = ServerSettings(dataFolder: folder.file("data"))
        settings.clock = wrong.clock
        let server = Server(settings, storage: first, operatorHash: nil, logger: .off)
        defer { server.closeThreads() }
        try server.otherNodes.checkClock()
        #expect(server.readiness.isClockWrong)
        #expect(abs(server.settings.clock.now() - now) < 300_000)
        // It neither takes the lease, nor removes anything.
        let housekeeping = Housekeeping(server)
        try await housekeeping.renewLease()
        #expect(try other.lease(for: 600_000))
        try other.addCode("code", expiresMilliseconds: now + 600_000, now: now)
        try housekeeping.removeExpired()
        _ = try first.redeem(
            SecretHash(of: "code"), by: Sample.newDevice(), now: server.settings.clock.now())
        // When its clock was set it has the lease, and gives it up when it is wrong again.
        wrong.advance(seconds: -seconds)
        try server.otherNodes.checkClock()
        #expect(!server.readiness.isClockWrong)
        _ = try other.lease(for: 0)
        try await housekeeping.renewLease()
        #expect(try !other.lease(for: 600_000))
        wrong.advance(seconds: seconds)
        try server.otherNodes.checkClock()
        try await housekeeping.renewLease()
        #expect(try other.lease(for: 600_000))
    }

    @Test(arguments: Backend.shared)
    func `compaction on one node counts for the pushes of all`(backend: Backend) throws {
        let nodes = try backend.openNodes(2, in: folder)
        let rule = CompactionRule(
            retentionMilliseconds: 100, liveMilliseconds: 1_000, tombstonesMax: 10)
        try nodes[0].commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        try nodes[1].commit(Sample.push(Sample.record("a", nil, at: 600)))
        try nodes[0].commit(Sample.push(Sample.record("b", .integer(1), at: 700)))
        try nodes[1].addRunningTime(60)
        try nodes[0].addRunningTime(40)
        #expect(try nodes[1].compact(rule, in: Sample.store, now: 0) == 1)
        #expect(try nodes[0].compact(rule, in: Sample.store, now: 0) == 0)
        #expect(try nodes[0].read(Sample.store, since: Sample.position(1)) == .compacted)
        let late = try nodes[0].commit(Sample.push(Sample.record("a", .integer(2), at: 599)))
        #expect(late?.results == [.refused(.olderThanCompacted)])
    }

    // MARK: - Samples

    private nonisolated static let contested = try! Key("contested")

    private nonisolated static func stores(
        _ names: String..., of account: AccountID = Sample.account.id
    ) throws -> [StoreReference] {
        try names.sorted().map {
            StoreReference(account: account, identifier: try StoreIdentifier($0))
        }
    }

    /// Writes a key of its own, so that it always makes a revision, and one that all write.
    private nonisolated static func push(
        _ writer: Int, _ round: Int, _ place: Int, to stores: [StoreReference]
    ) -> PendingPush {
        let device = DeviceID(rawValue: UInt64(writer + 1))
        let number = round * 10 + place
        let value = PropertyListValue.string(
            ExactString(String(repeating: "x", count: number % 17)))
        return Sample.push(
            Sample.record("\(writer).\(number)", value, at: 500 + Int64(number), by: device),
            Record(
                key: contested, content: .value(value),
                stamp: Stamp(
                    HybridTimestamp(milliseconds: 500 + Int64(number), counter: 4), device)),
            to: stores[number % stores.count])
    }

    private nonisolated static func records(
        in store: StoreReference, _ node: any ServerStorage
    ) throws -> [Record] {
        guard case .changes(let records, _, _, _) = try node.read(store, since: nil) else {
            throw Trouble("the first read of a store")
        }
        return try records.map { try $0.record() }
    }

    /// The usage of these records in a store of their own.
    private nonisolated static func usage(of records: [Record]) throws -> Usage {
        let storage = try SQLiteServerStorage.inMemory()
        try storage.commit(
            PendingPush(store: Sample.store, push: Push([try Transaction(records)])))
        return try #require(try storage.stores(of: Sample.account.id).first).usage
    }

    private nonisolated static func actions(_ node: any ServerStorage) throws -> [AuditAction] {
        try node.auditEntries(before: nil, max: 999).flatMap { entry in
            Array(repeating: entry.event.action, count: Int(entry.count))
        }
    }
}

/// The pushes of all threads.
private final class PushLog: Sendable {
    private let pushes = Mutex<[StoreReference: [(revision: Int64, key: Key)]]>([:])

    func note(_ push: PendingPush, at position: Position) {
        let key = push.push.transactions[0].writes[0].key
        pushes.withLock { $0[push.store, default: []].append((position.revision, key)) }
    }

    func revisions(of store: StoreReference) -> [Int64] {
        pushes.withLock { $0[store, default: []].map(\.revision).sorted() }
    }

    /// The writers' own keys that have these revisions.
    func keys(of store: StoreReference, revisions: Range<Int64> = 0..<Int64.max) -> Set<Key> {
        pushes.withLock { pushes in
            Set(
                pushes[store, default: []].filter { revisions.contains($0.revision - 1) }.map(\.key)
            )
        }
    }
}

extension Server {
    /// Ends its threads, and leaves the storage open.
    fileprivate func closeThreads() {
        for threads in [writer, readers] + lanes { threads.close() }
    }
}
