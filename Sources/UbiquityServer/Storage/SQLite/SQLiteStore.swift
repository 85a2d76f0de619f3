// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore
internal import UbiquityWire

/// A store's row and its spans. `id` is nil until it is stored.
struct SQLiteStore: Sendable {
    var id: Int64?
    var state = StoreState()
    /// The state in the rows.
    private var stored = StoreState()

    /// Nil if there is no such store.
    static func fetch(_ store: StoreKey, _ db: Database) throws -> SQLiteStore? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, revision, bytes, keys, deletions, newest, newest_forgotten,
                    forgotten_revision, accepted_floor, horizon, parts, folded,
                    folds_forgotten, folds_forgotten_revision
                FROM store WHERE account = ? AND identifier = ?
                """)
        let arguments: StatementArguments = [store.account.string, store.identifier.string]
        guard let row = try Row.fetchOne(statement, arguments: arguments) else { return nil }
        let state = try state(row, db)
        var stored = state
        if row[10] == nil { stored.usage = Usage() }
        return SQLiteStore(id: row[0], state: state, stored: stored)
    }

    private static func state(_ row: Row, _ db: Database) throws -> StoreState {
        StoreState(
            lineage: Lineage(
                spans: try spans(row[0], db), revision: row[1], forgottenRevision: row[7]),
            usage: try usage(row, db),
            newest: HybridTimestamp(rawValue: UInt64(bitPattern: row[5])),
            newestForgotten: HybridTimestamp(rawValue: UInt64(bitPattern: row[6])),
            deletions: row[4],
            accepted: AcceptedTimes(
                times: try accepted(row[0], db),
                floor: HybridTimestamp(rawValue: UInt64(bitPattern: row[8]))),
            horizon: HybridTimestamp(rawValue: UInt64(bitPattern: row[9])), folded: row[11],
            foldsForgotten: FoldHorizon(
                timestamp: HybridTimestamp(rawValue: UInt64(bitPattern: row[12])),
                revision: row[13]))
    }

    private static func usage(_ row: Row, _ db: Database) throws -> Usage {
        guard let parts = row[10] as Int? else { return try SQLiteRecord.usage(of: row[0], db) }
        return Usage(bytes: row[2], keys: row[3], parts: parts)
    }

    private static func accepted(
        _ id: Int64, _ db: Database
    ) throws -> [DeviceID: HybridTimestamp] {
        let statement = try db.cachedStatement(
            sql: "SELECT device, time FROM accepted WHERE store = ?")
        var times: [DeviceID: HybridTimestamp] = [:]
        for row in try Row.fetchAll(statement, arguments: [id]) {
            times[DeviceID(bits: row[0])] = HybridTimestamp(rawValue: UInt64(bitPattern: row[1]))
        }
        return times
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
                    newest_forgotten, forgotten_revision, parts)
                VALUES (?, ?, 0, 0, 0, 0, 0, 0, 0, 0)
                """)
        try statement.execute(arguments: [store.account.string, store.identifier.string])
        return SQLiteStore(id: db.lastInsertedRowID)
    }

    /// Does nothing if the rows are up to date.
    mutating func update(_ db: Database) throws {
        guard state != stored else { return }
        try updateAccepted(db)
        stored = state
        let statement = try db.cachedStatement(
            sql: """
                UPDATE store SET revision = ?, bytes = ?, keys = ?, deletions = ?, newest = ?,
                    newest_forgotten = ?, forgotten_revision = ?, accepted_floor = ?, horizon = ?,
                    parts = ?, folded = ?, folds_forgotten = ?, folds_forgotten_revision = ?
                WHERE id = ?
                """)
        statement.setUncheckedArguments([
            state.lineage.revision, state.usage.bytes, state.usage.keys, state.deletions,
            Int64(bitPattern: state.newest.rawValue),
            Int64(bitPattern: state.newestForgotten.rawValue), state.lineage.forgottenRevision,
            Int64(bitPattern: state.accepted.floor.rawValue),
            Int64(bitPattern: state.horizon.rawValue), state.usage.parts, state.folded,
            Int64(bitPattern: state.foldsForgotten.timestamp.rawValue),
            state.foldsForgotten.revision, id,
        ])
        try statement.execute()
    }

    /// Usually one row: that of the device that pushed.
    private func updateAccepted(_ db: Database) throws {
        let (old, new) = (stored.accepted.times, state.accepted.times)
        guard old != new else { return }
        for (device, time) in new where old[device] != time {
            let statement = try db.cachedStatement(
                sql: "INSERT OR REPLACE INTO accepted (store, device, time) VALUES (?, ?, ?)")
            try statement.execute(
                arguments: [id, device.bits, Int64(bitPattern: time.rawValue)])
        }
        for device in old.keys where new[device] == nil {
            try db.execute(
                sql: "DELETE FROM accepted WHERE store = ? AND device = ?",
                arguments: [id, device.bits])
        }
    }
}
