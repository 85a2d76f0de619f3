// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB

/// Reads bytes as rows of a store's tables: a byte names the table, then comes each column, a byte
/// for its type and its content. What ends early is made up of zeroes.
struct RowReader {
    enum Table: UInt8, CaseIterable {
        case entry, refused, meta

        var columns: Int {
            switch self {
            case .entry: 19
            case .refused: 7
            case .meta: 2
            }
        }
    }

    struct Row {
        var table: Table
        var values: [DatabaseValue]
    }

    private static let rowsMax = 16
    private var rest: ArraySlice<UInt8>

    static func rows(in bytes: [UInt8]) -> [Row] {
        var reader = RowReader(rest: bytes[...])
        var rows: [Row] = []
        while !reader.rest.isEmpty, rows.count < rowsMax { rows.append(reader.row()) }
        return rows
    }

    private mutating func row() -> Row {
        let table = Table.allCases[Int(byte()) % Table.allCases.count]
        return Row(table: table, values: (0..<table.columns).map { _ in value() })
    }

    private mutating func value() -> DatabaseValue {
        switch byte() % 5 {
        case 0: .null
        case 1: Int64(bitPattern: number()).databaseValue
        case 2: Double(bitPattern: number()).databaseValue
        case 3: String(decoding: bytes(), as: UTF8.self).databaseValue
        default: Data(bytes()).databaseValue
        }
    }

    private mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    private mutating func number() -> UInt64 {
        (0..<8).reduce(0) { number, _ in number << 8 | UInt64(byte()) }
    }

    /// As many as the first two bytes say.
    private mutating func bytes() -> ArraySlice<UInt8> {
        let count = Int(byte()) << 8 | Int(byte())
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// The bytes that are read as these rows.
    static func bytes(of rows: [Row]) -> [UInt8] {
        rows.flatMap { [$0.table.rawValue] + $0.values.flatMap(bytes) }
    }

    private static func bytes(of value: DatabaseValue) -> [UInt8] {
        switch value.storage {
        case .null: [0]
        case .int64(let number): [1] + bytes(of: UInt64(bitPattern: number))
        case .double(let number): [2] + bytes(of: number.bitPattern)
        case .string(let text): [3] + counted(Array(text.utf8))
        case .blob(let data): [4] + counted([UInt8](data))
        }
    }

    private static func bytes(of number: UInt64) -> [UInt8] {
        (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
    }

    private static func counted(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)]
            + bytes
    }
}
