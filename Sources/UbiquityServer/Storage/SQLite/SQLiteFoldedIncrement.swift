// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// Stores an increment of a folded count as a row.
enum SQLiteFoldedIncrement {
    static func fetch(
        _ queries: [FoldedQuery], of store: Int64, _ db: Database
    ) throws -> [FoldedIncrement] {
        let ofRun = try db.cachedStatement(
            sql: """
                SELECT \(FoldedIncrement.columns) FROM folded
                WHERE store = ? AND key = ? AND run = ?
                """)
        let since = try db.cachedStatement(
            sql: """
                SELECT \(FoldedIncrement.columns) FROM folded
                WHERE store = ? AND key = ? AND removed = 0 AND mark > ?
                """)
        var found: [FoldedIncrement.ID: FoldedIncrement] = [:]
        for query in queries {
            let key = Data(query.key.bytes)
            func take(_ statement: Statement, _ argument: any DatabaseValueConvertible) throws {
                let rows = try Row.fetchCursor(statement, arguments: [store, key, argument])
                while let row = try rows.next() {
                    let increment = try FoldedIncrement(row, from: 0, of: query.key)
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
                INSERT OR REPLACE INTO folded
                    (store, committed, key, \(FoldedIncrement.columns))
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        let names: StatementArguments = [
            store, running, Data(increment.run.whole.bytes), FoldedIncrement.data(increment.run),
        ]
        try statement.execute(arguments: names + StatementArguments(increment.numbers))
    }

    /// In the order in which they were folded.
    static func ages(
        of store: Int64, _ db: Database
    ) throws -> [CompactionRule.Tombstone] {
        let statement = try db.cachedStatement(
            sql: "SELECT mark, committed, time FROM folded WHERE store = ? ORDER BY mark")
        return try Row.fetchAll(statement, arguments: [store])
            .map(CompactionRule.Tombstone.init(increment:))
    }

    static func compact(through revision: Int64, of store: Int64, _ db: Database) throws {
        let after = FoldMark(revision: revision + 1, epoch: 0)
        try db.execute(
            sql: "DELETE FROM folded WHERE store = ? AND mark < ?",
            arguments: [store, after.rawValue])
    }
}
