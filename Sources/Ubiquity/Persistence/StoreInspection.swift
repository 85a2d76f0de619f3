// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import UbiquityCore

/// A summary of a store's file, made without changing it and while others use it.
package struct StoreInspection: Sendable {
    package var usage = Usage()
    /// The number of keys, and parts of keys, whose newest write the server does not have yet.
    package var pendingCount = 0
    /// The keys of the refused writes, the newest first; one for each write.
    package var refusedKeys: [Key] = []
    package var meta = StoredMeta()
    package var entries: [StoredEntry] = []

    /// - Throws: ``LocalStorageError`` that describes the problem with the file.
    package init(path: String) throws(LocalStorageError) {
        self = try SQLiteFile.reading(path, label: "ubiquity.inspection") { db in
            var inspection = StoreInspection()
            try db.inTransaction(.deferred) {
                try inspection.read(db, path)
                return .commit
            }
            return inspection
        }
    }

    private init() {}

    private mutating func read(_ db: Database, _ path: String) throws {
        // As it is when a full disk has ended its making. The next opening makes the tables.
        guard try SQLiteFile.checkOwner(of: db, path) > 0 else { return }
        let verdict = try String.fetchOne(db, sql: "PRAGMA quick_check(1)") ?? "ok"
        guard verdict == "ok" else { throw StoredValue.damage(verdict) }
        let changes = try SQLiteRows.changes(db, after: nil)
        (meta, entries) = (changes.meta, changes.entries)
        refusedKeys = try SQLiteRows.refusedWrites(db).filter { !$0.isSuperseded }
            .map(\.record.key)
        for entry in changes.entries {
            if entry.pending != nil { pendingCount += 1 }
            let content = entry.pending?.record.content ?? entry.confirmed?.content
            usage.replace(nil, by: content?.value, of: entry.key)
        }
    }
}
