// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// A server's file of an older format is migrated when a program opens it.
struct FormatTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.file("test.sqlite")
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        try storage.close()
    }

    /// Opens a file as a program does that knows one more format.
    /// - Returns: The file's format, its tables, and the number of its accounts.
    private func migrate(_ path: String, by step: String) throws -> (Int?, [String], Int?) {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        return try queue.writeWithoutTransaction { db in
            try SQLiteSchema.migrate(db, path: path, migrations: SQLiteSchema.migrations + [step])
            return (
                try Int.fetchOne(db, sql: "PRAGMA user_version"),
                try String.fetchAll(db, sql: "SELECT sql FROM sqlite_master WHERE sql > ''"),
                try Int.fetchOne(db, sql: "SELECT count(*) FROM account")
            )
        }
    }

    @Test func `an older file gets the tables of a new one, once, and keeps what is in it`() throws
    {
        let step = "ALTER TABLE account ADD COLUMN later INTEGER"
        let new = try migrate(folder.file("new.sqlite"), by: step)
        #expect(new.2 == 0)
        for _ in 0..<2 {
            let older = try migrate(path, by: step)
            #expect(older.0 == SQLiteSchema.version + 1)
            #expect(older.1 == new.1 && older.1.contains { $0.contains("later") })
            #expect(older.2 == 1)
        }
    }

    @Test func `a migration that fails leaves the file as it was`() throws {
        #expect(throws: DatabaseError.self) {
            try migrate(path, by: "DROP TABLE record; ALTER TABLE missing ADD COLUMN later")
        }
        let storage = try SQLiteServerStorage.openForServer(path)
        #expect(try storage.keys(since: nil) == ["a"])
        try storage.close()
    }

    /// 2 to 11 are formats of programs from before the first release.
    @Test(arguments: [0, 2, 11, 99])
    func `a format that this program does not know is refused, and the file stays as it is`(
        format: Int
    ) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.writeWithoutTransaction { db in
            try db.execute(
                sql: "PRAGMA user_version = \(format); PRAGMA wal_checkpoint(TRUNCATE)")
        }
        try queue.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let known = SQLiteSchema.version
        let error = ServerStartError.databaseNewer(path: path, version: format, known: known)
        #expect(throws: error) { try SQLiteServerStorage.openForServer(path) }
        #expect("\(error)".contains("before the first release"))
        let reason = "its format is \(format), and this program knows formats up to \(known)"
        #expect(throws: BackupError.notBackup(path: path, reason: reason)) { try BackupFile(path) }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }
}

/// The schema of a database of an older format is migrated by a command, beside running nodes.
@Suite(.enabled(if: PostgresDatabase.isAvailable, "PostgreSQL 15 is not installed"))
@OwnThread struct SchemaFormatTests {
    private let database: PostgresDatabase
    private let node: PostgresServerStorage
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        database = try PostgresDatabase(in: folder)
        node = try database.open()
        try node.makeSampleAccount()
    }

    private func migrate(by step: [String]) throws -> Int64 {
        try node.writing { transaction in
            try PostgresSchema.migrate(transaction, migrations: PostgresSchema.migrations + [step])
        }
    }

    @Test func `an older schema is migrated once, and nodes that can work with it go on`() throws {
        let version = PostgresSchema.version
        let step = ["account", "store", "record"].map {
            "ALTER TABLE ubiquity.\($0) ADD COLUMN later text"
        }
        #expect(try migrate(by: step) == version)
        #expect(try migrate(by: step) == version + 1)
        #expect(try database.query("SELECT version FROM ubiquity.meta") == "\(version + 1)")
        for node in [node, try database.open()] {
            try node.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
            #expect(try node.keys(since: nil) == ["a"])
        }
        #expect(throws: DatabaseProblem.older(version: version - 1, known: version)) {
            try PostgresSchema.State.ours(version: version - 1, compatible: 1).check()
        }
    }

    @Test func `a migration that fails leaves the schema as it was`() throws {
        #expect(throws: StorageError.self) {
            try migrate(by: [
                "DROP TABLE ubiquity.record", "ALTER TABLE missing ADD COLUMN later text",
            ])
        }
        try node.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        #expect(
            try database.query("SELECT version FROM ubiquity.meta") == "\(PostgresSchema.version)")
    }
}
