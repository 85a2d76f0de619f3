// SPDX-License-Identifier: Apache-2.0

internal import CLibpq
internal import Foundation
internal import UbiquityCore

/// The result of a statement.
struct PostgresResult: SQLResult, Sendable {
    /// The rows that it returned.
    let rows: [PostgresRow]
    /// The number of rows that it inserted, changed, removed or returned.
    let changes: Int
    /// The name of the command that the server completed, such as `COMMIT`.
    let tag: String

    init(_ handle: PostgresResultHandle) {
        rows = (0..<PQntuples(handle.pointer)).map { PostgresRow(result: handle, number: $0) }
        changes = Int(String(cString: PQcmdTuples(handle.pointer))) ?? 0
        tag = String(cString: PQcmdStatus(handle.pointer))
    }
}

/// Owns a result of libpq, which nothing changes any more.
final class PostgresResultHandle: @unchecked Sendable {
    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { PQclear(pointer) }

    var status: ExecStatusType { PQresultStatus(pointer) }

    /// A field of an error; empty if it has none.
    func field(_ code: Character) -> String {
        PQresultErrorField(pointer, Int32(code.asciiValue!)).map { String(cString: $0) } ?? ""
    }
}

/// Reads the columns of a row in PostgreSQL's binary format. Columns are numbered from 0. A column
/// of another type, or null, is ``StorageError/unreadable``.
struct PostgresRow: ColumnReading, Sendable {
    let result: PostgresResultHandle
    let number: Int32

    var columnCount: Int { Int(PQnfields(result.pointer)) }

    func isNull(_ index: Int) -> Bool {
        index >= PQnfields(result.pointer) || PQgetisnull(result.pointer, number, Int32(index)) == 1
    }

    func integer(_ index: Int) throws(StorageError) -> Int64 {
        guard let (type, bytes) = column(index) else { throw .unreadable }
        return switch (type, bytes.count) {
        case (PostgresType.integer, 8): Int64(bitPattern: Self.bits(bytes))
        case (PostgresType.medium, 4): Int64(Int32(truncatingIfNeeded: Self.bits(bytes)))
        case (PostgresType.small, 2): Int64(Int16(truncatingIfNeeded: Self.bits(bytes)))
        default: throw .unreadable
        }
    }

    func boolean(_ index: Int) throws(StorageError) -> Bool {
        guard let (type, bytes) = column(index), type == PostgresType.boolean, bytes.count == 1
        else { throw .unreadable }
        return bytes[0] != 0
    }

    func text(_ index: Int) throws(StorageError) -> String {
        let types = [PostgresType.text, PostgresType.varying, PostgresType.name]
        guard let (type, bytes) = column(index), types.contains(type),
            let text = String(validating: bytes, as: UTF8.self)
        else { throw .unreadable }
        return text
    }

    func bytes(_ index: Int) throws(StorageError) -> Data {
        guard let (type, bytes) = column(index), type == PostgresType.bytes else {
            throw .unreadable
        }
        return Data(bytes)
    }

    func textIfAny(_ index: Int) throws(StorageError) -> String? {
        isNull(index) ? nil : try text(index)
    }

    func bytesIfAny(_ index: Int) throws(StorageError) -> Data? {
        isNull(index) ? nil : try bytes(index)
    }

    /// The type and the bytes of a column; nil for null.
    private func column(_ index: Int) -> (Oid, UnsafeRawBufferPointer)? {
        guard !isNull(index) else { return nil }
        let column = Int32(index)
        return (
            PQftype(result.pointer, column),
            UnsafeRawBufferPointer(
                start: PQgetvalue(result.pointer, number, column),
                count: Int(PQgetlength(result.pointer, number, column)))
        )
    }

    private static func bits(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
