// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore
internal import UbiquityWire

/// How a record is stored as a row.
enum SQLiteRecord {
    private static let columns = "key, time, device, value, digest"

    /// Those of the keys that the store has.
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

    /// - Parameter revision: Nil: all, without deletions.
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

    private static func record(_ row: Row) throws -> UbiquityCore.Record {
        let time = HybridTimestamp(rawValue: UInt64(bitPattern: row[1]))
        let device = DeviceID(rawValue: UInt64(bitPattern: row[2]))
        return UbiquityCore.Record(
            key: try (row[0] as Data).withUnsafeBytes { try Key(bytes: $0) },
            content: try content(row[3]),
            stamp: Stamp(time, device, digest: UInt64(bitPattern: row[4])))
    }

    private static func content(_ bytes: Data?) throws -> Content {
        guard let bytes else { return .deleted }
        let wire = try WireFormat.protobuf.decode(WireValue.self, from: bytes)
        return .value(try PropertyListValue(wire))
    }
}
