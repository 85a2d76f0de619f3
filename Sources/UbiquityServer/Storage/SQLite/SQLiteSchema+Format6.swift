// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import UbiquityCore

/// Format 6 keeps a store's state in its head, see ``SQLiteHead``: `store` only has its number and
/// name, and `span` the older spans. Changes after a revision are found among the store's records,
/// without an index of their revisions, which was another page to write for each push.
///
/// Takes as long as writing the whole file once.
extension SQLiteSchema {
    static func migrateToFormat6(_ db: Database) throws {
        try db.execute(sql: "ALTER TABLE span RENAME TO span5; \(newSpan)")
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT id, revision, bytes, keys, deletions, newest, newest_forgotten,
                    forgotten_revision, accepted_floor, horizon, parts, folded,
                    folds_forgotten, folds_forgotten_revision
                FROM store
                """)
        while let row = try rows.next() {
            do {
                var store = SQLiteStore(id: try row.value(0), state: try state(row, db))
                try store.update(db)
            } catch StorageError.unreadable {
                // The store cannot be read afterwards either, because it has no head.
            }
        }
        try db.execute(sql: format6)
    }

    private static let newSpan = """
        CREATE TABLE span (
            store INTEGER NOT NULL, first_revision INTEGER NOT NULL, epoch INTEGER NOT NULL,
            PRIMARY KEY (store, first_revision)) WITHOUT ROWID
        """

    private static let format6 = """
        DROP INDEX record_revision;
        DROP TABLE accepted;
        DROP TABLE span5;
        ALTER TABLE store RENAME TO store5;
        CREATE TABLE store (
            id INTEGER PRIMARY KEY, account TEXT NOT NULL, identifier TEXT NOT NULL,
            UNIQUE (account, identifier));
        INSERT OR IGNORE INTO store SELECT id, account, identifier FROM store5;
        DROP TABLE store5;
        """

    private static func state(_ row: Row, _ db: Database) throws -> StoreState {
        let id: Int64 = try row.value(0)
        return StoreState(
            lineage: Lineage(
                spans: try SQLiteStore.spans(id, in: "span5", db), revision: try row.revision(1),
                compactedRevision: try row.revision(7)),
            usage: try usage(row, db),
            newest: try row.timestamp(5), newestCompacted: try row.timestamp(6),
            deletions: try row.count(4),
            accepted: VersionVector(times: try accepted(id, db), floor: try row.timestamp(8)),
            horizon: try row.timestamp(9), folded: try row.count(11),
            foldsCompacted: FoldHorizon(
                timestamp: try row.timestamp(12), revision: try row.revision(13)),
            history: HistoryState(
                floor: RecordVersion.Moment(revision: try row.revision(1), milliseconds: 0)))
    }

    /// Counts the usage anew where format 3 had a count without parts.
    private static func usage(_ row: Row, _ db: Database) throws -> Usage {
        guard !row.hasNull(atIndex: 10) else {
            return try SQLiteRecord.usage(of: row.value(0), db)
        }
        return Usage(bytes: try row.count(2), keys: try row.count(3), parts: try row.count(10))
    }

    private static func accepted(
        _ id: Int64, _ db: Database
    ) throws -> [DeviceID: HybridTimestamp] {
        let statement = try RawStatement("SELECT device, time FROM accepted WHERE store = ?", db)
        statement.bind(id, at: 1)
        var times: [DeviceID: HybridTimestamp] = [:]
        try statement.run { times[try $0.device(0)] = try $0.timestamp(1) }
        return times
    }
}
