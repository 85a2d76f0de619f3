// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// The stored form of a store's state: a row among the store's records, under the empty key, which
/// no record has. It is beside them so that a push to a small store writes one page.
///
/// Its revision is the store's, and its time is the newest one. The rest is in the value, see
/// ``StoreHead``.
enum SQLiteHead {
    /// - Parameter value: See ``StoreHead``.
    static func write(
        _ state: StoreState, _ value: [UInt8], of store: Int64, _ db: Database
    ) throws {
        let statement = try RawStatement(
            """
            INSERT INTO record (store, key, time, device, revision, committed, value)
            VALUES (?, x'', ?, 0, ?, 0, ?)
            ON CONFLICT DO UPDATE SET
                time = excluded.time, revision = excluded.revision, value = excluded.value
            """, db)
        statement.bind(store, at: 1)
        statement.bind(state.newest.rawValue, at: 2)
        statement.bind(state.lineage.revision, at: 3)
        statement.bind(value, at: 4)
        try statement.run()
    }

    /// The state without the spans that are rows.
    /// - Throws: ``StorageError/unreadable``, also if there is none.
    static func fetch(
        of store: Int64, _ db: Database
    ) throws -> (state: StoreState, spanRows: Int, recent: VersionPack) {
        let statement = try RawStatement(
            "SELECT time, revision, value FROM record WHERE store = ? AND key = x''", db)
        statement.bind(store, at: 1)
        var head: (state: StoreState, spanRows: Int, recent: VersionPack)?
        try statement.run { row in
            head = try StoreHead.state(
                try row.bytes(2), newest: try row.timestamp(0), revision: try row.revision(1))
        }
        guard let head else { throw StorageError.unreadable }
        return head
    }
}
