// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

@testable internal import UbiquityServer

/// Turns a file of this format into one of an earlier format, except for the number.
enum OlderFormat {
    /// Format 9, with everything that is in the file.
    static func undoFormat10(_ db: Database) throws {
        let table = try String.fetchOne(
            db, sql: "SELECT sql FROM sqlite_master WHERE name = 'version'")!
        try db.execute(
            sql: """
                ALTER TABLE version RENAME TO version10;
                \(table.replacing("UNIQUE", with: "PRIMARY KEY")) WITHOUT ROWID;
                INSERT INTO version SELECT * FROM version10;
                DROP TABLE version10; PRAGMA user_version = 9
                """)
    }

    /// Format 8, with everything that is in the file.
    static func undoFormat9(_ db: Database) throws {
        try undoFormat10(db)
        try SQLiteVersion.unpackAll(db)
        try db.execute(sql: "PRAGMA user_version = 8")
    }

    /// Format 7, with everything that is in the file.
    static func undoFormat8(_ db: Database) throws {
        try undoFormat9(db)
        let table = try String.fetchOne(
            db, sql: "SELECT sql FROM sqlite_master WHERE name = 'version'")!
        try db.execute(
            sql: """
                ALTER TABLE version RENAME TO version8;
                \(table.replacing("(store, ended, key,", with: "(store, key, ended,"));
                INSERT INTO version SELECT * FROM version8;
                DROP TABLE version8; PRAGMA user_version = 7
                """)
    }

    /// Format 6, without what the later ones add.
    static func undoFormat7(_ db: Database) throws {
        try undoFormat9(db)
        let heads = try Row.fetchAll(db, sql: "SELECT store, value FROM record WHERE key = x''")
        for head in heads {
            // Without its last four numbers.
            let value: Data = head[1]
            let ends = value.indices.filter { value[$0] & 0x80 == 0 }
            try db.execute(
                sql: "UPDATE record SET value = ? WHERE store = ? AND key = x''",
                arguments: [value.prefix(through: ends[ends.count - 5]), head[0] as Int64])
        }
        try db.execute(
            sql: """
                DROP TABLE version; ALTER TABLE record DROP COLUMN came;
                ALTER TABLE account DROP COLUMN limits;
                ALTER TABLE device DROP COLUMN clock_ahead;
                ALTER TABLE device DROP COLUMN clock_measured;
                ALTER TABLE device DROP COLUMN version;
                DROP TABLE sign_in_request; ALTER TABLE code DROP COLUMN credential_latest;
                ALTER TABLE code DROP COLUMN maker; PRAGMA user_version = 6
                """)
    }

    /// Format 5, with everything that is in the file.
    static func undoFormat6(_ db: Database) throws {
        try undoFormat7(db)
        let rows = try Row.fetchAll(db, sql: "SELECT id, account, identifier FROM store")
        let stores = try rows.map { row in
            let key = StoreReference(account: try row.account(1), identifier: try row.store(2))
            return (id: row[0] as Int64, key: key, state: try SQLiteStore.fetch(key, db)!.state)
        }
        try db.execute(sql: format5)
        for (id, key, state) in stores {
            func bits(_ timestamp: HybridTimestamp) -> Int64 {
                Int64(bitPattern: timestamp.rawValue)
            }
            try db.execute(
                sql: "INSERT INTO store VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                arguments: [
                    id, key.account.string, key.identifier.string, state.lineage.revision,
                    state.usage.bytes, state.usage.keys, state.deletions, bits(state.newest),
                    bits(state.newestCompacted), state.lineage.compactedRevision,
                    bits(state.accepted.floor), bits(state.horizon), state.usage.parts,
                    state.folded, bits(state.foldsCompacted.timestamp),
                    state.foldsCompacted.revision,
                ])
            for (device, time) in state.accepted.times {
                try db.execute(
                    sql: "INSERT INTO accepted VALUES (?, ?, ?)",
                    arguments: [id, device.bits, bits(time)])
            }
            for span in state.lineage.spans {
                try db.execute(
                    sql: "INSERT OR REPLACE INTO span VALUES (?, ?, ?)",
                    arguments: [id, span.firstRevision, Int64(bitPattern: span.epoch)])
            }
        }
    }

    private static let format5 = """
        DELETE FROM record WHERE key = x'';
        DROP TABLE store;
        CREATE TABLE store (
            id INTEGER PRIMARY KEY, account TEXT NOT NULL, identifier TEXT NOT NULL,
            revision INTEGER NOT NULL, bytes INTEGER NOT NULL, keys INTEGER NOT NULL,
            deletions INTEGER NOT NULL, newest INTEGER NOT NULL,
            newest_forgotten INTEGER NOT NULL, forgotten_revision INTEGER NOT NULL,
            accepted_floor INTEGER NOT NULL DEFAULT 0, horizon INTEGER NOT NULL DEFAULT 0,
            parts INTEGER, folded INTEGER NOT NULL DEFAULT 0,
            folds_forgotten INTEGER NOT NULL DEFAULT 0,
            folds_forgotten_revision INTEGER NOT NULL DEFAULT 0,
            UNIQUE (account, identifier));
        CREATE INDEX record_revision ON record (store, revision);
        CREATE TABLE accepted (
            store INTEGER NOT NULL, device INTEGER NOT NULL, time INTEGER NOT NULL,
            PRIMARY KEY (store, device)) WITHOUT ROWID;
        PRAGMA user_version = 5;
        """

    /// Format 4.
    static func undoFormat5(_ db: Database) throws {
        try undoFormat6(db)
        try db.execute(
            sql: """
                DROP INDEX audit_recent; DROP TABLE known_limit; DROP TABLE erased;
                ALTER TABLE audit DROP COLUMN last; ALTER TABLE audit DROP COLUMN count;
                ALTER TABLE audit DROP COLUMN detail; PRAGMA user_version = 4
                """)
    }
}
