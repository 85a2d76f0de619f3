// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The records of a store that a group of pushes needs, as they are after each of its pushes.
struct PostgresRecords {
    /// As stored when the group began.
    private var stored: [Key: StoredRecord] = [:]
    /// The keys whose values are still to be read.
    private var late: Set<Key> = []
    /// As the group's pushes have left them.
    private var written: [Key: HeldRecord] = [:]
    private(set) var versions = PostgresVersions()
    /// The listed counts of each counted key.
    private var counts: [Key: Set<Key>] = [:]
    /// The keys, and the counted keys, with rows that cannot be read.
    private var unreadable: Set<Key> = []
    /// The queries about folded counts that have been answered, and the answers.
    private var queries: [Key: FoldedQuery] = [:]
    private var folded: [FoldedIncrement.ID: FoldedIncrement] = [:]
    private var changedFolds: Set<FoldedIncrement.ID> = []

    // MARK: - Reading

    /// A key, or the bounds of a key's counts, in a store.
    struct Request: Hashable {
        var store: StoreReference
        var key: Key
    }

    /// The most bytes of values that a group reads at once. It reads others for one push at a time.
    private static let valueBytesMax: Int64 = 32 << 20

    private static let columns = "r.time, r.device, r.digest"

    /// The statement that reads the records of keys.
    static func reading(_ requests: [Request]) -> SQLStatement {
        SQLStatement(
            """
            SELECT w.place, \(columns), r.value IS NULL, CASE WHEN
                sum(octet_length(r.value)) OVER (ORDER BY w.place) <= $4 THEN r.value END
            FROM unnest($1::text[], $2::text[], $3::bytea[])
                WITH ORDINALITY AS w (account, identifier, key, place)
            \(PostgresStore.found)
            CROSS JOIN LATERAL (SELECT * FROM ubiquity.record r
                WHERE r.account = w.account AND r.store = s.number AND r.key = w.key OFFSET 0) AS r
            """,
            PostgresStore.names(of: requests.map(\.store)) + [
                .blobs(requests.map { Data($0.key.bytes) }), .integer(valueBytesMax),
            ])
    }

    /// The statement that reads all counts of keys that are not deleted, and ``Key/partsOfFold``.
    static func readingCounts(_ requests: [Request]) -> SQLStatement {
        let bounds = requests.map(\.key.boundsOfCounts)
        let folds = (0..<2).map { part in
            SQLValue.blobs(requests.map { Data($0.key.partsOfFold[part].bytes) })
        }
        return SQLStatement(
            """
            SELECT w.place, \(columns), r.key, r.value
            FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[])
                WITH ORDINALITY AS w (account, identifier, least, most, fold, removal, place)
            \(PostgresStore.found)
            CROSS JOIN LATERAL (SELECT * FROM ubiquity.record r
                WHERE r.account = w.account AND r.store = s.number AND r.key >= w.least
                    AND r.key < w.most
                    AND (r.value IS NOT NULL OR r.key IN (w.fold, w.removal)) OFFSET 0) AS r
            """,
            PostgresStore.names(of: requests.map(\.store)) + [
                .blobs(bounds.map { Data($0.lower) }), .blobs(bounds.map { Data($0.upper) }),
            ] + folds)
    }

    /// Takes a row of ``reading(_:)``.
    mutating func take(_ row: PostgresRow, of key: Key) {
        do throws(StorageError) {
            let value = try row.bytesIfAny(5)
            if try !row.boolean(4), value == nil { late.insert(key) }
            stored[key] = StoredRecord(key: Data(key.bytes), stamp: try row.stamp(1), value: value)
        } catch { unreadable.insert(key) }
    }

    /// Takes a row of ``readingCounts(_:)``.
    mutating func take(_ row: PostgresRow, countOf counted: Key) {
        do throws(StorageError) {
            let record = StoredRecord(
                key: try row.bytes(4), stamp: try row.stamp(1),
                value: try row.bytesIfAny(5))
            let key = try record.record().key
            stored[key] = record
            late.remove(key)
            counts[counted, default: []].insert(key)
        } catch { unreadable.insert(counted.part(.fold)) }
    }

    /// Reads the values for a push that the group's first flight left out.
    mutating func readLate(
        _ push: Push, of store: PostgresStore, _ transaction: PostgresTransaction
    ) throws {
        let keys = Set(push.transactions.lazy.flatMap { $0.writes.lazy.map(\.key) })
            .intersection(late).sorted()
        guard !keys.isEmpty else { return }
        let rows = try transaction.run(
            """
            SELECT w.place, r.value FROM unnest($3::bytea[]) WITH ORDINALITY AS w (key, place)
            CROSS JOIN LATERAL (SELECT * FROM ubiquity.record r
                WHERE r.account = $1 AND r.store = $2 AND r.key = w.key OFFSET 0) AS r
            """, .text(store.reference.account.string), .integer(store.number),
            .blobs(keys.map { Data($0.bytes) })
        ).rows
        for row in rows { stored[keys[try row.count(0) - 1]]?.value = try row.bytes(1) }
    }

    /// Lets go of what ``readLate(_:of:_:)`` has read.
    mutating func forgetLate() { for key in late { stored[key]?.value = nil } }

    // MARK: - For each push

    /// - Throws: ``StorageError/unreadable``.
    func records(of push: Push) throws(StorageError) -> [Key: Record] {
        var records: [Key: Record] = [:]
        for write in push.transactions.lazy.flatMap(\.writes) where records[write.key] == nil {
            records[write.key] = try record(write.key)
        }
        return records
    }

    /// All counts of the keys that the push counts.
    /// - Throws: ``StorageError/unreadable``.
    func counts(of keys: Set<Key>) throws(StorageError) -> [Key: Record] {
        var records: [Key: Record] = [:]
        for counted in keys {
            guard !unreadable.contains(counted.part(.fold)) else { throw .unreadable }
            for key in counts[counted] ?? [] {
                guard let record = try record(key),
                    record.content != .deleted || counted.partsOfFold.contains(key)
                else { continue }
                records[key] = record
            }
        }
        return records
    }

    private func record(_ key: Key) throws(StorageError) -> Record? {
        if let written = written[key] { return written.record }
        guard !unreadable.contains(key) else { throw .unreadable }
        return try stored[key]?.record()
    }

    /// The queries whose answers are not known yet.
    func unanswered(_ asked: [FoldedQuery]) -> [FoldedQuery] {
        asked.filter { query in
            guard let known = queries[query.key], query.runs.isSubset(of: known.runs) else {
                return true
            }
            return query.after.map { after in known.after.map { $0 > after } ?? true } ?? false
        }
    }

    /// Takes the answers to queries. What the group has changed meanwhile is newer.
    mutating func take(_ increments: [FoldedIncrement], for asked: [FoldedQuery]) {
        for query in asked {
            var known = queries[query.key] ?? query
            known.runs.formUnion(query.runs)
            known.after = [known.after, query.after].compactMap { $0 }.min()
            queries[query.key] = known
        }
        for increment in increments where !changedFolds.contains(increment.id) {
            folded[increment.id] = increment
        }
    }

    func increments(_ queries: [FoldedQuery]) -> [FoldedIncrement] {
        guard !queries.isEmpty else { return [] }
        return folded.values.filter { increment in queries.contains { $0.matches(increment) } }
    }

    // MARK: - Writing

    /// Takes over the changes of a push.
    mutating func commit(_ push: CommittedPush) {
        versions.take(push, over: written)
        for record in push.writes {
            written[record.key] = HeldRecord(record, of: push)
            if record.key.isCount {
                counts[record.key.whole, default: []].insert(record.key)
            }
        }
        for increment in push.folded {
            folded[increment.id] = increment
            changedFolds.insert(increment.id)
        }
    }

    /// The changed records, in the order of their keys.
    var changes: [HeldRecord] {
        written.values.sorted { $0.record.key < $1.record.key }
    }

    var changedIncrements: [FoldedIncrement] {
        changedFolds.compactMap { folded[$0] }.sorted { ($0.run, $0.times) < ($1.run, $1.times) }
    }

    /// The statement that stores changed records: one row for each store and key. An unchanged value
    /// is not written again.
    static func writing(
        _ changes: [(store: PostgresStore, written: HeldRecord)], running: Int64
    ) -> SQLStatement {
        let records = changes.map { StoredRecord($0.written.record) }
        return SQLStatement(
            """
            INSERT INTO ubiquity.record AS r
                (account, store, key, time, device, revision, value, digest, came, committed)
            SELECT n.*, $10 FROM unnest(
                $1::text[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[],
                $7::bytea[], $8::bigint[], $9::bigint[]) AS n
            ON CONFLICT (account, store, key) DO UPDATE SET
                time = excluded.time, device = excluded.device, revision = excluded.revision,
                digest = excluded.digest, came = excluded.came, committed = excluded.committed,
                value = CASE WHEN r.value IS DISTINCT FROM excluded.value
                    THEN excluded.value ELSE r.value END
            """, .texts(changes.map(\.store.reference.account.string)),
            .integers(changes.map(\.store.number)), .blobs(records.map(\.key)),
            .integers(records.map { Int64(bitPattern: $0.stamp.timestamp.rawValue) }),
            .integers(records.map { Int64(bitPattern: $0.stamp.device.rawValue) }),
            .integers(changes.map(\.written.revision)), .blobs(records.map(\.value)),
            .integers(records.map { Int64(bitPattern: $0.stamp.digest) }),
            .integers(changes.map(\.written.came)), .integer(running))
    }
}
