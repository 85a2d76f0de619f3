// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import GRDB
import Testing

@testable import Ubiquity
@testable import UbiquityCore

/// A store's file of version 0.1 opens, with all that was in it.
struct OlderFormatTests {
    private static let format2 = """
        CREATE TABLE entry (
            key BLOB PRIMARY KEY NOT NULL,
            version INTEGER NOT NULL,
            confirmed_time INTEGER, confirmed_device INTEGER, confirmed_value BLOB,
            pending_time INTEGER, pending_device INTEGER, pending_value BLOB,
            pending_transaction INTEGER,
            provisional_wall INTEGER, provisional_uptime INTEGER, provisional_boot INTEGER,
            provisional_seen INTEGER);
        CREATE INDEX entry_version ON entry (version);
        CREATE TABLE meta (
            id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, data BLOB NOT NULL);
        CREATE TABLE refused (
            id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL, time INTEGER NOT NULL,
            device INTEGER NOT NULL, value BLOB, code TEXT NOT NULL, detail TEXT NOT NULL);
        PRAGMA application_id = 1432512881; PRAGMA user_version = 2;
        """

    /// A key that was changed, a new one, a deleted one and a refused one.
    private func write(to path: String) throws {
        var meta = StoredMeta()
        meta.cursor = Cursor("0000000000000007-9")
        let (one, two) = (StoredValue.encode(.integer(1)), StoredValue.encode(.integer(2)))
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            try db.execute(sql: Self.format2)
            try db.execute(
                sql: "INSERT INTO meta VALUES (1, 4, ?)",
                arguments: [StoredValue.encode(meta.fields)])
            try db.execute(
                sql: """
                    INSERT INTO entry VALUES
                        (:a, 1, 5, 6, :one, 7, 6, :two, 3, NULL, NULL, NULL, NULL),
                        (:b, 2, 5, 6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
                        (:c, 3, NULL, NULL, NULL, 8, 6, :one, 4, -5, 6, 7, 8)
                    """,
                arguments: [
                    "a": Data("changed".utf8), "b": Data("deleted".utf8), "c": Data("new".utf8),
                    "one": one, "two": two,
                ])
            try db.execute(
                sql: "INSERT INTO refused VALUES (1, ?, 5, 6, ?, 'quota-bytes', 'too much')",
                arguments: [Data("refused".utf8), one])
        }
        try queue.close()
    }

    private func record(_ key: String, _ value: Int64?, at time: UInt64) throws
        -> UbiquityCore.Record
    {
        UbiquityCore.Record(
            key: try UbiquityCore.Key(key),
            content: value.map { Content.value(.integer($0)) } ?? .deleted,
            stamp: Stamp(HybridTimestamp(rawValue: time), DeviceID(rawValue: 6)))
    }

    @Test func `a file of format 2 opens with everything, and knows what its authors had`() throws {
        #expect(SQLiteFile.applicationID == 1_432_512_881)
        let folder = try TemporaryFolder()
        let path = folder.file("store.sqlite")
        try write(to: path)
        let before = try StoreInspection(path: path)
        #expect(before.pendingCount == 2 && before.refusedCount == 1)
        let provisional = ProvisionalStamp(
            madeAt: ClockReading(wall: -5, uptime: 6, boot: 7), seen: HybridTimestamp(rawValue: 8))
        let expected: Set = [
            StoredEntry(
                key: try UbiquityCore.Key("changed"), confirmed: try record("changed", 1, at: 5),
                pending: PendingWrite(
                    record: try record("changed", 2, at: 7), transaction: 3,
                    had: try record("changed", 1, at: 5).stamp)),
            StoredEntry(
                key: try UbiquityCore.Key("deleted"), confirmed: try record("deleted", nil, at: 5)),
            StoredEntry(
                key: try UbiquityCore.Key("new"),
                pending: PendingWrite(
                    record: try record("new", 1, at: 8), transaction: 4, provisional: provisional)),
        ]
        for _ in 0..<2 {
            let storage = try SQLiteStorage(path: path)
            let content = try storage.load()
            #expect(content.version == 4)
            #expect(Set(content.entries) == expected)
            #expect(content.meta.cursor == Cursor("0000000000000007-9"))
            #expect(try storage.refusedWrites().map(\.record) == [record("refused", 1, at: 5)])
            storage.close()
        }
        let after = try StoreInspection(path: path)
        #expect(after.pendingCount == 2 && after.refusedCount == 1)
        let storage = try SQLiteStorage(path: path)
        let entry = StoredEntry(
            key: try UbiquityCore.Key("later"), confirmed: try record("later", 1, at: 9))
        #expect(
            try storage.save(SaveBatch(after: 4, [entry])) == .saved(version: 5))
        #expect(try storage.load().entries.count == 4)
    }

    @Test func `a file of format 3 opens, and its writes may be kept in a history`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("store.sqlite")
        let write = PendingWrite(record: try record("k", 1, at: 5), transaction: 1)
        let entry = StoredEntry(key: write.record.key, pending: write)
        let first = try SQLiteStorage(path: path)
        _ = try first.save(SaveBatch(after: 0, [entry]))
        first.close()
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            try db.execute(
                sql: """
                    ALTER TABLE entry DROP COLUMN pending_unkept;
                    ALTER TABLE entry DROP COLUMN unkept; PRAGMA user_version = 3
                    """)
        }
        try queue.close()
        #expect(try StoreInspection(path: path).entries == [entry])
        for _ in 0..<2 {
            let storage = try SQLiteStorage(path: path)
            #expect(try storage.load().entries == [entry])
            storage.close()
        }
    }
}
