// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

struct NewsPayloadTests {
    private static func store(_ name: String) -> StoreReference {
        StoreReference(account: Sample.account.id, identifier: try! StoreIdentifier(name))
    }

    @Test func `news are decoded as they were encoded`() {
        let news: [StorageNews] = [
            .committed(Self.store("a.b-c_d"), Position(epoch: .max, revision: .max)),
            .committed(Self.store("e"), Position(epoch: 1, revision: 0)),
            .revoked(DeviceReference(account: AccountID(rawValue: 1), id: Sample.device)),
            .accountChanged(Sample.account.id), .appsChanged, .anything,
        ]
        let texts = NewsPayload.encode(news)
        #expect(texts.count == 1)
        #expect(Set(texts.flatMap(NewsPayload.decode)) == Set(news))
        #expect(NewsPayload.encode([]) == [])
    }

    @Test func `much news becomes several texts, each short enough`() {
        let news = (0..<1_000).map { number in
            StorageNews.committed(
                Self.store(String(repeating: "x", count: 200) + "\(number)"),
                Position(epoch: 5, revision: 6))
        }
        let texts = NewsPayload.encode(news)
        #expect(texts.count > 20)
        #expect(texts.allSatisfy { $0.utf8.count <= NewsPayload.bytesMax })
        #expect(Set(texts.flatMap(NewsPayload.decode)) == Set(news))
    }

    @Test func `what has no line of its own says to look`() {
        let news = StorageNews.historyWentBack("reason")
        #expect(NewsPayload.encode([news]).flatMap(NewsPayload.decode) == [.anything])
    }

    @Test(arguments: [
        "nonsense", "committed", "committed\t00000000000000aa\tb",
        "committed\t00000000000000aa\t/\t0000000000000001-1",
        "committed\t00000000000000aa\tb\tc", "committed\ta\tb\t0000000000000001-1",
        "revoked\t00000000000000aa\tzz", "revoked\ta\t00000000000000aa", "account\ta",
        "erased", "apps\t1", "erased\ta\nof a newer program", String(repeating: "x", count: 9_000),
        String(repeating: "look\n", count: 1_500),
    ])
    func `a text that cannot be read says to look`(text: String) {
        #expect(NewsPayload.decode(text) == [.anything])
    }
}

@Suite(.enabled(if: PostgresDatabase.isAvailable, "PostgreSQL 15 is not installed"))
@OwnThread struct PostgresNewsTests {
    private let folder: TemporaryFolder
    init() throws { folder = try TemporaryFolder() }

    private final class Log: Sendable {
        let items = Mutex<[StorageNews]>([])

        func note(_ news: StorageNews) { items.withLock { $0.append(news) } }
        func count(_ news: StorageNews) -> Int { items.withLock { $0.count { $0 == news } } }
    }

    @Test func `other nodes hear what one commits, also after their connections were cut`()
        async throws
    {
        let database = try PostgresDatabase(in: folder)
        let nodes = [try database.open(), try database.open()]
        try nodes[0].makeSampleAccount()
        let logs = nodes.map { node in
            let log = Log()
            node.observe(log.note)
            return log
        }
        for (number, log) in logs.enumerated() {
            try await until("the start of node \(number)") { log.count(.anything) > 0 }
        }
        for round in 1...2 as ClosedRange<Int64> {
            let push = Sample.push(Sample.record("k\(round)", .string("1"), at: 5))
            #expect(try nodes[0].commit(push)?.position.revision == round)
            let news = StorageNews.committed(Sample.store, Sample.position(round))
            try await until("the news") { logs[1].count(news) == 1 }
            // It knows.
            #expect(logs[0].count(news) == 0)
            let restarts = logs.map { $0.count(.anything) }
            try database.query(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = '\(database.name)' AND application_name LIKE 'ubiquity node%'
                """)
            for (log, count) in zip(logs, restarts) {
                try await until("the next connection") { log.count(.anything) > count }
            }
        }
        for node in nodes { try node.close() }
    }

    @Test func `a connection that is silent is replaced`() async throws {
        let server = try PostgresServer.started(settings: ["max_connections": "20"])
        let storage = try PostgresServerStorage.openForServer(
            .patient(server.url()))
        let log = Log()
        storage.observe(log.note)
        try await until("the start") { log.count(.anything) == 1 }
        server.freeze(true)
        try await Task.sleep(for: .seconds(4))
        server.freeze(false)
        try await until("the next connection") { log.count(.anything) > 1 }
        try storage.close()
    }

    @Test func `a command that does not listen is heard too`() async throws {
        let database = try PostgresDatabase(in: folder)
        let (node, command) = (try database.open(), try database.open())
        try node.makeSampleAccount()
        let log = Log()
        node.observe(log.note)
        try await until("the start") { log.count(.anything) == 1 }
        #expect(try command.erase(Sample.account.id, now: 1_000, by: .operatorLocally))
        try await until("the news") { log.count(.accountChanged(Sample.account.id)) == 1 }
        try command.close()
        try node.close()
    }
}
