// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// A commit whose connection breaks, so that nobody knows whether it took effect.
@Suite(.enabled(if: PostgresDatabase.isAvailable, "PostgreSQL 15 is not installed"))
@OwnThread struct PostgresDoubtTests {
    private let folder: TemporaryFolder
    private let ada = Sample.account.id

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: PostgresProxy.Cut.allCases)
    func `a push whose commit is in doubt is applied once and answered right`(
        cut: PostgresProxy.Cut
    ) throws {
        let database = try PostgresDatabase(in: folder)
        let proxy = try PostgresProxy(to: PostgresDatabase.server.get().port)
        let node = try database.open(through: proxy)
        try node.makeSampleAccount()
        for round in 1...6 {
            let write = Sample.record(
                "key \(round)", round == 4 ? nil : .integer(1), at: 500 + Int64(round))
            proxy.cut(cut)
            let commit = try #require(try node.commit(Sample.push(write)))
            #expect(proxy.planned == 0)
            #expect(commit.results == [.committed([.applied])])
            #expect(commit.position == Sample.position(Int64(round)))
        }
        #expect(try node.keys(since: nil)?.count == 5)
        #expect(try node.keys(since: Sample.position(0))?.count == 6)
        #expect(try node.stores(of: ada).map(\.usage.keys) == [5])
    }

    @Test(arguments: PostgresProxy.Cut.allCases)
    func `counts whose commit is in doubt are added once`(cut: PostgresProxy.Cut) throws {
        let database = try PostgresDatabase(in: folder)
        let proxy = try PostgresProxy(to: PostgresDatabase.server.get().port)
        let node = try database.open(through: proxy)
        try node.makeSampleAccount()
        for run in 1...70 {
            var count = Sample.record("k", .array([.integer(1), .integer(2)]), at: Int64(run))
            count.key = count.key.part(PartID("c\(run)")!)
            if run % 9 == 0 { proxy.cut(cut) }
            try node.commit(Sample.push(count))
        }
        #expect(proxy.planned == 0)
        guard case .changes(let records, _, _, _) = try node.read(Sample.store, since: nil) else {
            throw Trouble("no changes")
        }
        let total = try records.reduce(Int64(0)) { sum, record in
            guard case .value(.array(let parts)) = try record.record().content,
                case .integer(let amount) = parts[1]
            else { throw Trouble("no count") }
            return sum + amount
        }
        #expect(total == 140)
    }

    @Test(arguments: PostgresProxy.Cut.allCases)
    func `an action whose commit is in doubt is done once and answered right`(
        cut: PostgresProxy.Cut
    ) throws {
        let database = try PostgresDatabase(in: folder)
        let proxy = try PostgresProxy(to: PostgresDatabase.server.get().port)
        let node = try database.open(through: proxy)
        func inDoubt<T>(_ body: () throws -> T) throws -> T {
            proxy.cut(cut)
            defer { #expect(proxy.planned == 0) }
            return try body()
        }
        try inDoubt { try node.makeSampleAccount() }
        try inDoubt { try node.addCode("code") }
        let device = try inDoubt {
            try node.redeem(SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000).device
        }
        #expect(try node.devices(of: ada) == [device])
        #expect(throws: StorageError.codeInvalid) {
            try node.redeem(SecretHash(of: "code"), by: Sample.newDevice("other"), now: 1_000)
        }
        let identity = Identity(issuer: "i", subject: "s")
        let bob = try inDoubt {
            try node.signIn(
                identity, preferredName: AccountName("bob"), accountsMax: 2,
                by: Sample.newDevice("bob's", devicesMax: 1), now: 5)
        }
        #expect(bob.account.name.string == "bob")
        #expect(try node.devices(of: bob.account.id) == [bob.device])
        let name = try #require(AccountName("Ada Lovelace"))
        try inDoubt { try node.rename(ada, to: name, now: 3, by: .operatorLocally) }
        #expect(
            try inDoubt {
                try node.rename(
                    device.reference, displayName: "desk", now: 1, by: .operatorLocally)
            })
        let app = RegisteredApp(identifier: Sample.store.identifier, registered: 7)
        #expect(try inDoubt { try node.register(app, appsMax: 1, by: .operatorLocally) })
        #expect(
            try inDoubt { try node.removeApp(app.identifier, now: 8, by: .operatorLocally) })
        try node.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        #expect(
            try inDoubt { try node.revoke(device.reference, now: 9, by: .operatorLocally) }
                == [device.reference])
        #expect(try inDoubt { try node.erase(ada, now: 9, by: .operatorLocally) })
        #expect(try node.accounts() == [bob.account])
        #expect(
            try node.auditEntries(before: nil, max: 99).map(\.event.action).reversed()
                == [
                    .accountCreated, .codeMade, .deviceSignedIn, .accountCreated, .deviceSignedIn,
                    .accountRenamed, .deviceRenamed, .appRegistered, .appRemoved, .deviceRevoked,
                    .accountErased,
                ])
    }

    @Test func `the halves of a group whose commit is in doubt may be repeats, too`() throws {
        let database = try PostgresDatabase(in: folder)
        let proxy = try PostgresProxy(to: PostgresDatabase.server.get().port)
        let node = try database.open(through: proxy)
        try node.makeSampleAccount()
        let stores = try ["one", "two"].map {
            StoreReference(account: ada, identifier: try StoreIdentifier($0))
        }
        func commit(_ value: Int64) throws -> [Result<CommittedPush, PushRefusal>] {
            let write = Sample.record("a", .integer(value), at: 500 + value)
            return try node.commit(
                stores.map { Sample.push(write, to: $0) }, rules: Sample.rules())
        }
        _ = try commit(1)
        let heard = Mutex<Set<StorageNews>>([])
        node.observe { news in heard.withLock { _ = $0.insert(news) } }
        // What repeats a push to one of the stores fails.
        try database.query(
            """
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN RAISE EXCEPTION USING ERRCODE = ''22000''; END';
            CREATE TRIGGER refuse BEFORE UPDATE ON ubiquity.store FOR EACH ROW
                WHEN (OLD.identifier = 'one' AND OLD.revision = NEW.revision)
                EXECUTE FUNCTION refuse()
            """)
        proxy.cut(.afterCommit)
        let results = try commit(2)
        #expect(proxy.planned == 0)
        #expect((try? results[0].get()) == nil)
        #expect(try results[1].get().position.revision == 2)
        // Nobody else tells the listeners of this node what the first attempt committed.
        let news = StorageNews.committed(stores[1], Sample.position(2, of: stores[1]))
        #expect(heard.withLock { $0.contains(news) })
    }

    @Test func `backends that are ended at any time cost no push and double none`() throws {
        let database = try PostgresDatabase(in: folder)
        let nodes = try [database.open(), database.open()]
        try nodes[0].makeSampleAccount()
        let writers = Mutex(2)
        let revisions = Mutex<[Int64]>([])
        try atOnce(
            nodes.enumerated().map { number, node in
                {
                    defer { writers.withLock { $0 -= 1 } }
                    for round in 0..<60 {
                        let write = Sample.record(
                            "\(number).\(round)", .integer(1), at: 500,
                            by: DeviceID(rawValue: UInt64(number + 1)))
                        let result = try node.commit([Sample.push(write)], rules: Sample.rules())[0]
                        let revision = try result.get().position.revision
                        revisions.withLock { $0.append(revision) }
                    }
                }
            } + [
                {
                    while writers.withLock({ $0 }) > 0 {
                        try database.query(
                            """
                            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                            WHERE datname = current_database() AND pid <> pg_backend_pid()
                            """)
                        usleep(20_000)
                    }
                }
            ])
        // A repeat after a commit in doubt is answered with the newest revision, which may be later.
        #expect(revisions.withLock { Set($0) }.isSubset(of: Set(1...120)))
        #expect(try nodes[0].positions(of: [Sample.store]).values.map(\.revision) == [120])
        #expect(try nodes[1].keys(since: nil)?.count == 120)
        #expect(try nodes[0].stores(of: ada).map(\.usage.keys) == [120])
    }
}
