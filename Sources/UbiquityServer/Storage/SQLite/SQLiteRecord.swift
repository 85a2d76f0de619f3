// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore
internal import UbiquityWire

/// Stores a record as a row.
enum SQLiteRecord {
    private static let columns = "key, time, device, value, digest"

    /// A row that is not valid: it was not written by a server, or is damaged.
    struct Unreadable: Error {}

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

    /// - Parameter revision: Nil for all records, without tombstones.
    static func fetch(
        of store: Int64, after revision: Int64?, _ db: Database
    ) throws -> [UbiquityCore.Record] {
        let condition = revision == nil ? "value IS NOT NULL" : "revision > ?"
        let statement = try db.cachedStatement(
            sql: "SELECT \(columns) FROM record WHERE store = ? AND \(condition)")
        statement.setUncheckedArguments(
            StatementArguments([store]) + (revision.map { [$0] } ?? []))
        let rows = try Row.fetchCursor(statement)
        var records: [UbiquityCore.Record] = []
        while let row = try rows.next() { records.append(try record(row)) }
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
        let statement = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO record
                    (store, key, time, device, revision, committed, value, digest)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """)
        statement.setUncheckedArguments([
            store, Data(record.key.bytes),
            Int64(bitPattern: record.stamp.timestamp.rawValue),
            Int64(bitPattern: record.stamp.device.rawValue), revision, running,
            record.content.value.map { Data(WireFormat.protobuf.encode(WireValue($0))) },
            Int64(bitPattern: record.stamp.digest),
        ])
        try statement.execute()
    }

    /// The number of unreadable rows in all stores. Reads every record.
    static func countUnreadable(_ db: Database) throws -> Int {
        let rows = try Row.fetchCursor(db, sql: "SELECT \(columns) FROM record")
        var count = 0
        while let row = try rows.next() {
            do { _ = try record(row) } catch { count += 1 }
        }
        return count
    }

    private static func record(_ row: Row) throws(Unreadable) -> UbiquityCore.Record {
        let key: Data = try column(0, of: row)
        let time: Int64 = try column(1, of: row)
        let device: Int64 = try column(2, of: row)
        let digest: Int64 = try column(4, of: row)
        do {
            return UbiquityCore.Record(
                key: try key.withUnsafeBytes { try Key(bytes: $0) },
                content: try content(row.hasNull(atIndex: 3) ? nil : column(3, of: row)),
                stamp: Stamp(
                    HybridTimestamp(rawValue: UInt64(bitPattern: time)),
                    DeviceID(rawValue: UInt64(bitPattern: device)),
                    digest: UInt64(bitPattern: digest)))
        } catch { throw Unreadable() }
    }

    /// Not by the row's subscript, which traps if the column has a different type.
    private static func column<T: DatabaseValueConvertible>(
        _ index: Int, of row: Row
    ) throws(Unreadable) -> T {
        let value: DatabaseValue = row[index]
        guard let value = T.fromDatabaseValue(value) else { throw Unreadable() }
        return value
    }

    private static func content(_ bytes: Data?) throws -> Content {
        guard let bytes else { return .deleted }
        let wire = try WireFormat.protobuf.decode(WireValue.self, from: bytes)
        return .value(try PropertyListValue(wire))
    }
}
