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
        for (index, column) in columns.enumerated() {
            switch column.kind {
            case _ where statement.isNull(index): row.append(.null)
            case .integer: row.append(.integer(try statement.integer(index)))
            case .bytes, .text: row.append(.bytes(try statement.bytes(index)))
            }
        }
        return row
    }

    func write(_ row: CopiedRow, _ db: Database) throws {
        for writing in writings {
            let statement = try RawStatement(writing.sql, db)
            for (place, column) in writing.columns.enumerated() {
                let index = Int32(place + 1)
                switch row[column] {
                case .integer(let number): statement.bind(number, at: index)
                case .bytes(let bytes): statement.bind(bytes, at: index)
                default: statement.bind(Data?.none, at: index)
                }
            }
            try statement.run()
        }
    }
}
