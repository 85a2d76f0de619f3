// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import Synchronization
internal import UbiquityCore

/// A transaction of one of the connections.
struct SQLiteTransaction: SQLTransaction {
    let db: Database

    struct StatementResult: SQLResult {
        typealias Row = GRDB.Row
        let rows: [Row]
        let changes: Int
    }

    var mayBeRepeated: Bool { false }

    func run(_ statements: [SQLStatement]) throws -> [StatementResult] {
        try statements.map { statement in
            let rows = try Row.fetchAll(
                db.cachedStatement(sql: Self.sql(statement.sql)),
                arguments: StatementArguments(statement.values.map(Self.parameter)))
            return StatementResult(rows: rows, changes: db.changesCount)
        }
    }

    private static func parameter(_ value: SQLValue) -> DatabaseValue {
        switch value {
        case .null: .null
        case .integer(let number): number.databaseValue
        case .text(let text): text.databaseValue
        case .bytes(let bytes): bytes.databaseValue
        case .integers, .texts, .blobs:
            preconditionFailure("only PostgreSQL's own statements have arrays")
        }
    }

    /// The statement in SQLite's words. Its schema has no name, and whoever writes is alone.
    static func sql(_ sql: String) -> String {
        if let known = translated.withLock({ $0[sql] }) { return known }
        let own = [
            ("ubiquity.", ""), (" FOR UPDATE SKIP LOCKED", ""), (" FOR UPDATE", ""),
            ("strpos(", "instr("), ("$", "?"),
        ].reduce(sql) { $0.replacing($1.0, with: $1.1) }
        translated.withLock { $0[sql] = own }
        return own
    }

    /// As many as the program has.
    private static let translated = Mutex<[String: String]>([:])

    static func forgettingProgress(of device: DeviceReference) -> SQLStatement {
        SQLStatement(
            """
            DELETE FROM passed
            WHERE store IN (SELECT id FROM store WHERE account = $1) AND device = $2
            """, device.values)
    }

    static func listingErased(_ account: AccountID) -> [SQLStatement] {
        [
            SQLStatement(
                "INSERT INTO erased (store) SELECT id FROM store WHERE account = $1",
                .text(account.string)),
            SQLStatement("INSERT OR IGNORE INTO chore (name) VALUES ('scrub')"),
        ]
    }
}
