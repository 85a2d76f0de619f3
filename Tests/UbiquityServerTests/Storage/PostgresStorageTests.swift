// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// The storage in PostgreSQL where it differs from the others.
@Suite(.enabled(if: PostgresDatabase.isAvailable, "PostgreSQL 15 is not installed"))
@OwnThread struct PostgresStorageTests {
    private let folder: TemporaryFolder
    init() throws { folder = try TemporaryFolder() }

    private nonisolated static let push = Sample.push(Sample.record("a", .string("1"), at: 5))

    // MARK: - Commits in doubt

    /// A storage on a server of its own that waits for a standby which does not exist.
    private func waiting() throws -> (PostgresServer, PostgresServerStorage) {
        let server = try PostgresServer.started(settings: ["max_connections": "20"])
        var settings = PostgresSettings.patient(server.url())
        settings.usesOwnClock = true
        let storage = try PostgresServerStorage.openForServer(settings)
        try storage.makeSampleAccount()
        // Not by a reload: sessions wait only when the checkpointer has noticed too.
        try server.set(["synchronous_standby_names": "nobody"])
        try server.stop()
        try server.start()
        return (server, storage)
    }

    private nonisolated static func standbysAreForgotten(_ server: PostgresServer) throws {
        try server.set(["synchronous_standby_names": ""])
        server.reload()
    }

    private nonisolated static let waitingOnes =
        "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'"

    /// Waits for a condition on a thread that may block.
    private nonisolated static func wait(
        _ server: PostgresServer, _ sql: String, _ isWanted: (String) -> Bool
    ) throws {
        let deadline = ContinuousClock.now + .seconds(300)
        while try !isWanted(server.query(sql)) {
            guard .now < deadline else { throw Trouble("\(sql) was never so") }
            usleep(10_000)
        }
    }

    /// Runs the body, and does something to the session whose commit waits for the standby. Then
    /// nobody waits for standbys any more.
    private nonisolated static func doing(
        _ deed: String, to server: PostgresServer, _ body: @escaping @Sendable () throws -> Void
    ) throws {
        try atOnce([
            body,
            {
                try wait(server, "SELECT 1 \(waitingOnes)") { !$0.isEmpty }
                let start = try server.query("SELECT xact_start \(waitingOnes)")
                try server.query("SELECT \(deed)(pid) \(waitingOnes)")
                // The next attempt waits too, perhaps in the same session.
                try wait(server, "SELECT 1 \(waitingOnes) AND xact_start > '\(start)'") {
                    !$0.isEmpty
                }
                try standbysAreForgotten(server)
            },
        ])
    }

    @Test(arguments: ["pg_terminate_backend", "pg_cancel_backend"])
    func `a push whose commit is in doubt is decided again`(deed: String) throws {
        let (server, storage) = try waiting()
        try Self.doing(deed, to: server) {
            let committed = try storage.commit(Self.push)
            // The first attempt had been committed on this server.
            #expect(committed?.writes == [])
            #expect(committed?.position.revision == 1)
        }
        #expect(try storage.keys(since: nil) == ["a"])
        try storage.close()
    }

    @Test func `a body whose commit is in doubt is told so when it runs again`() throws {
        let (server, storage) = try waiting()
        let attempts = Mutex<[Bool]>([])
        try Self.doing("pg_cancel_backend", to: server) {
            try storage.writing { transaction in
                attempts.withLock { $0.append(transaction.mayBeRepeated) }
                try transaction.run("UPDATE ubiquity.running SET milliseconds = milliseconds + 1")
            }
        }
        // One more may come before, on a connection from before the server's restart.
        #expect(attempts.withLock { $0.suffix(2) } == [false, true])
        try storage.close()
    }

    @Test func `a commit that waits too long for a standby is not answered, and given up`() throws {
        let (server, storage) = try waiting()
        var settings = storage.settings
        settings.statementMilliseconds = 300
        settings.answerMarginMilliseconds = 0
        settings.patienceMilliseconds = 0
        let hasty = PostgresServerStorage(settings, pool: PostgresPool(settings))
        try Self.wait(server, "SHOW synchronous_standby_names") { $0 == "nobody" }
        #expect(throws: StorageError.self) { try hasty.commit(Self.push) }
        // It holds no lock any more.
        try Self.wait(server, "SELECT count(*) \(Self.waitingOnes)") { $0 == "0" }
        try Self.standbysAreForgotten(server)
        try Self.wait(server, "SHOW synchronous_standby_names") { $0.isEmpty }
        #expect(try storage.commit(Self.push)?.position.revision == 1)
        try hasty.close()
        try storage.close()
    }

    @Test func `without a standby nothing is committed where one is required`() throws {
        let (server, storage) = try waiting()
        try Self.standbysAreForgotten(server)
        var settings = storage.settings
        settings.requiresSynchronousStandby = true
        let strict = try PostgresServerStorage.openForServer(settings)
        for names in ["", "nobody"] {
            try server.set(["synchronous_standby_names": names])
            server.reload()
            try Self.wait(server, "SHOW synchronous_standby_names") { $0 == names }
            let error = #expect(throws: StorageError.self) { try strict.commit(Self.push) }
            #expect("\(error!)".contains("standby"))
            #expect(throws: StorageError.self) { try strict.addRunningTime(1) }
        }
        try server.set(["synchronous_standby_names": "*"])
        server.reload()
        let standby = try server.newStandby()
        try Self.wait(server, "SELECT sync_state FROM pg_stat_replication") { $0 == "sync" }
        #expect(try strict.commit(Self.push)?.position.revision == 1)
        try strict.close()
        try storage.close()
        withExtendedLifetime(standby) {}
    }

    // MARK: - Damage

    @Test func `a device that cannot be read keeps no other from being removed`() throws {
        let database = try PostgresDatabase(in: folder)
        let storage = try database.open()
        try storage.makeSampleAccount()
        let expiring = CredentialTerms(milliseconds: 10)
        for name in ["one", "two"] {
            try storage.addCode(name, terms: expiring)
            _ = try storage.redeem(SecretHash(of: name), by: Sample.newDevice(name), now: 1_000)
        }
        try database.query(
            """
            UPDATE ubiquity.device SET account = 'damaged'
            WHERE id = (SELECT min(id) FROM ubiquity.device)
            """)
        #expect(try storage.removeDevices(expiredBy: 2_000, now: 2_000) == 1)
        #expect(try database.query("SELECT account FROM ubiquity.device") == "damaged")
        try storage.close()
    }

    @Test func `a history that cannot be pruned refuses the pushes of its store alone`() throws {
        let database = try PostgresDatabase(in: folder)
        let storage = try database.open()
        try storage.makeSampleAccount()
        let other = StoreReference(
            account: Sample.account.id, identifier: try StoreIdentifier("other"))
        for number: Int64 in 1...30 {
            try storage.commit(Sample.push(Sample.record("a", .integer(number), at: 500 + number)))
        }
        try database.query("UPDATE ubiquity.version SET outcome = 99 WHERE ended = 7")
        let write = Sample.record("a", .integer(0), at: 900)
        let rules = Sample.rules(history: HistoryLimits(bytesMax: 2_000))
        let results = try storage.commit(
            [Sample.push(write), Sample.push(write, to: other)], rules: rules)
        #expect(results[0] == .failure(.unreadable))
        #expect(try results[1].get().results == [.committed([.applied])])
        let revisions = "SELECT revision FROM ubiquity.store ORDER BY revision"
        #expect(try database.query(revisions) == "1\n30")
        try storage.close()
    }

    // MARK: - The state of a store

    @Test func `a refused push leaves no empty store`() throws {
        let database = try PostgresDatabase(in: folder)
        let storage = try database.open()
        try storage.makeSampleAccount()
        let ahead = Sample.push(Sample.record("a", .string("1"), at: 10_000_000))
        #expect(try storage.commit(ahead) == nil)
        #expect(try database.query("SELECT count(*) FROM ubiquity.store") == "0")
        try storage.close()
    }

    @Test func `the old spans of a store are rows`() throws {
        let storage = try PostgresDatabase(in: folder).open()
        try storage.makeSampleAccount()
        var positions: [Position] = []
        for run in 1...30 as ClosedRange<UInt64> {
            let push = Sample.push(Sample.record("k\(run)", .string("1"), at: 5))
            positions.append(try #require(try storage.commit(push, epoch: run)).position)
        }
        for (index, position) in positions.enumerated() {
            #expect(try storage.keys(since: position)?.count == 29 - index)
            let other = Position(epoch: position.epoch &+ 1, revision: position.revision)
            #expect(try storage.keys(since: other) == nil)
        }
        try storage.close()
    }

    // MARK: - Reading

    @Test func `a read is one flight`() throws {
        let proxy = try PostgresProxy(to: PostgresDatabase.server.get().port)
        let node = try PostgresDatabase(in: folder).open(through: proxy)
        try node.makeSampleAccount()
        let position = try #require(try node.commit(Self.push)).position
        let ada = Sample.account
        let device = DeviceReference(account: ada.id, id: DeviceID(rawValue: 1))
        let reads: [() throws -> Void] = [
            { _ = try node.operatorHash() }, { _ = try node.account(ada.id) },
            { _ = try node.account(named: ada.name) }, { _ = try node.accounts() },
            { _ = try node.devices(of: ada.id) },
            { _ = try node.device(credential: SecretHash(of: "c")) },
            { _ = try node.signedIn(among: [device]) }, { _ = try node.apps() },
            { _ = try node.auditEntries(before: nil, max: 9) }, { _ = try node.clock() },
            { _ = try node.history() }, { _ = try node.positions(of: [Sample.store]) },
            { _ = try node.read(Sample.store, since: nil) },
            { _ = try node.read(Sample.store, since: position) },
            { _ = try node.eraseRest(for: 1_000) },
        ]
        for (number, read) in reads.enumerated() {
            let before = proxy.flights
            try read()
            #expect(proxy.flights == before + 1, "read \(number)")
        }
    }

    @Test func `a read that fails leaves nothing behind on its connection`() throws {
        let database = try PostgresDatabase(in: folder)
        let storage = try database.open()
        try storage.makeSampleAccount()
        try storage.commit(Self.push)
        try database.query("ALTER TABLE ubiquity.record RENAME TO gone")
        #expect(throws: StorageError.self) { try storage.read(Sample.store, since: nil) }
        try database.query("ALTER TABLE ubiquity.gone RENAME TO record")
        #expect(try storage.keys(since: nil) == ["a"])
        try storage.close()
    }

    // MARK: - Opening

    @Test func `a database that this program cannot use is left as it was`() throws {
        let database = try PostgresDatabase(in: folder, isEmpty: true)
        let settings = try PostgresSettings.patient(database.url)
        func problem(isServing: Bool) -> ServerStartError? {
            do {
                let storage =
                    isServing
                    ? try PostgresServerStorage.openForServer(settings)
                    : try PostgresServerStorage.openForAdministration(settings)
                try storage.close()
                return nil
            } catch let error as ServerStartError { return error } catch { return nil }
        }
        #expect(problem(isServing: false) == .database(.empty))
        try database.query("CREATE SCHEMA ubiquity")
        #expect(problem(isServing: false) == .database(.empty))
        try database.query("CREATE TABLE ubiquity.meta (version int)")
        for isServing in [false, true] {
            #expect(problem(isServing: isServing) == .database(.foreign))
        }
        #expect(
            try database.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'ubiquity'")
                == "1")
        try database.query("DROP SCHEMA ubiquity CASCADE")
        let format = Int(PostgresSchema.version)
        #expect(try settings.migrate() == (0, format))
        #expect(try settings.migrate() == (format, format))
        try database.query("DROP SCHEMA ubiquity CASCADE")
        #expect(problem(isServing: true) == nil)
        #expect(problem(isServing: false) == nil)
        try database.query("UPDATE ubiquity.meta SET version = 99, compatible = 1")
        #expect(problem(isServing: true) == nil)
        try database.query("UPDATE ubiquity.meta SET compatible = 99")
        #expect(
            problem(isServing: true)
                == .database(.newer(version: 99, known: PostgresSchema.version)))
        try database.query("UPDATE ubiquity.meta SET version = -1, compatible = -1")
        #expect(problem(isServing: true) == .database(.foreign))
        #expect(throws: ServerStartError.database(.foreign)) { try settings.migrate() }
    }

    @Test func `a node stops committing when a newer program migrates the database`() throws {
        let database = try PostgresDatabase(in: folder)
        let storage = try database.open()
        try storage.makeSampleAccount()
        try database.query("UPDATE ubiquity.meta SET version = 99, compatible = 99")
        #expect(throws: StorageError.self) { try storage.commit(Self.push) }
        try storage.close()
    }

    @Test func `a standby, and a server that is not there, are named`() throws {
        let server = try PostgresServer.started(settings: ["max_connections": "20"])
        let standby = try server.newStandby()
        let error = #expect(throws: ServerStartError.self) {
            _ = try PostgresServerStorage.openForServer(.patient(standby.url()))
        }
        #expect(error == .database(.readOnly))
        let both = PostgresServer.url(ports: [standby.port, server.port], "postgres")
        try PostgresServerStorage.openForServer(.patient(both)).close()
        var few = PostgresSettings.patient(both)
        few.connectionsMax = 17
        let tooFew = #expect(throws: ServerStartError.self) {
            _ = try PostgresServerStorage.openForServer(few)
        }
        guard case .database(.tooFewConnections(needed: 18, _)) = tooFew else {
            Issue.record("\(tooFew!)")
            return
        }
        server.kill()
        let gone = #expect(throws: ServerStartError.self) {
            _ = try PostgresServerStorage.openForServer(.patient(server.url()))
        }
        guard case .database(.unreachable) = gone else {
            Issue.record("\(gone!)")
            return
        }
    }
}
