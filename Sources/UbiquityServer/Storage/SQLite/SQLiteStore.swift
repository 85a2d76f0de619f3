// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore
internal import UbiquityWire

/// A store's row and its spans, as the program has them. `id` is nil until it is stored.
struct SQLiteStore: Sendable {
    var id: Int64?
    var state = StoreState()

    /// Nil if there is no such store.
    static func fetch(_ store: StoreKey, _ db: Database) throws -> SQLiteStore? {
        try fetch(
            "account = ? AND identifier = ?", [store.account.string, store.identifier.string], db)
    }

    /// Those that remember deletions.
    static func fetchRemembering(_ db: Database) throws -> [SQLiteStore] {
        try Int64.fetchAll(db, sql: "SELECT id FROM store WHERE deletions > 0").compactMap {
            try fetch("id = ?", [$0], db)
        }
    }

    private static func fetch(
        _ condition: String, _ arguments: StatementArguments, _ db: Database
    ) throws -> SQLiteStore? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, revision, bytes, keys, deletions, newest, newest_forgotten,
                    forgotten_revision
                FROM store WHERE \(condition)
                """)
        guard let row = try Row.fetchOne(statement, arguments: arguments) else { return nil }
        return SQLiteStore(id: row[0], state: try state(row, db))
    }

    private static func state(_ row: Row, _ db: Database) throws -> StoreState {
        StoreState(
            lineage: Lineage(
                spans: try spans(row[0], db), revision: row[1], forgottenRevision: row[7]),
            usage: Usage(bytes: row[2], keys: row[3]),
            newest: HybridTimestamp(rawValue: UInt64(bitPattern: row[5])),
            newestForgotten: HybridTimestamp(rawValue: UInt64(bitPattern: row[6])),
            deletions: row[4])
    }

    static func spans(_ id: Int64, _ db: Database) throws -> [Lineage.Span] {
        let statement = try db.cachedStatement(
            sql: "SELECT first_revision, epoch FROM span WHERE store = ? ORDER BY first_revision")
        return try Row.fetchAll(statement, arguments: [id]).map { row in
            Lineage.Span(firstRevision: row[0], epoch: UInt64(bitPattern: row[1]))
        }
    }

    static func insert(_ store: StoreKey, _ db: Database) throws -> SQLiteStore {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO store (account, identifier, revision, bytes, keys, deletions, newest,
                    newest_forgotten, forgotten_revision)
                VALUES (?, ?, 0, 0, 0, 0, 0, 0, 0)
                """)
        try statement.execute(arguments: [store.account.string, store.identifier.string])
        return SQLiteStore(id: db.lastInsertedRowID)
    }

    func update(_ db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                UPDATE store SET revision = ?, bytes = ?, keys = ?, deletions = ?, newest = ?,
                    newest_forgotten = ?, forgotten_revision = ?
                WHERE id = ?
                """)
        statement.setUncheckedArguments([
            state.lineage.revision, state.usage.bytes, state.usage.keys, state.deletions,
            Int64(bitPattern: state.newest.rawValue),
            Int64(bitPattern: state.newestForgotten.rawValue), state.lineage.forgottenRevision,
            id,
        ])
        try statement.execute()
    }
}
