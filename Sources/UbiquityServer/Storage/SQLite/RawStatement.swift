// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// A prepared statement in SQLite's own terms, for what happens with every push or every record:
/// GRDB's arguments and rows take several times as long as SQLite does for one row.
///
/// Parameters are numbered from 1, columns from 0, as in SQLite.
struct RawStatement {
    private let statement: Statement
    private let pointer: OpaquePointer

    /// Prepares the statement, or takes the connection's own from an earlier time.
    init(_ sql: String, _ db: Database) throws {
        statement = try db.cachedStatement(sql: sql)
        pointer = statement.sqliteStatement
    }

    func bind(_ number: Int64, at index: Int32) { sqlite3_bind_int64(pointer, index, number) }

    /// Binds the bits of a number that is unsigned in the program.
    func bind(_ bits: UInt64, at index: Int32) { bind(Int64(bitPattern: bits), at: index) }

    /// - Parameter bytes: Null for nil.
    func bind(_ bytes: (some ContiguousBytes)?, at index: Int32) {
        guard let bytes else {
            sqlite3_bind_null(pointer, index)
            return
        }
        bytes.withUnsafeBytes { bytes in
            // Without an address, SQLite would bind null.
            guard let address = bytes.baseAddress else {
                sqlite3_bind_zeroblob(pointer, index, 0)
                return
            }
            sqlite3_bind_blob64(
                pointer, index, address, sqlite3_uint64(bytes.count), Self.copied)
        }
    }

    func bind(text: String, at index: Int32) {
        var text = text
        text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                _ = sqlite3_bind_text(
                    pointer, index, characters.baseAddress, Int32(characters.count), Self.copied)
            }
        }
    }

    /// Tells SQLite to copy what it is given.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    /// Runs the statement to its end, and forgets what was bound.
    /// - Parameter row: Called on each row, to read its columns.
    func run(_ row: (RawStatement) throws -> Void = { _ in }) throws {
        try runRows(while: {
            try row($0)
            return true
        })
    }

    /// Runs the statement until the closure returns false for a row, or to its end.
    func runRows(while row: (RawStatement) throws -> Bool) throws {
        defer {
            sqlite3_reset(pointer)
            sqlite3_clear_bindings(pointer)
        }
        while true {
            switch sqlite3_step(pointer) {
            case SQLITE_ROW: guard try row(self) else { return }
            case SQLITE_DONE: return
            default: throw error
            }
        }
    }

    private var error: DatabaseError {
        let connection = sqlite3_db_handle(pointer)
        return DatabaseError(
            resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
            message: String(cString: sqlite3_errmsg(connection)))
    }
}

extension RawStatement: ColumnReading {
    func integer(_ index: Int) throws(StorageError) -> Int64 {
        let index = Int32(index)
        guard sqlite3_column_type(pointer, index) == SQLITE_INTEGER else { throw .unreadable }
        return sqlite3_column_int64(pointer, index)
    }

    func isEmptyBlob(_ index: Int) -> Bool {
        sqlite3_column_type(pointer, Int32(index)) == SQLITE_BLOB
            && sqlite3_column_bytes(pointer, Int32(index)) == 0
    }

    func isNull(_ index: Int) -> Bool { sqlite3_column_type(pointer, Int32(index)) == SQLITE_NULL }

    /// Bytes are read as text, too, as by GRDB.
    func textIfAny(_ index: Int) throws(StorageError) -> String? {
        if isNull(index) { return nil }
        let index = Int32(index)
        guard [SQLITE_TEXT, SQLITE_BLOB].contains(sqlite3_column_type(pointer, index)) else {
            throw .unreadable
        }
        guard let text = sqlite3_column_text(pointer, index) else { return "" }
        let bytes = UnsafeBufferPointer(
            start: text, count: Int(sqlite3_column_bytes(pointer, index)))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// - Throws: ``StorageError/unreadable`` if the column is not a blob.
    func bytes(_ index: Int) throws(StorageError) -> Data {
        let index = Int32(index)
        guard sqlite3_column_type(pointer, index) == SQLITE_BLOB else { throw .unreadable }
        guard let address = sqlite3_column_blob(pointer, index) else { return Data() }
        return Data(bytes: address, count: Int(sqlite3_column_bytes(pointer, index)))
    }
}
