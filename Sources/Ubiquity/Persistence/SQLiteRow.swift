// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore
internal import UbiquityWire

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
            had: try stamp(at: 10), isUnkept: try flag(at: 16))
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
