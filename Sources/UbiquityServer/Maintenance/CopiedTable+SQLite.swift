// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB

extension CopiedTable {
    func count(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM (\(reading))") ?? 0
    }

    /// Reads all rows, one at a time.
    /// - Throws: ``StorageError/unreadable`` for a column of another type.
    func read(_ db: Database, _ body: (CopiedRow) throws -> Void) throws {
        try RawStatement(reading, db).run { statement in try body(try row(statement)) }
    }

    private func row(_ statement: RawStatement) throws(StorageError) -> CopiedRow {
        var row: CopiedRow = []
        row.reserveCapacity(columns.count)
        var reals: Int64 = 0
        for (index, column) in columns.enumerated() {
            switch column.kind {
            case .number(let flag):
                let real = statement.isNull(index) ? .nan : statement.realIfAny(index)
                if real != nil { reals |= flag }
                let bits = real.map { Int64(bitPattern: $0.bitPattern) }
                if let bits {
                    row.append(.integer(bits))
                } else {
                    row.append(.integer(try statement.integer(index)))
                }
            case .reals: row.append(.integer(reals))
            case _ where statement.isNull(index): row.append(.null)
            case .integer: row.append(.integer(try statement.integer(index)))
            case .boolean: row.append(.boolean(try statement.integer(index) != 0))
            case .bytes, .text, .anyText: row.append(.bytes(try statement.bytes(index)))
            }
        }
        return row
    }

    func write(_ row: CopiedRow, _ db: Database) throws {
        let reals = columns.firstIndex { $0.kind == .reals }.map { row[$0] }
        for writing in writings {
            let statement = try RawStatement(writing.sql, db)
            for (place, column) in writing.columns.enumerated() {
                let index = Int32(place + 1)
                switch row[column] {
                case .integer(let number):
                    if case .number(let flag) = columns[column].kind,
                        case .integer(let reals) = reals, reals & flag != 0
                    {
                        let real = Double(bitPattern: UInt64(bitPattern: number))
                        statement.bind(real, at: index)
                    } else {
                        statement.bind(number, at: index)
                    }
                case .boolean(let truth): statement.bind(truth ? 1 : Int64(0), at: index)
                case .bytes(let bytes): statement.bind(bytes, at: index)
                default: statement.bind(Data?.none, at: index)
                }
            }
            try statement.run()
        }
    }
}
