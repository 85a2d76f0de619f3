// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// Stores a version of a store's history as a row.
enum SQLiteVersion {
    private static let columns =
        "key, ended, time, device, digest, value, revision, came, ended_ms, by_time, by_device, "
        + "outcome"

    // MARK: - Writing

    /// Stores what a push adds. Call it before the push's records are stored.
    static func write(_ push: CommittedPush, of store: Int64, _ db: Database) throws {
        let change = push.history
        guard !change.isEmpty else { return }
        for (key, stamp) in change.replaced {
            try keep(key, by: stamp, change.moment, of: store, db)
        }
        for write in change.passing {
            try insert(VersionRow(write, at: change.moment), of: store, db)
        }
        try removeAll(of: change.unkept, in: store, db)
        for key in change.unkept {
            try insert(VersionRow(forgotten: key, before: change.moment), of: store, db)
        }
    }

    /// Removes all versions of keys and of their parts. Reads the names of all of the store's in one
    /// pass, because they are in the order of their ends; damage in those of other keys is no matter.
    private static func removeAll(of keys: Set<Key>, in store: Int64, _ db: Database) throws {
        guard !keys.isEmpty else { return }
        var found: [(key: Data, numbers: [Int64])] = []
        let statement = try RawStatement(
            """
            SELECT store, key, ended, time, device, digest FROM version
            WHERE store >= ? ORDER BY store, ended
            """, db)
        statement.bind(store, at: 1)
        try statement.runRows(while: { row in
            guard (try? row.integer(0)) == store else { return false }
            guard let bytes = try? row.bytes(1),
                let key = try? bytes.withUnsafeBytes({ try Key(bytes: $0) }),
                keys.contains(key.whole)
            else { return true }
            found.append((bytes, try (2...5).map(row.integer)))
            return true
        })
        for (key, numbers) in found {
            let statement = try RawStatement("DELETE FROM version WHERE \(isLine)", db)
            statement.bind(store, at: 1)
            statement.bind(key, at: 2)
            for (index, number) in zip(Int32(3)..., numbers) { statement.bind(number, at: index) }
            try statement.run()
        }
    }

    /// Copies a stored record, with its value as it is.
    private static func keep(
        _ key: Key, by stamp: Stamp, _ moment: RecordVersion.Moment, of store: Int64,
        _ db: Database
    ) throws {
        let statement = try RawStatement(
            """
            INSERT OR IGNORE INTO version (store, \(columns))
            SELECT store, key, ?3, time, device, digest, value, revision, came, ?4, ?5, ?6, 0
            FROM record WHERE store = ?1 AND key = ?2 AND came IS NOT NULL
            """, db)
        statement.bind(store, at: 1)
        statement.bind(key.bytes, at: 2)
        statement.bind(moment.revision, at: 3)
        statement.bind(moment.milliseconds, at: 4)
        statement.bind(stamp.timestamp.rawValue, at: 5)
        statement.bind(stamp.device.rawValue, at: 6)
        try statement.run()
        guard db.changesCount == 0 else { return }
        // It must not be kept.
        try insert(VersionRow(forgotten: key, before: moment), of: store, db)
    }

    private static func insert(_ row: VersionRow, of store: Int64, _ db: Database) throws {
        let statement = try RawStatement(
            """
            INSERT OR IGNORE INTO version (store, \(columns))
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, db)
        statement.bind(store, at: 1)
        statement.bind(row.key, at: 2)
        statement.bind(row.ended.revision, at: 3)
        statement.bind(row.stamp.timestamp.rawValue, at: 4)
        statement.bind(row.stamp.device.rawValue, at: 5)
        statement.bind(row.stamp.digest, at: 6)
        statement.bind(row.value, at: 7)
        statement.bind(row.came.revision, at: 8)
        statement.bind(row.came.milliseconds, at: 9)
        statement.bind(row.ended.milliseconds, at: 10)
        statement.bind(row.by.timestamp.rawValue, at: 11)
        statement.bind(row.by.device.rawValue, at: 12)
        statement.bind(row.fate.rawValue, at: 13)
        try statement.run()
    }

    /// - Returns: The number of removed rows.
    static func prune(
        _ rule: HistoryRule, in store: inout SQLiteStore, _ db: Database
    ) throws -> Int {
        guard let id = store.id else { return 0 }
        let lines = try lines(of: id, key: nil, db)
        let pruning = rule.prune(lines, of: store.state.history)
        for place in pruning.removed {
            let statement = try RawStatement("DELETE FROM version WHERE \(isLine)", db)
            bind(lines[place], of: id, to: statement)
            try statement.run()
        }
        for line in pruning.forgotten {
            guard let ended = line.ended else { continue }
            try insert(VersionRow(forgotten: line.key, before: ended), of: id, db)
        }
        if store.state.history != pruning.state { store.state.history = pruning.state }
        return pruning.removed.count
    }

    // MARK: - Reading

    private static let isLine =
        "store = ? AND key = ? AND ended = ? AND time = ? AND device = ? AND digest = ?"

    private static func bind(
        _ line: HistoryRule.Line, of store: Int64, to statement: RawStatement
    ) {
        statement.bind(store, at: 1)
        statement.bind(line.key.bytes, at: 2)
        statement.bind(line.ended?.revision ?? 0, at: 3)
        statement.bind(line.stamp.timestamp.rawValue, at: 4)
        statement.bind(line.stamp.device.rawValue, at: 5)
        statement.bind(line.stamp.digest, at: 6)
    }

    /// The versions and notes of a store, or of a key and its parts.
    static func lines(
        of store: Int64, key: Key?, _ db: Database
    ) throws -> [HistoryRule.Line] {
        let columns = "ended, ended_ms, by_time, by_device, outcome"
        return try rows(of: "version", in: "ended", columns, store, key, db) { row in
            guard let fate = StoredFate(rawValue: try row.integer(12)) else {
                throw StorageError.unreadable
            }
            return fate.fate(
                RecordVersion.Moment(revision: try row.revision(8), milliseconds: try row.time(9)),
                by: Stamp(try row.timestamp(10), try row.device(11)))
        }
    }

    /// The current records of the same.
    static func currentLines(
        of store: Int64, key: Key?, _ db: Database
    ) throws -> [HistoryRule.Line] {
        try rows(of: "record", in: "key", "came IS NULL", store, key, db) { row in
            .current(isKept: try row.integer(8) == 0)
        }
    }

    /// The lines of a table. Long values are in pages of their own, which are not read. So the end
    /// of a store is found here: SQLite would compare all of each row with the end of a range.
    private static func rows(
        of table: String, in order: String, _ others: String, _ store: Int64, _ key: Key?,
        _ db: Database, _ fate: (RawStatement) throws -> HistoryRule.Line.Fate
    ) throws -> [HistoryRule.Line] {
        var lines: [HistoryRule.Line] = []
        func run(_ condition: String, _ bind: (RawStatement) -> Void) throws {
            let statement = try RawStatement(
                """
                SELECT store, key, time, device, digest, revision, coalesce(came, 0),
                    length(value), \(others)
                FROM \(table) WHERE \(condition) ORDER BY store, \(order)
                """, db)
            bind(statement)
            try statement.runRows(while: { row in
                guard (try? row.integer(0)) == store else { return false }
                if !row.isEmptyBlob(1) { lines.append(try line(row, try fate(row))) }
                return true
            })
        }
        guard let key else {
            try run("store >= ?") { $0.bind(store, at: 1) }
            return lines
        }
        let bounds = key.boundsOfEntries
        let ranges = bounds.map { _ in "key >= ? AND key < ?" }.joined(separator: " OR ")
        try run("store = ? AND (\(ranges))") { statement in
            statement.bind(store, at: 1)
            let ends = bounds.flatMap { [$0.lower, $0.upper] }
            for (index, end) in zip(Int32(2)..., ends) { statement.bind(end, at: index) }
        }
        return lines
    }

    private static func line(
        _ row: RawStatement, _ fate: HistoryRule.Line.Fate
    ) throws -> HistoryRule.Line {
        let key = try row.bytes(1)
        return try HistoryRule.Line(
            keyBytes: key,
            stamp: Stamp(try row.timestamp(2), try row.device(3), digest: try row.bits(4)),
            came: RecordVersion.Moment(
                revision: try row.revision(5), milliseconds: try row.time(6)),
            fate: fate, valueBytes: row.isNull(7) ? nil : try row.count(7))
    }

    /// The value of a version or a current record.
    static func value(
        of line: HistoryRule.Line, in store: Int64, _ db: Database
    ) throws -> Data? {
        let statement: RawStatement
        if line.ended == nil {
            statement = try RawStatement(
                "SELECT value FROM record WHERE store = ? AND key = ?", db)
            statement.bind(store, at: 1)
            statement.bind(line.key.bytes, at: 2)
        } else {
            statement = try RawStatement("SELECT value FROM version WHERE \(isLine)", db)
            bind(line, of: store, to: statement)
        }
        var value: Data?
        try statement.run { row in value = row.isNull(0) ? nil : try row.bytes(0) }
        return value
    }

    /// The number of unreadable rows in all stores. Reads every version.
    static func countUnreadable(_ db: Database) throws -> Int {
        var count = 0
        try RawStatement("SELECT key, value, outcome FROM version", db).run { row in
            do {
                guard StoredFate(rawValue: try row.integer(2)) != nil else {
                    throw StorageError.unreadable
                }
                let record = StoredRecord(
                    key: try row.bytes(0), stamp: Stamp(.zero, .unassigned),
                    value: row.isNull(1) ? nil : try row.bytes(1))
                _ = try record.record()
            } catch StorageError.unreadable { count += 1 }
        }
        return count
    }
}
