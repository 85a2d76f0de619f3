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
    /// Not a real, which GRDB would take for an integer.
    func integer(_ index: Int) throws(StorageError) -> Int64 {
        let column: DatabaseValue = self[index]
        guard case .int64(let integer) = column.storage else { throw .unreadable }
        return integer
    }

    func isNull(_ index: Int) -> Bool { hasNull(atIndex: index) }

    func textIfAny(_ index: Int) throws(StorageError) -> String? { try valueIfAny(index) }

    func bytes(_ index: Int) throws(StorageError) -> Data { try value(index) }

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
