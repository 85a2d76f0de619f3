// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// Reads a row's columns as the expected types. Columns must only be read in this way. A row's
/// subscript traps if a column is null or has a different type, and a damaged file may contain
/// either.
///
/// Every call throws ``StorageError/unreadable``.
extension Row: ColumnReading {
    func integer(_ index: Int) throws(StorageError) -> Int64 { try value(index) }

    func value<T: DatabaseValueConvertible>(_ index: Int) throws(StorageError) -> T {
        guard let value: T = try valueIfAny(index) else { throw .unreadable }
        return value
    }

    /// Returns nil for null.
    func valueIfAny<T: DatabaseValueConvertible>(_ index: Int) throws(StorageError) -> T? {
        let column: DatabaseValue = self[index]
        guard !column.isNull else { return nil }
        guard let value = T.fromDatabaseValue(column) else { throw .unreadable }
        return value
    }

    func account(_ index: Int) throws(StorageError) -> AccountID {
        guard let account = AccountID(try value(index)) else { throw .unreadable }
        return account
    }

    func store(_ index: Int) throws(StorageError) -> StoreIdentifier {
        do { return try StoreIdentifier(try value(index)) } catch { throw .unreadable }
    }

    /// The number of rows that cannot be read in this way.
    static func countUnreadable(
        _ sql: String, _ db: Database, as read: (Row) throws -> Void
    ) throws -> Int {
        let rows = try Row.fetchCursor(db, sql: sql)
        var count = 0
        while let row = try rows.next() {
            do { try read(row) } catch StorageError.unreadable { count += 1 }
        }
        return count
    }
}

/// Reads the columns of a row as numbers of certain kinds. Every call throws
/// ``StorageError/unreadable``.
protocol ColumnReading {
    func integer(_ index: Int) throws(StorageError) -> Int64
}

extension ColumnReading {
    /// A time or a duration. The sum of two does not overflow.
    func time(_ index: Int) throws(StorageError) -> Int64 {
        let time = try integer(index)
        guard time.magnitude <= 1 << 61 else { throw .unreadable }
        return time
    }

    /// A number of things: at least 0, and small enough to add to.
    func count(_ index: Int) throws(StorageError) -> Int {
        let count = try time(index)
        guard count >= 0 else { throw .unreadable }
        return Int(count)
    }

    func revision(_ index: Int) throws(StorageError) -> Int64 { Int64(try count(index)) }

    func timestamp(_ index: Int) throws(StorageError) -> HybridTimestamp {
        HybridTimestamp(rawValue: try bits(index))
    }

    func device(_ index: Int) throws(StorageError) -> DeviceID {
        DeviceID(rawValue: try bits(index))
    }

    /// A number that is unsigned in the program.
    func bits(_ index: Int) throws(StorageError) -> UInt64 {
        UInt64(bitPattern: try integer(index))
    }
}
