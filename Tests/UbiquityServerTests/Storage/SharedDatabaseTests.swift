// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// Tests of a database that several nodes share: its histories, its schema and its locks.
@Suite(.enabled(if: PostgresDatabase.isAvailable, "PostgreSQL 15 is not installed"))
@OwnThread struct SharedDatabaseTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// The product's rules: the storage names its own history.
    private static func push(_ key: String, to node: PostgresServerStorage) throws -> Position {
        var rules = Sample.rules()
        rules.run = nil
        let push = Sample.push(Sample.record(key, .integer(1), at: 500))
        return try node.commit([push], rules: rules)[0].get().position
    }

    @Test func `nodes that come and go are one history`() throws {
        let database = try PostgresDatabase(in: folder)
        let first = try database.open()
        try first.makeSampleAccount()
        let positions = try [Self.push("a", to: first), Self.push("b", to: database.open())]
        try first.close()
        let last = try Self.push("c", to: database.open())
        #expect(Set(positions.map(\.epoch)) == [last.epoch])
        #expect(try database.open().keys(since: positions[0]) == ["b", "c"])
    }

    @Test func `a restart and a promotion are another epoch, in which older positions hold`()
        async throws
    {
        let primary = try PostgresServer.started()
        try primary.query("CREATE DATABASE ubiquity")
        try primary.set(["synchronous_standby_names": "*"])
        let standby = try primary.newStandby()
        primary.reload()
        var settings = PostgresDatabase.settings(primary, "ubiquity")
        settings.url = PostgresServer.url(ports: [primary.port, standby.port], "ubiquity")
        let node = try PostgresServerStorage.openForServer(settings)
        try node.makeSampleAccount()
        let first = try Self.push("a", to: node)
        primary.kill()
        try primary.start()
        let second = try Self.push("b", to: node)
        primary.kill()
        try standby.promote()
        try primary.become(standbyOf: standby)
        let third = try Self.push("c", to: node)
        #expect([first, second, third].map(\.revision) == [1, 2, 3])
        #expect(Set([first, second, third].map(\.epoch)).count == 3)
        #expect(try node.keys(since: first) == ["b", "c"])
        #expect(try node.keys(since: second) == ["c"])
        #expect(try node.keys(since: third) == [])
        try node.close()
    }

    /// Runs what `docs/OPERATING.md` says to run on a database that was restored.
    @Test func `what was used after a copy was made is void in what is restored from it`() throws {
        let database = try PostgresDatabase(in: folder)
        let node = try database.open()
        try node.makeSampleAccount()
        try node.addCode("code")
        for name in ["approved", "waiting"] { try node.addSampleRequest(name, now: 1_000) }
        let userCode = SecretHash(of: "code of waiting")
        try node.decide(
            SecretHash(of: "code of approved"), .approved(Sample.account.id, CredentialTerms()),
            now: 1_000, by: .operatorLocally)
        let history = try node.history()
        let root = (0..<4).reduce(URL(fileURLWithPath: #filePath)) { url, _ in
            url.deletingLastPathComponent()
        }
        let text = try String(
            contentsOf: root.appendingPathComponent("docs/OPERATING.md"), encoding: .utf8)
        let commands = text.matches(of: /psql --command="([^"]*ubiquity\.code[^"]*)" ubiquity/)
        try #require(commands.count == 1)
        try database.query(String(commands[0].1))
        #expect(throws: StorageError.codeInvalid) {
            try node.redeem(SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000)
        }
        #expect(throws: StorageError.codeInvalid) {
            try node.redeem(
                request: SecretHash(of: "approved"), by: Sample.newDevice(), now: 1_000)
        }
        #expect(try node.request(userCode: userCode, now: 1_000) == nil)
        #expect(try node.history() != history)
    }

    @Test func `what a failover lost is another history`() async throws {
        let primary = try PostgresServer.started()
        try primary.query("CREATE DATABASE ubiquity")
        let standby = try primary.newStandby()
        let settings = PostgresDatabase.settings(primary, "ubiquity")
        let node = try PostgresServerStorage.openForServer(settings)
        try node.makeSampleAccount()
        let kept = try Self.push("a", to: node)
        try await until("the standby's copy") {
            // It fails until the table is there too.
            (try? standby.query("SELECT count(*) FROM ubiquity.record", in: "ubiquity")) == "1"
        }
        standby.kill()
        let lost = try Self.push("b", to: node)
        primary.kill()
        try standby.start()
        try standby.promote()
        let other = try PostgresServerStorage.openForServer(
            PostgresDatabase.settings(standby, "ubiquity"))
        #expect(try other.read(Sample.store, since: lost) == .otherHistory)
        let instead = try Self.push("c", to: other)
        #expect(instead.revision == lost.revision)
        #expect(try other.read(Sample.store, since: lost) == .otherHistory)
        #expect(try other.keys(since: kept) == ["c"])
        try node.close()
        try other.close()
    }

    // MARK: - A replaced primary that comes back

    /// A primary, whose standby has all of "a" and the device "laptop", and then is promoted, gets "b",
    /// and revokes the device; the old primary is back and takes writes. The address names it first.
    private func promoted() async throws -> Promoted {
        let old = try PostgresServer.started()
        try old.query("CREATE DATABASE ubiquity")
        let new = try old.newStandby()
        var settings = PostgresDatabase.settings(old, "ubiquity")
        settings.url =
            PostgresSettings.patient(
                PostgresServer.url(ports: [old.port, new.port], "ubiquity")
            ).url
        let node = try PostgresServerStorage.openForServer(settings)
        try node.makeSampleAccount()
        try node.addCode("code")
        let device = try node.redeem(
            SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000
        ).device.rights.reference
        let first = try Self.push("a", to: node)
        try await until("the standby's copy") {
            // It fails until the table is there too.
            (try? new.query("SELECT count(*) FROM ubiquity.record", in: "ubiquity")) == "1"
        }
        old.kill()
        try new.promote()
        let second = try Self.push("b", to: node)
        #expect(try node.revoke(device, now: 1_000, by: .operatorLocally) == [device])
        try old.start()
        return Promoted(
            old: old, new: new, settings: settings, node: node, device: device, first: first,
            second: second)
    }

    private struct Promoted {
        var old: PostgresServer
        var new: PostgresServer
        var settings: PostgresSettings
        var node: PostgresServerStorage
        var device: DeviceReference
        /// In the last epoch of the old primary, and in the first one of the new.
        var first: Position
        var second: Position
    }

    @Test func `a replaced primary that comes back is not used again`() async throws {
        let it = try await promoted()
        // Another node, and this one with new connections.
        let other = try PostgresServerStorage.openForServer(it.settings)
        try it.new.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^ubiq'"
        )
        for (node, key) in [(it.node, "c"), (other, "d")] {
            #expect(try node.signedIn(among: [it.device]).isEmpty)
            #expect(try Self.push(key, to: node).revision > it.second.revision)
            #expect(try node.read(Sample.store, since: it.second) != .otherHistory)
        }
        #expect(try other.keys(since: it.first) == ["b", "c", "d"])
        let held = try it.old.query("SELECT revision FROM ubiquity.store", in: "ubiquity")
        #expect(held == "1")
        try it.node.close()
        try other.close()
    }

    @Test func `a node that met only a replaced primary stops for a cursor of the promoted one`()
        async throws
    {
        let it = try await promoted()
        try it.node.close()
        it.new.kill()
        var settings = it.settings
        settings.patienceMilliseconds = 0
        let node = try PostgresServerStorage.openForServer(settings)
        #expect(try node.keys(since: it.first) == [])
        // Nobody stops it who only says so.
        let forged = Position(epoch: it.second.epoch ^ 1, revision: it.second.revision)
        #expect(try node.read(Sample.store, since: forged) == .otherHistory)
        #expect(try node.keys(since: nil) == ["a"])
        #expect(throws: StorageError.self) { try node.read(Sample.store, since: it.second) }
        #expect(throws: StorageError.self) { try node.keys(since: nil) }
        #expect(throws: StorageError.self) { try node.history() }
        #expect(throws: StorageError.self) { try Self.push("c", to: node) }
        #expect(try it.old.query("SELECT revision FROM ubiquity.store", in: "ubiquity") == "1")
        try it.new.start()
        try await until("the promoted primary") { (try? node.keys(since: it.second)) == [] }
        #expect(try Self.push("c", to: node).revision > it.second.revision)
        try node.close()
    }

    @Test func `a node notices that rows became older under it, and commits no more`()
        async throws
    {
        let database = try PostgresDatabase(in: folder)
        let node = try database.open()
        try node.makeSampleAccount()
        let heard = Mutex<[StorageNews]>([])
        node.observe { news in heard.withLock { $0.append(news) } }
        _ = try Self.push("a", to: node)
        try database.query("CREATE TABLE saved AS SELECT * FROM ubiquity.store")
        for key in ["b", "c"] { _ = try Self.push(key, to: node) }
        try database.query(
            "DELETE FROM ubiquity.store; INSERT INTO ubiquity.store SELECT * FROM saved")
        #expect(throws: StorageError.self) { try Self.push("d", to: node) }
        try await until("the news") {
            heard.withLock { news in
                news.contains { if case .historyWentBack = $0 { true } else { false } }
            }
        }
        #expect(throws: StorageError.self) { try Self.push("e", to: node) }
        #expect(try database.query("SELECT revision FROM ubiquity.store") == "1")
    }

    @Test func `nodes that start at once on an empty database make one schema`() throws {
        let database = try PostgresDatabase(in: folder, isEmpty: true)
        let nodes = Mutex<[PostgresServerStorage]>([])
        try atOnce(
            (0..<4).map { _ in
                {
                    let node = try database.open()
                    nodes.withLock { $0.append(node) }
                }
            })
        let all = nodes.withLock(\.self)
        try all[0].makeSampleAccount()
        for (number, node) in all.enumerated() {
            #expect(
                try node.commit(Sample.push(Sample.record("\(number)", .integer(1), at: 500)))?
                    .position.revision == Int64(number + 1))
        }
    }

    @Test func `a node that stops with locks in its hands is cut off, and others go on`() throws {
        let database = try PostgresDatabase(in: folder)
        let nodes = try [database.open(), database.open()]
        try nodes[0].makeSampleAccount()
        try nodes[0].commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        let isLocked = Mutex(false)
        let isOver = Mutex(false)
        try atOnce([
            {
                try nodes[0].writing { transaction in
                    try transaction.run("SELECT 1 FROM ubiquity.store FOR UPDATE")
                    isLocked.withLock { $0 = true }
                    // As one that was stopped.
                    while !isOver.withLock({ $0 }) { usleep(10_000) }
                    try transaction.run("SELECT 1")
                }
            },
            {
                defer { isOver.withLock { $0 = true } }
                while !isLocked.withLock({ $0 }) { usleep(1_000) }
                let push = Sample.push(Sample.record("b", .integer(1), at: 600))
                _ = try nodes[1].commit([push], rules: Sample.rules())[0].get()
            },
        ])
        #expect(try nodes[0].keys(since: nil) == ["a", "b"])
    }
}
