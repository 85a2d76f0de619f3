// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// Stores an increment of a folded count as a row.
enum SQLiteFoldedIncrement {
    private static let columns = "run, since, times, amount, total, mark, removed, time"

    static func fetch(
        _ queries: [FoldedQuery], of store: Int64, _ db: Database
    ) throws -> [FoldedIncrement] {
        let ofRun = try db.cachedStatement(
            sql: "SELECT \(columns) FROM folded WHERE store = ? AND key = ? AND run = ?")
        let since = try db.cachedStatement(
            sql: """
                SELECT \(columns) FROM folded
                WHERE store = ? AND key = ? AND removed = 0 AND mark > ?
                """)
        var found: [FoldedIncrement.ID: FoldedIncrement] = [:]
        for query in queries {
            let key = Data(query.key.bytes)
            func take(_ statement: Statement, _ argument: any DatabaseValueConvertible) throws {
                let rows = try Row.fetchCursor(statement, arguments: [store, key, argument])
                while let row = try rows.next() {
                    let increment = try increment(row, of: query.key)
                    found[increment.id] = increment
                }
            }
            for run in query.runs { try take(ofRun, FoldedIncrement.data(run)) }
            if let after = query.after { try take(since, after.rawValue) }
        }
        return Array(found.values)
    }

    static func write(
        _ increment: FoldedIncrement, of store: Int64, running: Int64, _ db: Database
    ) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO folded (store, key, \(columns), committed)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        try statement.execute(arguments: [
            store, Data(increment.run.whole.bytes), FoldedIncrement.data(increment.run),
            increment.after, increment.times, value(increment.amount), value(increment.total),
            increment.mark.rawValue, increment.isRemoved,
            Int64(bitPattern: increment.timestamp.rawValue), running,
        ])
    }

    /// In the order in which they were folded.
    static func ages(
        of store: Int64, _ db: Database
    ) throws -> [CompactionRule.Tombstone] {
        let statement = try db.cachedStatement(
            sql: "SELECT mark, committed, time FROM folded WHERE store = ? ORDER BY mark")
        return try Row.fetchAll(statement, arguments: [store]).map { row in
            CompactionRule.Tombstone(
                revision: FoldMark(rawValue: try row.value(0)).revision,
                committed: try row.time(1), timestamp: try row.timestamp(2))
        }
    }

    static func compact(through revision: Int64, of store: Int64, _ db: Database) throws {
        let after = FoldMark(revision: revision + 1, epoch: 0)
        try db.execute(
            sql: "DELETE FROM folded WHERE store = ? AND mark < ?",
            arguments: [store, after.rawValue])
    }

    private static func value(_ number: Number) -> DatabaseValue {
        switch number.value {
        case .integer(let value): value.databaseValue
        case .real(let value): value.databaseValue
        default: .null
        }
    }

    /// SQLite has no NaN.
    private static func number(_ value: DatabaseValue) -> Number {
        switch value.storage {
        case .int64(let value): Number(.integer(value)) ?? .zero
        case .double(let value): Number(.real(value)) ?? .zero
        default: Number(.real(.nan)) ?? .zero
        }
    }

    private static func increment(
        _ row: Row, of key: Key
    ) throws(StorageError) -> FoldedIncrement {
        let name: Data = try row.value(0)
        guard let part = PartID(String(decoding: name, as: UTF8.self)) else { throw .unreadable }
        return FoldedIncrement(
            run: key.part(part), after: try row.value(1), times: try row.value(2),
            amount: number(row[3]), total: number(row[4]),
            mark: FoldMark(rawValue: try row.value(5)), isRemoved: try row.value(6),
            timestamp: try row.timestamp(7))
    }
}
