// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import GRDB
import Testing
import UbiquityCore

@testable import Ubiquity

/// A store's file of an older format is migrated when a program opens it.
struct FormatTests {
    private let folder: TemporaryFolder
    private let path: String
    private let entry: StoredEntry

    init() throws {
        folder = try TemporaryFolder()
        path = folder.file("store.sqlite")
        entry = try .confirmed("a", .integer(1))
        let storage = try SQLiteStorage(path: path)
        _ = try storage.save(SaveBatch(after: 0, [entry]))
        storage.close()
    }

    /// Opens a file as a program does that knows one more format.
    /// - Returns: The file's format, its tables, and the number of its entries.
    private func migrate(_ path: String, by step: String) throws -> (Int?, [String], Int?) {
        let queue = try SQLiteFile.open(path, migrations: SQLiteFile.migrations + [step])
        defer { try? queue.close() }
        return try queue.read { db in
            (
                try Int.fetchOne(db, sql: "PRAGMA user_version"),
                try String.fetchAll(db, sql: "SELECT sql FROM sqlite_master WHERE sql > ''"),
                try Int.fetchOne(db, sql: "SELECT count(*) FROM entry")
            )
        }
    }

    @Test func `an older file gets the tables of a new one, once, and keeps what is in it`() throws
    {
        let step = "ALTER TABLE entry ADD COLUMN later INTEGER"
        let new = try migrate(folder.file("new.sqlite"), by: step)
        #expect(new.2 == 0)
        for _ in 0..<2 {
            let older = try migrate(path, by: step)
            #expect(older.0 == SQLiteFile.migrations.count + 1)
            #expect(older.1 == new.1 && older.1.contains { $0.contains("later") })
            #expect(older.2 == 1)
        }
        for open in [
            { _ = try SQLiteStorage(path: path) }, { _ = try StoreInspection(path: path) },
        ] as [() throws -> Void] {
            let error = #expect(throws: LocalStorageError.self, performing: open)
            #expect(error?.reason == .newer)
        }
    }

    @Test func `a migration that fails leaves the file as it was`() throws {
        #expect(throws: LocalStorageError.self) {
            try migrate(path, by: "DROP TABLE refused; ALTER TABLE missing ADD COLUMN later")
        }
        let storage = try SQLiteStorage(path: path)
        #expect(try storage.load().entries == [entry])
        #expect(try storage.refusedWrites().isEmpty)
        storage.close()
    }
}
