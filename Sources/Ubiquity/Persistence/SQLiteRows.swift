// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore
internal import UbiquityWire

/// Reads the tables of a store's file, inside a caller's transaction.
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
                    pending_unkept, unkept, pending_generation
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

/// The order of the columns is that of the queries in ``SQLiteRows``. Types are qualified because
/// GRDB has a `Key` and a `Record` too.
///
/// Does not use subscripts, which trap if a damaged file has a different type in a column.
extension Row {
    func entry() throws -> StoredEntry {
        let key = try key()
        return StoredEntry(
            key: key, confirmed: try record(of: key, at: 1), pending: try pendingWrite(of: key),
            wasUnkept: try flag(at: 17))
    }

    func key() throws -> UbiquityCore.Key {
        try withUnsafeData(atIndex: 0) { bytes in
            do {
                return try (bytes ?? Data()).withUnsafeBytes { try UbiquityCore.Key(bytes: $0) }
            } catch { throw StoredValue.damage("the key of a row cannot be read: \(error)") }
        }
    }

    /// Reads time, device, value and digest from that column on; nil if there is no time.
    func record(of key: UbiquityCore.Key, at column: Int) throws -> UbiquityCore.Record? {
        guard var stamp = try self.stamp(at: column) else { return nil }
        let content = try withUnsafeData(atIndex: column + 2) { bytes in
            try bytes.map { Content.value(try StoredValue.decode($0, key)) } ?? .deleted
        }
        stamp.digest = UInt64(bitPattern: try decode(Int64?.self, atIndex: column + 3) ?? 0)
        return UbiquityCore.Record(key: key, content: content, stamp: stamp)
    }

    private func pendingWrite(of key: UbiquityCore.Key) throws -> PendingWrite? {
        guard let record = try record(of: key, at: 5) else { return nil }
        let transaction = try decode(Int64?.self, atIndex: 9) ?? 0
        return PendingWrite(
            record: record, transaction: UInt64(bitPattern: transaction),
            provisional: try provisionalStamp(),
            had: try stamp(at: 10), isUnkept: try flag(at: 16),
            generation: UInt32(clamping: try decode(Int64?.self, atIndex: 18) ?? 0))
    }

    /// NULL is no.
    private func flag(at column: Int) throws -> Bool {
        try decode(Int64?.self, atIndex: column) ?? 0 != 0
    }

    /// Reads time and device from that column on; nil if there is no time.
    private func stamp(at column: Int) throws -> Stamp? {
        guard let time = try decode(Int64?.self, atIndex: column) else { return nil }
        let device = try decode(Int64?.self, atIndex: column + 1) ?? 0
        return Stamp(
            HybridTimestamp(rawValue: UInt64(bitPattern: time)),
            DeviceID(rawValue: UInt64(bitPattern: device)))
    }

    private func provisionalStamp() throws -> ProvisionalStamp? {
        guard let wall = try decode(Int64?.self, atIndex: 12),
            let uptime = try decode(Int64?.self, atIndex: 13),
            let boot = try decode(Int64?.self, atIndex: 14),
            let seen = try decode(Int64?.self, atIndex: 15)
        else { return nil }
        return ProvisionalStamp(
            madeAt: ClockReading(wall: wall, uptime: uptime, boot: UInt64(bitPattern: boot)),
            seen: HybridTimestamp(rawValue: UInt64(bitPattern: seen)))
    }
}

/// The stored form of a value: the protocol's message in its binary format.
enum StoredValue {
    static func encode(_ value: PropertyListValue) -> Data {
        Data(WireFormat.protobuf.encode(WireValue(value)))
    }

    static func decode(_ bytes: Data, _ key: Key) throws -> PropertyListValue {
        do { return try PropertyListValue(protobuf: bytes) } catch {
            throw damage("the value of \"\(key)\" cannot be read: \(error)")
        }
    }

    static func damage(_ sentence: String) -> DatabaseError {
        DatabaseError(resultCode: .SQLITE_CORRUPT, message: sentence)
    }
}
