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
    static func fetch(_ store: StoreReference, _ db: Database) throws -> SQLiteStore? {
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
        if row.hasNull(atIndex: 10) { stored.usage = Usage() }
        return SQLiteStore(id: try row.value(0), state: state, stored: stored)
    }

    private static func state(_ row: Row, _ db: Database) throws -> StoreState {
        let id: Int64 = try row.value(0)
        return StoreState(
            lineage: Lineage(
                spans: try spans(id, db), revision: try row.revision(1),
                compactedRevision: try row.revision(7)),
            usage: try usage(row, db),
            newest: try row.timestamp(5), newestCompacted: try row.timestamp(6),
            deletions: try row.count(4),
            accepted: VersionVector(times: try accepted(id, db), floor: try row.timestamp(8)),
            horizon: try row.timestamp(9), folded: try row.count(11),
            foldsCompacted: FoldHorizon(
                timestamp: try row.timestamp(12), revision: try row.revision(13)))
    }

    private static func usage(_ row: Row, _ db: Database) throws -> Usage {
        guard !row.hasNull(atIndex: 10) else {
            return try SQLiteRecord.usage(of: row.value(0), db)
        }
        return Usage(bytes: try row.count(2), keys: try row.count(3), parts: try row.count(10))
    }

    private static func accepted(
        _ id: Int64, _ db: Database
    ) throws -> [DeviceID: HybridTimestamp] {
        let statement = try db.cachedStatement(
            sql: "SELECT device, time FROM accepted WHERE store = ?")
        var times: [DeviceID: HybridTimestamp] = [:]
        for row in try Row.fetchAll(statement, arguments: [id]) {
            times[try row.device(0)] = try row.timestamp(1)
        }
        return times
    }

    static func spans(_ id: Int64, _ db: Database) throws -> [Lineage.Span] {
        let statement = try db.cachedStatement(
            sql: "SELECT first_revision, epoch FROM span WHERE store = ? ORDER BY first_revision")
        return try Row.fetchAll(statement, arguments: [id]).map { row in
            Lineage.Span(firstRevision: try row.revision(0), epoch: try row.bits(1))
        }
    }

    /// Never reuses the number of a store whose records are still to be removed.
    static func insert(_ store: StoreReference, _ db: Database) throws -> SQLiteStore {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO store (id, account, identifier, revision, bytes, keys, deletions, newest,
                    newest_forgotten, forgotten_revision, parts)
                SELECT coalesce(max(id), 0) + 1, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0
                FROM (SELECT max(id) AS id FROM store UNION ALL SELECT max(store) FROM erased)
                """)
        try statement.execute(arguments: [store.account.string, store.identifier.string])
        return SQLiteStore(id: db.lastInsertedRowID)
    }

    /// Does nothing if the rows are up to date.
    mutating func update(_ db: Database) throws {
        guard state != stored else { return }
        try updateAccepted(db)
        stored = state
        let statement = try RawStatement(
            """
            UPDATE store SET revision = ?, bytes = ?, keys = ?, deletions = ?, newest = ?,
                newest_forgotten = ?, forgotten_revision = ?, accepted_floor = ?, horizon = ?,
                parts = ?, folded = ?, folds_forgotten = ?, folds_forgotten_revision = ?
            WHERE id = ?
            """, db)
        let numbers = [
            state.lineage.revision, Int64(state.usage.bytes), Int64(state.usage.keys),
            Int64(state.deletions), Int64(bitPattern: state.newest.rawValue),
            Int64(bitPattern: state.newestCompacted.rawValue), state.lineage.compactedRevision,
            Int64(bitPattern: state.accepted.floor.rawValue),
            Int64(bitPattern: state.horizon.rawValue), Int64(state.usage.parts),
            Int64(state.folded), Int64(bitPattern: state.foldsCompacted.timestamp.rawValue),
            state.foldsCompacted.revision, id!,
        ]
        for (index, number) in numbers.enumerated() {
            statement.bind(number, at: Int32(index + 1))
        }
        try statement.run()
    }

    /// Usually one row: that of the device that pushed.
    private func updateAccepted(_ db: Database) throws {
        let (old, new) = (stored.accepted.times, state.accepted.times)
        guard old != new else { return }
        for (device, time) in new where old[device] != time {
            let statement = try RawStatement(
                "INSERT OR REPLACE INTO accepted (store, device, time) VALUES (?, ?, ?)", db)
            statement.bind(id!, at: 1)
            statement.bind(device.rawValue, at: 2)
            statement.bind(time.rawValue, at: 3)
            try statement.run()
        }
        for device in old.keys where new[device] == nil {
            try db.execute(
                sql: "DELETE FROM accepted WHERE store = ? AND device = ?",
                arguments: [id, device.bits])
        }
    }
}
