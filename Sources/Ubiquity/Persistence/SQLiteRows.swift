// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore
internal import UbiquityWire

/// Reads and writes the tables of a store's file. Every function runs inside a caller's
/// transaction.
enum SQLiteRows {
    static func version(_ db: Database) throws -> Int64 {
        let statement = try db.cachedStatement(sql: "SELECT version FROM meta")
        guard let version = try Int64.fetchOne(statement) else { throw missingMeta(db) }
        return try checked(version)
    }

    /// - Parameter version: Nil for everything.
    static func changes(_ db: Database, after version: Int64?) throws -> DiskChanges {
        let statement = try db.cachedStatement(sql: "SELECT version, data FROM meta")
        guard let row = try Row.fetchOne(statement) else { throw missingMeta(db) }
        return DiskChanges(
            version: try checked(row.decode(atIndex: 0)),
            entries: try entries(db, after: version),
            meta: try meta(row.decode(atIndex: 1), in: db))
    }

    static func write(_ batch: SaveBatch, to db: Database) throws {
        let version = batch.expectedVersion + 1
        for entry in batch.entries { try write(entry, version: version, to: db) }
        for refused in batch.refused { try write(refused, to: db) }
        if !batch.refused.isEmpty { try trimRefused(db) }
        try writeMeta(batch.meta, version: version, to: db)
    }

    /// - Parameter meta: Nil to leave it unchanged, or to write the initial one.
    static func writeMeta(_ meta: StoredMeta?, version: Int64, to db: Database) throws {
        if meta == nil, version > 0 {
            let statement = try db.cachedStatement(sql: "UPDATE meta SET version = ?")
            return try statement.execute(arguments: [version])
        }
        let statement = try db.cachedStatement(
            sql: "INSERT OR REPLACE INTO meta (id, version, data) VALUES (1, ?, ?)")
        try statement.execute(arguments: [
            version, StoredValue.encode((meta ?? StoredMeta()).fields),
        ])
    }

    static func refusedCount(_ db: Database) throws -> Int {
        try Int.fetchOne(
            db, sql: "SELECT count(*) FROM refused WHERE code <> ?",
            arguments: [Refusal.superseded.code]) ?? 0
    }

    /// Leaves those that were superseded.
    static func forgetRefused(_ db: Database) throws {
        try db.execute(
            sql: "DELETE FROM refused WHERE code <> ?", arguments: [Refusal.superseded.code])
    }

    static func refusedWrites(_ db: Database) throws -> [RefusedWrite] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT key, time, device, value, digest, code, detail FROM refused
                ORDER BY id DESC
                """)
        let rows = try Row.fetchCursor(statement)
        var refused: [RefusedWrite] = []
        while let row = try rows.next() {
            guard let record = try row.record(of: row.key(), at: 1) else { continue }
            refused.append(
                RefusedWrite(
                    record: record,
                    refusal: Refusal(
                        code: try row.decode(atIndex: 5), detail: try row.decode(atIndex: 6))))
        }
        return refused
    }

    private static func entries(_ db: Database, after version: Int64?) throws -> [StoredEntry] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT key, confirmed_time, confirmed_device, confirmed_value, confirmed_digest,
                    pending_time, pending_device, pending_value, pending_digest,
                    pending_transaction, had_time, had_device,
                    provisional_wall, provisional_uptime, provisional_boot, provisional_seen,
                    pending_unkept, unkept
                FROM entry \(version == nil ? "" : "WHERE version > ?")
                """)
        let arguments = version.map { StatementArguments([$0]) } ?? StatementArguments()
        var entries: [StoredEntry] = []
        // Growing an array would take twice the memory, and memory dominates the time to open a
        // store.
        if version == nil { entries.reserveCapacity(try entryCount(db)) }
        let rows = try Row.fetchCursor(statement, arguments: arguments)
        while let row = try rows.next() {
            let entry = try row.entry()
            // Empty rows matter only to processes that have known the key.
            if version != nil || entry.confirmed != nil || entry.pending != nil {
                entries.append(entry)
            }
        }
        return entries
    }

    private static func entryCount(_ db: Database) throws -> Int {
        let statement = try db.cachedStatement(sql: "SELECT count(*) FROM entry")
        return try Int.fetchOne(statement) ?? 0
    }

    private static func write(_ entry: StoredEntry, version: Int64, to db: Database) throws {
        if entry.confirmed == nil, entry.pending == nil, try removeTombstone(entry.key, db) {
            return
        }
        let statement = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO entry (key, version,
                    confirmed_time, confirmed_device, confirmed_value, confirmed_digest,
                    pending_time, pending_device, pending_value, pending_digest,
                    pending_transaction, had_time, had_device,
                    provisional_wall, provisional_uptime, provisional_boot, provisional_seen,
                    pending_unkept, unkept)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        let (provisional, had) = (entry.pending?.provisional, entry.pending?.had)
        statement.setUncheckedArguments(
            [Data(entry.key.bytes), version]
                + columns(of: entry.confirmed) + columns(of: entry.pending?.record)
                + [
                    entry.pending.map { Int64(bitPattern: $0.transaction) },
                    had.map { Int64(bitPattern: $0.timestamp.rawValue) },
                    had.map { Int64(bitPattern: $0.device.rawValue) },
                    provisional?.madeAt.wall, provisional?.madeAt.uptime,
                    provisional.map { Int64(bitPattern: $0.madeAt.boot) },
                    provisional.map { Int64(bitPattern: $0.seen.rawValue) },
                    entry.pending?.isUnkept ?? false ? 1 : nil, entry.wasUnkept ? 1 : nil,
                ])
        try statement.execute()
    }

    /// Deletes the row of a tombstone that is no longer needed: no other process shows anything of
    /// it. Other rows stay as empty ones, for processes that have known the key.
    /// - Returns: Whether there was one.
    private static func removeTombstone(_ key: UbiquityCore.Key, _ db: Database) throws -> Bool {
        let statement = try db.cachedStatement(
            sql: """
                DELETE FROM entry WHERE key = ? AND confirmed_time IS NOT NULL
                    AND confirmed_value IS NULL AND pending_time IS NULL
                """)
        statement.setUncheckedArguments([Data(key.bytes)])
        try statement.execute()
        return db.changesCount > 0
    }

    private static func write(_ refused: RefusedWrite, to db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO refused (key, time, device, value, digest, code, detail)
                SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (
                    SELECT 1 FROM refused
                    WHERE key = ?1 AND time = ?2 AND device = ?3 AND value IS ?4)
                """)
        statement.setUncheckedArguments(
            [Data(refused.record.key.bytes)] + columns(of: refused.record)
                + [refused.refusal.code, refused.refusal.detail])
        try statement.execute()
    }

    /// Time, device, value and digest.
    private static func columns(of record: UbiquityCore.Record?) -> StatementArguments {
        [
            record.map { Int64(bitPattern: $0.stamp.timestamp.rawValue) },
            record.map { Int64(bitPattern: $0.stamp.device.rawValue) },
            record?.content.value.map(StoredValue.encode),
            record.map { Int64(bitPattern: $0.stamp.digest) },
        ]
    }

    private static func trimRefused(_ db: Database) throws {
        for comparison in ["=", "<>"] {
            let statement = try db.cachedStatement(
                sql: """
                    DELETE FROM refused WHERE id IN (
                        SELECT id FROM refused WHERE code \(comparison) ?
                        ORDER BY id DESC LIMIT -1 OFFSET ?)
                    """)
            try statement.execute(
                arguments: [Refusal.superseded.code, SaveBatch.refusedWritesMax])
        }
    }

    private static func meta(_ data: Data, in db: Database) throws -> StoredMeta {
        let meta: StoredMeta
        do { meta = try StoredMeta(fields: PropertyListValue(protobuf: data)) } catch {
            throw StoredValue.damage("the row of \"meta\" cannot be read: \(error)")
        }
        _ = try checked(meta.syncsRequested)
        return meta
    }

    /// A plausible count, which can safely be incremented.
    private static func checked(_ count: Int64) throws -> Int64 {
        guard (0..<countMax).contains(count) else {
            throw StoredValue.damage("the row of \"meta\" has the impossible count \(count)")
        }
        return count
    }

    /// More than a device can save in its lifetime.
    private static let countMax: Int64 = 1 << 56

    private static func missingMeta(_ db: Database) -> DatabaseError {
        StoredValue.damage("the table \"meta\" is empty")
    }
}
