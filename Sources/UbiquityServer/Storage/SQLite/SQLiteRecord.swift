// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// Stores a record as a row.
enum SQLiteRecord {
    private static let columns = "key, time, device, value, digest"

    /// The stored records among these keys.
    static func fetch(
        _ keys: some Sequence<Key>, of store: Int64, _ db: Database
    ) throws -> [Key: UbiquityCore.Record] {
        let statement = try db.cachedStatement(
            sql: "SELECT \(columns) FROM record WHERE store = ? AND key = ?")
        var records: [Key: UbiquityCore.Record] = [:]
        for key in keys where records[key] == nil {
            statement.setUncheckedArguments([store, Data(key.bytes)])
            records[key] = try Row.fetchOne(statement).map(record)
        }
        return records
    }

    /// All counts of the keys that are not deleted.
    static func fetchCounts(
        of keys: some Sequence<Key>, of store: Int64, _ db: Database
    ) throws -> [Key: UbiquityCore.Record] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(columns) FROM record
                WHERE store = ? AND key >= ? AND key < ? AND value IS NOT NULL
                """)
        var records: [Key: UbiquityCore.Record] = [:]
        for key in keys {
            let bounds = key.boundsOfCounts
            statement.setUncheckedArguments([store, Data(bounds.lower), Data(bounds.upper)])
            let rows = try Row.fetchCursor(statement)
            while let row = try rows.next() {
                let record = try record(row)
                records[record.key] = record
            }
        }
        return records
    }

    /// The records with their values as stored. Nothing is decoded while the database is being
    /// read.
    /// - Parameter revision: Nil for all records, without tombstones.
    static func fetch(
        of store: Int64, after revision: Int64?, _ db: Database
    ) throws -> [StoredRecord] {
        let condition = revision == nil ? "value IS NOT NULL" : "revision > ?"
        let statement = try db.cachedStatement(
            sql: "SELECT \(columns) FROM record WHERE store = ? AND \(condition)")
        statement.setUncheckedArguments(
            StatementArguments([store]) + (revision.map { [$0] } ?? []))
        let rows = try Row.fetchCursor(statement)
        var records: [StoredRecord] = []
        while let row = try rows.next() { records.append(try stored(row)) }
        return records
    }

    /// The usage of a store's values, except unreadable ones.
    static func usage(of store: Int64, _ db: Database) throws -> Usage {
        let statement = try db.cachedStatement(
            sql: "SELECT \(columns) FROM record WHERE store = ? AND value IS NOT NULL")
        let rows = try Row.fetchCursor(statement, arguments: [store])
        var usage = Usage()
        while let row = try rows.next() {
            guard let record = try? record(row) else { continue }
            usage.replace(nil, by: record.content.value, of: record.key)
        }
        return usage
    }

    static func write(
        _ record: UbiquityCore.Record, of store: Int64, revision: Int64, running: Int64,
        _ db: Database
    ) throws {
        let stored = StoredRecord(record)
        let statement = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO record
                    (store, key, time, device, revision, committed, value, digest)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """)
        statement.setUncheckedArguments([
            store, stored.key,
            Int64(bitPattern: record.stamp.timestamp.rawValue),
            Int64(bitPattern: record.stamp.device.rawValue), revision, running,
            stored.value,
            Int64(bitPattern: record.stamp.digest),
        ])
        try statement.execute()
    }

    /// The number of unreadable rows in all stores. Reads every record.
    static func countUnreadable(_ db: Database) throws -> Int {
        try Row.countUnreadable("SELECT \(columns) FROM record", db) { _ = try record($0) }
    }

    private static func record(_ row: Row) throws(StorageError) -> UbiquityCore.Record {
        try stored(row).record()
    }

    private static func stored(_ row: Row) throws(StorageError) -> StoredRecord {
        StoredRecord(
            key: try row.value(0),
            stamp: Stamp(try row.timestamp(1), try row.device(2), digest: try row.bits(4)),
            value: try row.valueIfAny(3))
    }
}
