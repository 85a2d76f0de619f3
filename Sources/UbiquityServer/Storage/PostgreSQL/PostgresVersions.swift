// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The changes that a group of pushes makes to a store's history.
struct PostgresVersions {
    /// The entries whose row is copied, as it was before the group, and what replaced it.
    private var copied: [Key: (ended: RecordVersion.Moment, by: Stamp)] = [:]
    private var rows: [Key: [VersionRow]] = [:]
    private var unkept: Set<Key> = []

    /// Takes in what a push adds.
    /// - Parameter written: The records that the group has written before.
    mutating func take(_ push: CommittedPush, over written: [Key: HeldRecord]) {
        let change = push.history
        for (key, stamp) in change.replaced {
            guard let old = written[key] else {
                copied[key] = (change.moment, stamp)
                continue
            }
            rows[key, default: []].append(old.version(replaced: change.moment, by: stamp))
        }
        for write in change.passing {
            rows[write.record.key, default: []].append(VersionRow(write, at: change.moment))
        }
        guard !change.unkept.isEmpty else { return }
        copied = copied.filter { !change.unkept.contains($0.key.whole) }
        rows = rows.filter { !change.unkept.contains($0.key.whole) }
        unkept.formUnion(change.unkept)
        for key in change.unkept { rows[key] = [VersionRow(forgotten: key, before: change.moment)] }
    }

    // MARK: - Writing

    private static let columns =
        "account, store, key, ended, time, device, digest, value, revision, came, ended_ms, "
        + "by_time, by_device, outcome"

    /// The statements that store versions, in an order that matters, before the records are stored.
    static func writing(
        _ changes: [(store: PostgresStore, versions: PostgresVersions)]
    ) -> [SQLStatement] {
        let unkept = changes.flatMap { change in
            change.versions.unkept.sorted().flatMap(\.boundsOfEntries)
                .map { (store: change.store, bounds: $0) }
        }
        let copied = changes.flatMap { change in
            change.versions.copied.sorted { $0.key < $1.key }
                .map { (store: change.store, entry: $0) }
        }
        let rows = changes.flatMap { change in
            change.versions.rows.sorted { $0.key < $1.key }.flatMap { $0.value }
                .map { (store: change.store, row: $0) }
        }
        return [
            unkept.isEmpty ? nil : clearing(unkept), copied.isEmpty ? nil : copying(copied),
            rows.isEmpty ? nil : inserting(rows),
        ].compactMap(\.self)
    }

    private static func clearing(
        _ ranges: [(store: PostgresStore, bounds: (lower: [UInt8], upper: [UInt8]))]
    ) -> SQLStatement {
        SQLStatement(
            """
            DELETE FROM ubiquity.version v
            USING unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[])
                AS n (account, store, least, most)
            WHERE v.account = n.account AND v.store = n.store AND v.key >= n.least
                AND v.key < n.most
            """, .texts(ranges.map(\.store.reference.account.string)),
            .integers(ranges.map(\.store.number)), .blobs(ranges.map { Data($0.bounds.lower) }),
            .blobs(ranges.map { Data($0.bounds.upper) }))
    }

    /// A record that must not be kept becomes a note.
    private static func copying(
        _ entries: [(
            store: PostgresStore, entry: (key: Key, value: (ended: RecordVersion.Moment, by: Stamp))
        )]
    ) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO ubiquity.version (\(columns))
            SELECT n.account, n.store, n.key, n.ended, c.time, c.device, c.digest, c.value,
                c.revision, c.came, n.ended_ms, c.by_time, c.by_device, c.outcome
            FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[],
                $6::bigint[], $7::bigint[])
                AS n (account, store, key, ended, ended_ms, by_time, by_device)
            CROSS JOIN LATERAL (SELECT * FROM ubiquity.record r
                WHERE r.account = n.account AND r.store = n.store AND r.key = n.key OFFSET 0) AS r
            CROSS JOIN LATERAL (
                SELECT r.time, r.device, r.digest, r.value, r.revision, r.came, n.by_time,
                    n.by_device, 0 AS outcome WHERE r.came IS NOT NULL
                UNION ALL SELECT 0, 0, 0, NULL, 0, 0, 0, 0, \(StoredFate.forgotten.rawValue)
                    WHERE r.came IS NULL) AS c
            ON CONFLICT DO NOTHING
            """, .texts(entries.map(\.store.reference.account.string)),
            .integers(entries.map(\.store.number)),
            .blobs(entries.map { Data($0.entry.key.bytes) }),
            .integers(entries.map(\.entry.value.ended.revision)),
            .integers(entries.map(\.entry.value.ended.milliseconds)),
            .integers(entries.map { Int64(bitPattern: $0.entry.value.by.timestamp.rawValue) }),
            .integers(entries.map { Int64(bitPattern: $0.entry.value.by.device.rawValue) }))
    }

    static func inserting(
        _ rows: [(store: PostgresStore, row: VersionRow)]
    ) -> SQLStatement {
        func bits(_ numbers: [UInt64]) -> SQLValue {
            .integers(numbers.map { Int64(bitPattern: $0) })
        }
        return SQLStatement(
            """
            INSERT INTO ubiquity.version (\(columns))
            SELECT * FROM unnest(
                $1::text[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[],
                $7::bigint[], $8::bytea[], $9::bigint[], $10::bigint[], $11::bigint[],
                $12::bigint[], $13::bigint[], $14::bigint[]) AS n (\(columns))
            ON CONFLICT DO NOTHING
            """, .texts(rows.map(\.store.reference.account.string)),
            .integers(rows.map(\.store.number)), .blobs(rows.map(\.row.key)),
            .integers(rows.map(\.row.ended.revision)),
            bits(rows.map(\.row.stamp.timestamp.rawValue)),
            bits(rows.map(\.row.stamp.device.rawValue)), bits(rows.map(\.row.stamp.digest)),
            .blobs(rows.map(\.row.value)), .integers(rows.map(\.row.came.revision)),
            .integers(rows.map(\.row.came.milliseconds)),
            .integers(rows.map(\.row.ended.milliseconds)),
            bits(rows.map(\.row.by.timestamp.rawValue)),
            bits(rows.map(\.row.by.device.rawValue)), .integers(rows.map(\.row.fate.rawValue)))
    }

    // MARK: - Pruning

    /// Prunes what ``lines(of:key:)`` has given.
    /// - Returns: The statements that do it, and the number of rows to remove.
    static func prune(
        _ lines: [HistoryRule.Line], by rule: HistoryRule, in store: inout PostgresStore
    ) -> (statements: [SQLStatement], count: Int) {
        let pruning = rule.prune(lines, of: store.state.history)
        store.state.history = pruning.state
        var statements: [SQLStatement] = []
        if !pruning.removed.isEmpty {
            statements.append(
                SQLStatement(
                    """
                    DELETE FROM ubiquity.version v
                    USING unnest($3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
                        AS n (key, ended, time, device, digest)
                    WHERE v.account = $1 AND v.store = $2 AND v.key = n.key AND v.ended = n.ended
                        AND v.time = n.time AND v.device = n.device AND v.digest = n.digest
                    """,
                    [.text(store.reference.account.string), .integer(store.number)]
                        + names(of: pruning.removed.map { lines[$0] })))
        }
        let notes = pruning.forgotten.compactMap { line in
            VersionRow(note: line).map { (store: store, row: $0) }
        }
        if !notes.isEmpty { statements.append(inserting(notes)) }
        return (statements, pruning.removed.count)
    }

    /// The identifiers of versions in a store, as five parameters.
    private static func names(of lines: [HistoryRule.Line]) -> [SQLValue] {
        [
            .blobs(lines.map { Data($0.key.bytes) }),
            .integers(lines.map { $0.ended?.revision ?? 0 }),
            .integers(lines.map { Int64(bitPattern: $0.stamp.timestamp.rawValue) }),
            .integers(lines.map { Int64(bitPattern: $0.stamp.device.rawValue) }),
            .integers(lines.map { Int64(bitPattern: $0.stamp.digest) }),
        ]
    }

    // MARK: - Reading

    /// The statements that read the lines of a store, or of a key and its parts: of the versions and
    /// notes, and of the current records.
    static func lines(of store: StoreReference, key: Key?) -> [SQLStatement] {
        let (condition, arguments) = entries(of: store, key: key)
        let columns =
            "t.key, t.time, t.device, t.digest, t.revision, t.came, octet_length(t.value)"
        return [
            ("version", "\(columns), t.outcome, t.ended, t.ended_ms, t.by_time, t.by_device"),
            ("record", columns),
        ].map { table, columns in
            SQLStatement(
                """
                SELECT \(columns) FROM ubiquity.store s
                JOIN ubiquity.\(table) t ON t.account = s.account AND t.store = s.number
                \(condition)
                """, arguments)
        }
    }

    /// The condition for rows `t` of a store `s`, or those of a key and its parts.
    static func entries(
        of store: StoreReference, key: Key?
    ) -> (condition: String, arguments: [SQLValue]) {
        let name: [SQLValue] = [
            .text(store.account.string), .text(store.identifier.string),
        ]
        let condition = "WHERE s.account = $1 AND s.identifier = $2"
        guard let bounds = key?.boundsOfEntries else { return (condition, name) }
        return (
            condition + " AND (t.key >= $3 AND t.key < $4 OR t.key >= $5 AND t.key < $6)",
            name + bounds.flatMap { [.bytes(Data($0.lower)), .bytes(Data($0.upper))] }
        )
    }

    /// The statements that read the values of lines of a store: of the versions, and of the current
    /// records. Each row begins with the line's place.
    static func values(
        of lines: [HistoryRule.Line], in store: PostgresStore
    ) -> [SQLStatement] {
        let name: [SQLValue] = [
            .text(store.reference.account.string), .integer(store.number),
        ]
        return [
            SQLStatement(
                """
                SELECT n.place, v.value
                FROM unnest($3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
                    WITH ORDINALITY AS n (key, ended, time, device, digest, place)
                CROSS JOIN LATERAL (SELECT value FROM ubiquity.version v
                    WHERE v.account = $1 AND v.store = $2 AND v.key = n.key AND v.ended = n.ended
                        AND v.time = n.time AND v.device = n.device AND v.digest = n.digest
                    OFFSET 0) AS v
                """, name + names(of: lines)),
            SQLStatement(
                """
                SELECT n.place, r.value
                FROM unnest($3::bytea[], $4::bigint[]) WITH ORDINALITY AS n (key, ended, place)
                CROSS JOIN LATERAL (SELECT value FROM ubiquity.record r
                    WHERE r.account = $1 AND r.store = $2 AND r.key = n.key OFFSET 0) AS r
                WHERE n.ended = 0
                """, name + names(of: lines).prefix(2)),
        ]
    }
}
