// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Stores an increment of a folded count as a row.
enum PostgresFoldedIncrement {
    /// The statements that read what the queries about a store's counts select.
    static func reading(
        _ queries: [FoldedQuery], of store: PostgresStore
    ) -> [SQLStatement] {
        let runs = queries.flatMap { query in query.runs.map { (query.key, $0) } }
        let marks = queries.compactMap { query in query.after.map { (query.key, $0) } }
        let of: [SQLValue] = [
            .text(store.reference.account.string), .integer(store.number),
        ]
        return [
            SQLStatement(
                """
                SELECT asked_key, \(FoldedIncrement.columns)
                FROM unnest($3::bytea[], $4::bytea[]) AS w (asked_key, asked_run)
                CROSS JOIN LATERAL (SELECT * FROM ubiquity.folded f
                    WHERE f.account = $1 AND f.store = $2 AND f.key = asked_key AND f.run = asked_run
                    OFFSET 0) AS f
                """,
                of + [
                    .blobs(runs.map { Data($0.0.bytes) }),
                    .blobs(runs.map { FoldedIncrement.data($0.1) }),
                ]),
            SQLStatement(
                """
                SELECT asked_key, \(FoldedIncrement.columns)
                FROM unnest($3::bytea[], $4::bigint[]) AS w (asked_key, after)
                CROSS JOIN LATERAL (SELECT * FROM ubiquity.folded f
                    WHERE f.account = $1 AND f.store = $2 AND f.key = asked_key AND f.mark > after
                        AND f.removed = 0 OFFSET 0) AS f
                """,
                of + [
                    .blobs(marks.map { Data($0.0.bytes) }), .integers(marks.map(\.1.rawValue)),
                ]),
        ]
    }

    /// - Throws: ``StorageError/unreadable``.
    static func increments(
        _ results: [PostgresResult]
    ) throws(StorageError) -> [FoldedIncrement] {
        var found: [FoldedIncrement] = []
        for row in results.lazy.flatMap(\.rows) {
            let bytes = try row.bytes(0)
            guard let key = try? bytes.withUnsafeBytes({ try Key(bytes: $0) }) else {
                throw .unreadable
            }
            found.append(try FoldedIncrement(row, from: 1, of: key))
        }
        return found
    }

    /// - Parameter increments: At most one of each store and ID.
    static func writing(
        _ increments: [(store: PostgresStore, increment: FoldedIncrement)], running: Int64
    ) -> SQLStatement {
        let items = increments.map(\.increment)
        let names: [SQLValue] = [
            .texts(increments.map(\.store.reference.account.string)),
            .integers(increments.map(\.store.number)),
            .blobs(items.map { Data($0.run.whole.bytes) }),
            .blobs(items.map { FoldedIncrement.data($0.run) }),
        ]
        let rows = items.map(\.numbers)
        let numbers = (0..<8).map { column in SQLValue.integers(rows.map { $0[column] }) }
        return SQLStatement(
            """
            INSERT INTO ubiquity.folded
                (account, store, key, \(FoldedIncrement.columns), committed)
            SELECT n.*, $13 FROM unnest(
                $1::text[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[],
                $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[],
                $12::bigint[]) AS n
            ON CONFLICT (account, store, key, run, times) DO UPDATE SET
                since = excluded.since, amount = excluded.amount, total = excluded.total,
                reals = excluded.reals, mark = excluded.mark, removed = excluded.removed,
                time = excluded.time, committed = excluded.committed
            """, names + numbers + [.integer(running)])
    }
}
