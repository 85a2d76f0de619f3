// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Stores an increment of a folded count as a row.
enum PostgresFoldedIncrement {
    private static let columns =
        "f.run, f.since, f.times, f.amount, f.total, f.reals, f.mark, "
        + "f.removed, f.time"

    /// The statements that read what the queries about a store's counts select.
    static func reading(
        _ queries: [FoldedQuery], of store: PostgresStore
    ) -> [PostgresStatement] {
        let runs = queries.flatMap { query in query.runs.map { (query.key, $0) } }
        let marks = queries.compactMap { query in query.after.map { (query.key, $0) } }
        let of: [PostgresValue] = [
            .text(store.reference.account.string), .integer(store.number),
        ]
        return [
            PostgresStatement(
                """
                SELECT w.key, \(columns)
                FROM unnest($3::bytea[], $4::bytea[]) AS w (key, run)
                CROSS JOIN LATERAL (SELECT * FROM ubiquity.folded f
                    WHERE f.account = $1 AND f.store = $2 AND f.key = w.key AND f.run = w.run
                    OFFSET 0) AS f
                """,
                of + [
                    .blobs(runs.map { Data($0.0.bytes) }),
                    .blobs(runs.map { FoldedIncrement.data($0.1) }),
                ]),
            PostgresStatement(
                """
                SELECT w.key, \(columns)
                FROM unnest($3::bytea[], $4::bigint[]) AS w (key, mark)
                CROSS JOIN LATERAL (SELECT * FROM ubiquity.folded f
                    WHERE f.account = $1 AND f.store = $2 AND f.key = w.key AND f.mark > w.mark
                        AND NOT f.removed OFFSET 0) AS f
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
        for row in results.lazy.flatMap(\.rows) { found.append(try increment(row)) }
        return found
    }

    /// - Parameter increments: At most one of each store and ID.
    static func writing(
        _ increments: [(store: PostgresStore, increment: FoldedIncrement)], running: Int64
    ) -> PostgresStatement {
        let items = increments.map(\.increment)
        return PostgresStatement(
            """
            INSERT INTO ubiquity.folded (account, store, key, run, since, times, amount, total,
                reals, mark, removed, time, committed)
            SELECT n.*, $13 FROM unnest(
                $1::text[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[],
                $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::boolean[],
                $12::bigint[]) AS n
            ON CONFLICT (account, store, key, run, times) DO UPDATE SET
                since = excluded.since, amount = excluded.amount, total = excluded.total,
                reals = excluded.reals, mark = excluded.mark, removed = excluded.removed,
                time = excluded.time, committed = excluded.committed
            """,
            .texts(increments.map(\.store.reference.account.string)),
            .integers(increments.map(\.store.number)),
            .blobs(items.map { Data($0.run.whole.bytes) }),
            .blobs(items.map { FoldedIncrement.data($0.run) }),
            .integers(items.map(\.after)), .integers(items.map(\.times)),
            .integers(items.map { bits($0.amount) }), .integers(items.map { bits($0.total) }),
            .integers(items.map { (isReal($0.amount) ? 1 : 0) | (isReal($0.total) ? 2 : 0) }),
            .integers(items.map(\.mark.rawValue)), .booleans(items.map(\.isRemoved)),
            .integers(items.map { Int64(bitPattern: $0.timestamp.rawValue) }), .integer(running))
    }

    private static func bits(_ number: Number) -> Int64 {
        switch number.value {
        case .integer(let value): value
        case .real(let value): Int64(bitPattern: value.bitPattern)
        default: 0
        }
    }

    private static func isReal(_ number: Number) -> Bool {
        if case .real = number.value { true } else { false }
    }

    private static func number(_ bits: UInt64, isReal: Bool) -> Number {
        let value: PropertyListValue =
            isReal ? .real(Double(bitPattern: bits)) : .integer(Int64(bitPattern: bits))
        return Number(value) ?? .zero
    }

    private static func increment(_ row: PostgresRow) throws(StorageError) -> FoldedIncrement {
        let bytes = try row.bytes(0)
        guard let part = PartID(String(decoding: try row.bytes(1), as: UTF8.self)),
            let key = try? bytes.withUnsafeBytes({ try Key(bytes: $0) })
        else { throw .unreadable }
        let reals = try row.integer(6)
        return FoldedIncrement(
            run: key.part(part), after: try row.integer(2), times: try row.integer(3),
            amount: number(try row.bits(4), isReal: reals & 1 != 0),
            total: number(try row.bits(5), isReal: reals & 2 != 0),
            mark: FoldMark(rawValue: try row.integer(7)), isRemoved: try row.boolean(8),
            timestamp: try row.timestamp(9))
    }
}
