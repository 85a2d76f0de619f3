// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// In version 0.1.0, a store's state was in `store`, and had fewer fields.
///
/// Takes as long as writing the whole file once.
extension SQLiteSchema {
    static func migrateOlderVersion(_ db: Database) throws {
        try db.execute(sql: changes + newTables)
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT id, revision, newest, newest_forgotten, forgotten_revision FROM older_store
                """)
        while let row = try rows.next() {
            do {
                var store = SQLiteStore(id: try row.value(0), state: try state(row, db))
                try db.execute(sql: "DELETE FROM span WHERE store = ?", arguments: [store.id])
                try store.update(db)
            } catch StorageError.unreadable {
                // The store cannot be read afterwards either, because it has no head.
            }
        }
        try db.execute(
            sql: """
                INSERT OR IGNORE INTO store SELECT id, account, identifier FROM older_store;
                DROP TABLE older_store
                """)
    }

    /// Brings the tables that stay to their new form. The column `revoked` was of no use in 0.1.0
    /// either: a revoked device has no row.
    private static let changes = """
        ALTER TABLE account ADD COLUMN limits TEXT;
        ALTER TABLE device DROP COLUMN revoked;
        ALTER TABLE device ADD COLUMN clock_ahead INTEGER;
        ALTER TABLE device ADD COLUMN clock_measured INTEGER;
        ALTER TABLE device ADD COLUMN version TEXT;
        ALTER TABLE device ADD COLUMN adder INTEGER;
        ALTER TABLE code ADD COLUMN credential_latest INTEGER;
        ALTER TABLE code ADD COLUMN maker INTEGER;
        ALTER TABLE audit ADD COLUMN last INTEGER;
        ALTER TABLE audit ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE audit ADD COLUMN detail TEXT;
        DROP INDEX record_revision;
        ALTER TABLE record ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE record ADD COLUMN came INTEGER DEFAULT 0;
        ALTER TABLE store RENAME TO older_store;
        """

    /// Counts anew what 0.1.0 counted by other rules. A record that cannot be read counts nothing.
    private static func state(_ row: Row, _ db: Database) throws -> StoreState {
        let id: Int64 = try row.value(0)
        let revision = try row.revision(1)
        var state = StoreState()
        state.lineage = Lineage(
            spans: try SQLiteStore.spans(id, db), revision: revision,
            compactedRevision: try row.revision(4))
        state.newest = try row.timestamp(2)
        state.newestCompacted = try row.timestamp(3)
        // Who wrote the tombstones that were dropped is unknown: they count as everybody's.
        state.accepted = VersionVector(floor: state.newestCompacted)
        // What was before there was a history is unknown too.
        state.history.floor = RecordVersion.Moment(revision: revision, milliseconds: 0)
        let statement = try RawStatement(
            "SELECT \(SQLiteRecord.columns) FROM record WHERE store = ?", db)
        statement.bind(id, at: 1)
        try statement.run { row in
            state.accepted.note(Stamp(try row.timestamp(1), try row.device(2)))
            guard let stored = try? SQLiteRecord.stored(row) else { return }
            guard stored.value != nil else {
                state.deletions += CompactionRule.Tombstone.weight(bytes: stored.key.count)
                return
            }
            guard let record = try? stored.record() else { return }
            state.usage.replace(nil, by: record.content.value, of: record.key)
        }
        return state
    }
}
