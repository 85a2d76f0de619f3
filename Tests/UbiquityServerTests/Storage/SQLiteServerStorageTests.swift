// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// Tests what only a file on a disk can do.
struct SQLiteServerStorageTests {
    @Test func `a commit is flushed to the disk`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        for storage in [
            try SQLiteServerStorage.openForServer(path),
            try SQLiteServerStorage(ServerDatabase.openQueue(path)),
        ] {
            let mode = try storage.database.writeWithoutTransaction { db in
                (
                    try String.fetchOne(db, sql: "PRAGMA journal_mode"),
                    try Int.fetchOne(db, sql: "PRAGMA synchronous")
                )
            }
            #expect(mode.0 == "wal")
            #expect(mode.1 == 2)
            try storage.close()
        }
    }

    /// Before a database has a log, a transaction that is cut off leaves SQLite's other journal.
    @Test(arguments: [false, true])
    func `a first start that is cut off is taken back by the next`(hasPages: Bool) throws {
        let folder = try TemporaryFolder()
        let (cut, path) = (folder.file("cut.sqlite"), folder.file("test.sqlite"))
        let queue = try DatabaseQueue(path: cut)
        if hasPages {
            try queue.write { try $0.execute(sql: "CREATE TABLE t (a); DROP TABLE t") }
        }
        try queue.writeWithoutTransaction { db in
            // What a transaction writes goes to the disk at once, and so does its journal.
            try db.execute(sql: "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE")
            try db.execute(sql: "CREATE TABLE account (id TEXT)")
            for _ in 0..<200 {
                try db.execute(sql: "INSERT INTO account VALUES (hex(randomblob(1000)))")
            }
            for end in ["", "-journal"] {
                try FileManager.default.copyItem(atPath: cut + end, toPath: path + end)
            }
            try db.execute(sql: "ROLLBACK")
        }
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        #expect(try storage.accounts().count == 1)
        try storage.close()
    }

    @Test func `a server whose running time cannot be read does not start`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.database.writeWithoutTransaction { try $0.execute(sql: "DROP TABLE running") }
        try storage.close()
        #expect(throws: ServerStartError.self) { try SQLiteServerStorage.openForServer(path) }
    }

    /// A storage with records of `a`, which is damaged, and `b`.
    private func open(
        in folder: TemporaryFolder, damaging damage: String
    ) throws -> SQLiteServerStorage {
        let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
        try storage.makeSampleAccount()
        try storage.commit(
            Sample.push(
                Sample.record("a", .integer(1), at: 500), Sample.record("b", .integer(1), at: 500)))
        try storage.database.writeWithoutTransaction { db in
            try db.execute(sql: "UPDATE record SET \(damage) WHERE key = x'61'")
        }
        return storage
    }

    private func closeAndFindOneUnreadable(_ storage: SQLiteServerStorage) throws {
        try storage.close()
        let queue = try DatabaseQueue(path: storage.database.path)
        #expect(try queue.read { try SQLiteRecord.countUnreadable($0) } == 1)
    }

    @Test(arguments: [
        "value = x'FF'", "value = 'text'", "time = 'text'", "digest = x'00'", "device = 'text'",
    ])
    func `a record that cannot be read fails the pushes that need it, and no other`(
        damage: String
    ) throws {
        let folder = try TemporaryFolder()
        let storage = try open(in: folder, damaging: damage)
        let outcomes = try storage.commit(
            [
                Sample.push(Sample.record("b", .integer(2), at: 600)),
                Sample.push(
                    Sample.record("c", .integer(2), at: 600),
                    Sample.record("a", .integer(2), at: 600)),
                Sample.push(Sample.record("d", .integer(2), at: 600)),
            ], rules: Sample.rules())
        #expect(outcomes[1] == .failure(.unreadable))
        let positions = outcomes.map { try? $0.get().position.revision }
        #expect(positions == [2, nil, 3])
        #expect(throws: StorageError.unreadable) { try storage.keys(since: nil) }
        #expect(try storage.keys(since: Sample.position(1)) == ["b", "d"])
        try closeAndFindOneUnreadable(storage)
    }

    @Test(arguments: ["revision = 'text'", "came = 'text'"])
    func `a record of which it cannot be read when it came fails the pushes that need it`(
        damage: String
    ) throws {
        let folder = try TemporaryFolder()
        let storage = try open(in: folder, damaging: damage)
        let outcomes = try storage.commit(
            ["a", "b"].map { Sample.push(Sample.record($0, .integer(2), at: 600)) },
            rules: Sample.rules())
        #expect(outcomes[0] == .failure(.unreadable))
        #expect(try outcomes[1].get().position.revision == 2)
        try closeAndFindOneUnreadable(storage)
    }

    @Test func `only drafts of a file, and what lies beside them, are left-overs`() throws {
        let folder = try TemporaryFolder()
        let drafts = [".ubiquity.sqlite.0123ABCD", ".ubiquity.sqlite.0123ABCD-wal"]
        let others = [
            ".ubiquity.sqlite.backup", ".ubiquity.sqlite.0123ABCDE", ".ubiquity.sqlite.0123ABC",
            ".ubiquity.sqlite.0123ABCD.old", ".ubiquity.sqlite.0123ABCG", "ubiquity.sqlite",
        ]
        for name in drafts + others { try Data().write(to: URL(filePath: folder.file(name))) }
        AtomicFile.removeLeftovers(of: folder.file("ubiquity.sqlite"))
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(Set(left) == Set(others))
    }

    @Test func `a full disk refuses the batch, stores nothing of it, and passes`() throws {
        let folder = try TemporaryFolder()
        let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
        try storage.makeSampleAccount()
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        try limitPages(of: storage, toPresent: true)
        let large = PropertyListValue.data(Array(repeating: 1, count: 500_000))
        let batch = [
            Sample.push(Sample.record("b", .integer(1), at: 600)),
            Sample.push(Sample.record("c", large, at: 600)),
        ]
        #expect(throws: StorageError.full) { try storage.commit(batch, rules: Sample.rules()) }
        #expect(try storage.keys(since: nil) == ["a"])
        try limitPages(of: storage, toPresent: false)
        let outcomes = try storage.commit(batch, rules: Sample.rules())
        let revisions = outcomes.map { try? $0.get().position.revision }
        #expect(revisions == [2, 3])
        #expect(try storage.keys(since: nil) == ["a", "b", "c"])
        #expect(try storage.stores(of: Sample.account.id).map(\.usage.keys) == [3])
    }

    private func limitPages(of storage: SQLiteServerStorage, toPresent: Bool) throws {
        try storage.database.writeWithoutTransaction { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(toPresent ? pages : 1_000_000)")
        }
    }

    /// Not a limit that a slow machine must keep; it prints what this one does.
    @Test func `a batch of pushes is committed quickly`() throws {
        let folder = try TemporaryFolder()
        let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
        try storage.makeSampleAccount()
        let batches = (0..<20).map { batch in
            (0..<256).map { number in
                Sample.push(
                    Sample.record(
                        "key\(number)", .string("value \(batch)"), at: 500 + Int64(batch)))
            }
        }
        let time = try ContinuousClock().measure {
            for batch in batches { _ = try storage.commit(batch, rules: Sample.rules()) }
        }
        print("\(Int(Double(20 * 256) / (time / .seconds(1)))) pushes a second")
        #expect(try storage.stores(of: Sample.account.id).first?.position.revision == 20 * 256)
    }
}
