// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// Stores a record as a row.
enum SQLiteRecord {
    private static let heldColumns = "key, time, device, value, digest, revision, came"
    /// Leaves out the stores' heads, see ``SQLiteStore``.
    private static let isRecord = "key IS NOT x''"

    /// The stored records among these keys.
    static func fetch(
        _ keys: some Sequence<Key>, of store: Int64, _ db: Database
    ) throws -> [Key: HeldRecord] {
        let statement = try RawStatement(
            "SELECT \(heldColumns) FROM record WHERE store = ? AND key = ?", db)
        var records: [Key: HeldRecord] = [:]
        for key in keys where records[key] == nil {
            statement.bind(store, at: 1)
            statement.bind(key.bytes, at: 2)
            try statement.run { records[key] = try held($0) }
        }
        return records
    }

    /// All counts of the keys that are not deleted, and ``Key/partsOfFold``.
    static func fetchCounts(
        of keys: some Sequence<Key>, of store: Int64, _ db: Database
    ) throws -> [Key: HeldRecord] {
        let statement = try RawStatement(
            """
            SELECT \(heldColumns) FROM record
            WHERE store = ? AND key >= ? AND key < ? AND value IS NOT NULL
            """, db)
        var records: [Key: HeldRecord] = [:]
        for key in keys {
            let bounds = key.boundsOfCounts
            statement.bind(store, at: 1)
            statement.bind(bounds.lower, at: 2)
            statement.bind(bounds.upper, at: 3)
            try statement.run { row in
                let held = try held(row)
                records[held.record.key] = held
            }
        }
        for (key, held) in try fetch(keys.flatMap(\.partsOfFold), of: store, db) {
            records[key] = held
        }
        return records
    }

    /// The records with their values as stored. Nothing is decoded while the database is being
    /// read.
    /// - Parameter revision: Nil for all records, without tombstones.
    static func fetch(
        of store: Int64, after revision: Int64?, _ db: Database
    ) throws -> [StoredRecord] {
        // Long values are in pages of their own, which are only read where they are wanted. So the
        // end is found here: SQLite would compare all of each row with the end of a range.
        let value = revision == nil ? "value" : "CASE WHEN revision > ?2 THEN value END"
        let statement = try RawStatement(
            """
            SELECT key, time, device, \(value), digest, store, revision
            FROM record WHERE store >= ?1 ORDER BY store, key
            """, db)
        statement.bind(store, at: 1)
        if let revision { statement.bind(revision, at: 2) }
        var records: [StoredRecord] = []
        try statement.runRows(while: { row in
            guard (try? row.integer(5)) == store else { return false }
            guard !row.isEmptyBlob(0) else { return true }
            let isWanted = try revision.map { try row.revision(6) > $0 } ?? !row.isNull(3)
            if isWanted { records.append(try stored(row)) }
            return true
        })
        return records
    }

    /// Reads the entries of a store, tombstones included, or those of one key and its parts.
    static func fetchEntries(
        of store: Int64, key: Key?, _ db: Database
    ) throws -> [DeliveryRule.Item] {
        let statement = try RawStatement(
            "SELECT revision, device, key FROM record WHERE store = ? AND \(isRecord)", db)
        statement.bind(store, at: 1)
        var entries: [DeliveryRule.Item] = []
        try statement.run { row in
            guard try key?.includes(bytes: row.bytes(2)) ?? true else { return }
            entries.append(
                DeliveryRule.Item(revision: try row.revision(0), author: try row.device(1)))
        }
        return entries
    }

    static func write(
        _ held: HeldRecord, of store: Int64, running: Int64, _ db: Database
    ) throws {
        let stored = StoredRecord(held.record)
        let statement = try RawStatement(
            """
            INSERT INTO record (store, key, time, device, revision, committed, value, digest, came)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET
                time = excluded.time, device = excluded.device, revision = excluded.revision,
                committed = excluded.committed, value = excluded.value, digest = excluded.digest,
                came = excluded.came
            """, db)
        statement.bind(store, at: 1)
        statement.bind(stored.key, at: 2)
        statement.bind(stored.stamp.timestamp.rawValue, at: 3)
        statement.bind(stored.stamp.device.rawValue, at: 4)
        statement.bind(held.revision, at: 5)
        statement.bind(running, at: 6)
        statement.bind(stored.value, at: 7)
        statement.bind(stored.stamp.digest, at: 8)
        // An unbound parameter is null.
        if let came = held.came { statement.bind(came, at: 9) }
        try statement.run()
    }

    /// The number of unreadable rows in all stores. Reads every record.
    static func countUnreadable(_ db: Database) throws -> Int {
        var count = 0
        try RawStatement("SELECT \(heldColumns) FROM record WHERE \(isRecord)", db).run { row in
            do { _ = try held(row) } catch StorageError.unreadable { count += 1 }
        }
        return count
    }

    private static func held(_ row: RawStatement) throws(StorageError) -> HeldRecord {
        HeldRecord(
            record: try stored(row).record(), revision: try row.revision(5),
            came: row.isNull(6) ? nil : try row.time(6))
    }

    /// A row that begins with the columns of a record.
    private static func stored(_ row: RawStatement) throws(StorageError) -> StoredRecord {
        StoredRecord(
            key: try row.bytes(0),
            stamp: Stamp(try row.timestamp(1), try row.device(2), digest: try row.bits(4)),
            value: row.isNull(3) ? nil : try row.bytes(3))
    }
}
