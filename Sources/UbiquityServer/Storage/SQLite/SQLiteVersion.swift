// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// Stores the versions of a store's history: in its head, as rows, and as packs, which are rows of
/// several, see ``VersionPack``.
enum SQLiteVersion {
    private static let columns =
        "key, ended, time, device, digest, value, revision, came, ended_ms, by_time, by_device, "
        + "outcome"

    // MARK: - Writing

    /// Takes in what a push adds, and removes what must not be kept from the head. The rows are left to
    /// ``remove(_:of:_:)``.
    /// - Parameter held: The records of the push's keys from before it.
    static func write(
        _ push: CommittedPush, over held: [Key: HeldRecord], of store: inout SQLiteStore,
        _ db: Database
    ) throws {
        let change = push.history
        guard store.id != nil, !change.isEmpty else { return }
        if !change.unkept.isEmpty {
            // Reads what can fail before writing.
            let recent = try store.recent.rows()
            store.recent = VersionPack()
            for row in recent where !(whole(row.key).map(change.unkept.contains) ?? false) {
                _ = store.recent.append(row)
            }
        }
        for (key, stamp) in change.replaced {
            let version = held[key]?.version(replaced: change.moment, by: stamp)
            try add(version ?? VersionRow(forgotten: key, before: change.moment), to: &store, db)
        }
        for write in change.passing {
            try add(VersionRow(write, at: change.moment), to: &store, db)
        }
        for key in change.unkept {
            try add(VersionRow(forgotten: key, before: change.moment), to: &store, db)
        }
    }

    /// Long versions are rows at once, and so is the first of a store, by which
    /// `SQLiteServerStorage.storesWithHistory` finds it.
    private static func add(
        _ row: VersionRow, to store: inout SQLiteStore, _ db: Database
    ) throws {
        guard let id = store.id else { return }
        let isLong = row.key.count + (row.value?.count ?? 0) > longBytes
        if try isLong || (store.recent.isEmpty && !hasRows(id, db)) {
            try insert(row, of: id, db)
        } else {
            try add(row, to: &store.recent, of: id, db)
        }
    }

    /// Adds a version to a pack. A full one becomes a row.
    private static func add(
        _ row: VersionRow, to pack: inout VersionPack, of store: Int64, _ db: Database
    ) throws {
        guard !pack.append(row) else { return }
        try insert(VersionRow(pack), of: store, db)
        pack = VersionPack()
        _ = pack.append(row)
    }

    /// The bytes of keys and values with which a version has no place in the head.
    private static let longBytes = StoreHead.bytesMax / 4

    private static func hasRows(_ store: Int64, _ db: Database) throws -> Bool {
        let statement = try RawStatement("SELECT 1 FROM version WHERE store = ? LIMIT 1", db)
        statement.bind(store, at: 1)
        var hasRows = false
        try statement.run { _ in hasRows = true }
        return hasRows
    }

    /// Makes rows of the newest versions.
    static func settle(_ store: inout SQLiteStore, _ db: Database) throws {
        guard let id = store.id, !store.recent.isEmpty else { return }
        try insert(VersionRow(store.recent), of: id, db)
        store.recent = VersionPack()
    }

    /// Makes a row of each version of all stores. What is damaged stays as it is.
    static func unpackAll(_ db: Database) throws {
        let stores = try Row.fetchCursor(db, sql: "SELECT account, identifier FROM store")
        while let row = try stores.next() {
            do {
                let key = StoreReference(
                    account: try row.account(0), identifier: try row.store(1))
                guard var store = try SQLiteStore.fetch(key, db), let id = store.id else {
                    continue
                }
                try settle(&store, db)
                try store.update(db)
                try unpack(id, db)
            } catch StorageError.unreadable {}
        }
    }

    private static func unpack(_ store: Int64, _ db: Database) throws {
        var packs: [(row: RowName, versions: [VersionRow])] = []
        let statement = try RawStatement(
            """
            SELECT key, ended, time, device, digest, value FROM version
            WHERE store = ? AND key = x''
            """, db)
        statement.bind(store, at: 1)
        try statement.run { row in
            do {
                let versions = try VersionPack.rows(try row.bytes(5))
                packs.append((try RowName(row, from: 0), versions))
            } catch StorageError.unreadable {}
        }
        for pack in packs {
            try remove(pack.row, of: store, db)
            for row in pack.versions { try insert(row, of: store, db) }
        }
    }

    /// The key of an entry without its part; nil if these are not a key's bytes.
    private static func whole(_ bytes: some ContiguousBytes) -> Key? {
        bytes.withUnsafeBytes { try? Key(bytes: $0) }?.whole
    }

    /// The number of the last row, of any store. Those that come get greater ones.
    static func lastRow(_ db: Database) throws -> Int64 {
        var last: Int64 = 0
        try RawStatement("SELECT coalesce(max(rowid), 0) FROM version", db).run {
            last = try $0.integer(0)
        }
        return last
    }

    /// Removes the versions of keys and of their parts from a store's rows.
    /// - Parameter keys: Each with the number of the last row that may have something of it.
    /// - Returns: The bytes that were read.
    static func remove(
        _ keys: [Key: Int64], of store: inout SQLiteStore, _ db: Database
    ) throws -> Int {
        guard let id = store.id else { return 0 }
        let (found, bytes) = try rows(of: keys, in: id, db)
        for row in found {
            let statement = try RawStatement("DELETE FROM version WHERE rowid = ?", db)
            statement.bind(row.number, at: 1)
            try statement.run()
            try insertPacked(row.kept, of: id, db)
        }
        // See `add(_:to:_:)`.
        if try !hasRows(id, db) { try settle(&store, db) }
        return bytes
    }

    /// The cost of reading a row of the history, besides its key and a pack, in bytes.
    private static let rowBytes = 64

    /// The rows with versions of keys and of their parts, and what else is in them. A damaged pack is one
    /// of them. Reads the names of all of the store's in one pass, because they are in the order of their
    /// ends; damage in those of other keys is no matter.
    private static func rows(
        of keys: [Key: Int64], in store: Int64, _ db: Database
    ) throws -> (found: [(number: Int64, kept: [VersionRow])], bytes: Int) {
        var (found, bytes) = ([(number: Int64, kept: [VersionRow])](), 0)
        let statement = try RawStatement(
            """
            SELECT store, rowid, key, CASE WHEN key = x'' THEN value END
            FROM version WHERE store >= ? ORDER BY store, ended
            """, db)
        statement.bind(store, at: 1)
        try statement.runRows(while: { row in
            guard (try? row.integer(0)) == store else { return false }
            let number = try row.integer(1)
            guard let key = try? row.bytes(2) else { return true }
            let pack = key.isEmpty ? Array((try? row.bytes(3)) ?? Data()) : []
            bytes += rowBytes + key.count + pack.count
            func isMeant(_ bytes: some ContiguousBytes) -> Bool {
                whole(bytes).flatMap { keys[$0] }.map { number <= $0 } ?? false
            }
            guard key.isEmpty else {
                if isMeant(key) { found.append((number, [])) }
                return true
            }
            let versions = (try? VersionPack.versions(pack)) ?? []
            let kept = versions.filter { !isMeant(pack[$0.key]) }
            guard kept.count < versions.count || versions.isEmpty else { return true }
            found.append((number, kept.map { VersionRow($0, in: pack) }))
            return true
        })
        return (found, bytes)
    }

    /// The columns that identify a row among the store's.
    fileprivate struct RowName {
        var key: Data
        /// `ended`, `time`, `device` and `digest`.
        var numbers: [Int64]

        /// - Parameter column: The first of five.
        init(_ row: RawStatement, from column: Int) throws(StorageError) {
            key = try row.bytes(column)
            numbers = []
            for place in 1...4 { numbers.append(try row.integer(column + place)) }
        }

        init(_ line: HistoryRule.Line) {
            key = Data(line.key.bytes)
            numbers = [
                line.ended?.revision ?? 0,
                Int64(bitPattern: line.stamp.timestamp.rawValue),
                Int64(bitPattern: line.stamp.device.rawValue),
                Int64(bitPattern: line.stamp.digest),
            ]
        }

        static let condition =
            "store = ? AND key = ? AND ended = ? AND time = ? AND device = ? AND digest = ?"

        /// Binds the parameters of the condition.
        func bind(of store: Int64, to statement: RawStatement) {
            statement.bind(store, at: 1)
            statement.bind(key, at: 2)
            for (index, number) in zip(Int32(3)..., numbers) { statement.bind(number, at: index) }
        }
    }

    private static func remove(_ row: RowName, of store: Int64, _ db: Database) throws {
        let statement = try RawStatement("DELETE FROM version WHERE \(RowName.condition)", db)
        row.bind(of: store, to: statement)
        try statement.run()
    }

    /// Stores versions in rows of many.
    private static func insertPacked(
        _ rows: [VersionRow], of store: Int64, _ db: Database
    ) throws {
        var pack = VersionPack()
        for row in rows { try add(row, to: &pack, of: store, db) }
        if !pack.isEmpty { try insert(VersionRow(pack), of: store, db) }
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

    /// - Returns: The number of removed versions.
    /// - Throws: ``StorageError/unreadable``, before the first change.
    static func prune(
        _ rule: HistoryRule, in store: inout SQLiteStore, _ db: Database
    ) throws -> Int {
        guard let id = store.id else { return 0 }
        let found = try found(of: store, key: nil, db)
        let pruning = rule.prune(found.lines, of: store.state.history)
        var isRemoved = [Bool](repeating: false, count: found.lines.count)
        for place in pruning.removed {
            isRemoved[place] = true
            if found.packOf[place] == nil { try remove(RowName(found.lines[place]), of: id, db) }
        }
        for pack in found.packs {
            let kept = pack.places.filter { !isRemoved[$0] }
            guard kept.count < pack.places.count else { continue }
            guard let row = pack.row else {
                store.recent = VersionPack()
                for place in kept { _ = store.recent.append(pack.version(place)) }
                continue
            }
            try remove(row, of: id, db)
            try insertPacked(kept.map(pack.version), of: id, db)
        }
        for line in pruning.forgotten {
            guard let row = VersionRow(note: line) else { continue }
            try insert(row, of: id, db)
        }
        // See `add(_:to:_:)`.
        if try !hasRows(id, db) { try settle(&store, db) }
        store.state.history = pruning.state
        return pruning.removed.count
    }

    // MARK: - Reading

    /// Versions and notes.
    struct Found {
        fileprivate(set) var lines: [HistoryRule.Line] = []
        fileprivate var packs: [Pack] = []
        /// For each line, the number of its pack; nil if the version is a row.
        fileprivate var packOf: [Int?] = []

        fileprivate struct Pack {
            /// Nil for the versions in the head.
            var row: RowName?
            var bytes: [UInt8]
            /// The versions that were looked for.
            var versions: [VersionPack.Version]
            /// The first of their lines.
            var start: Int

            var places: Range<Int> { start..<(start + versions.count) }

            func version(_ place: Int) -> VersionRow {
                VersionRow(versions[place - start], in: bytes)
            }
        }

        fileprivate mutating func add(
            _ bytes: [UInt8], of row: RowName?, key: Key?
        ) throws(StorageError) {
            var versions = try VersionPack.versions(bytes)
            if let key { versions.removeAll { !key.includes(bytes: bytes[$0.key]) } }
            guard !versions.isEmpty else { return }
            packOf += Array(repeating: packs.count, count: versions.count)
            packs.append(Pack(row: row, bytes: bytes, versions: versions, start: lines.count))
            for version in versions { lines.append(try version.line(in: bytes)) }
        }

        fileprivate mutating func add(_ row: HistoryRule.Line) {
            lines.append(row)
            packOf.append(nil)
        }

        /// The version of a line, if it is in a pack.
        func packed(_ place: Int) -> VersionRow? {
            guard place < packOf.count, let pack = packOf[place] else { return nil }
            return packs[pack].version(place)
        }
    }

    /// The versions and notes of a store, or of a key and its parts.
    static func found(of store: SQLiteStore, key: Key?, _ db: Database) throws -> Found {
        guard let id = store.id else { return Found() }
        var found = Found()
        let columns = """
            \(lineColumns), outcome, ended, ended_ms, by_time, by_device,
            CASE WHEN key = x'' THEN value END, key, ended, time, device, digest
            """
        try rows(of: "version", in: "ended", columns, id, key, db) { row in
            if row.isEmptyBlob(1) {
                let bytes = Array(try row.bytes(13))
                return try found.add(bytes, of: RowName(row, from: 14), key: key)
            }
            found.add(try HistoryRule.Line(row, from: 1, isCurrent: false))
        }
        try found.add(store.recent.bytes, of: nil, key: key)
        return found
    }

    /// The current records of the same.
    static func currentLines(
        of store: Int64, key: Key?, _ db: Database
    ) throws -> [HistoryRule.Line] {
        var lines: [HistoryRule.Line] = []
        try rows(of: "record", in: "key", lineColumns, store, key, db) { row in
            guard !row.isEmptyBlob(1) else { return }
            lines.append(try HistoryRule.Line(row, from: 1, isCurrent: true))
        }
        return lines
    }

    private static let lineColumns = "key, time, device, digest, revision, came, length(value)"

    /// Reads the rows of a table, packs included. Long values are in pages of their own, which are not
    /// read. So the end of a store is found here: SQLite would compare all of each row with the end of
    /// a range.
    /// - Parameter columns: Read after the store.
    private static func rows(
        of table: String, in order: String, _ columns: String, _ store: Int64, _ key: Key?,
        _ db: Database, _ body: (RawStatement) throws -> Void
    ) throws {
        func run(_ condition: String, _ bind: (RawStatement) -> Void) throws {
            let statement = try RawStatement(
                """
                SELECT store, \(columns) FROM \(table)
                WHERE \(condition) ORDER BY store, \(order)
                """, db)
            bind(statement)
            try statement.runRows(while: { row in
                guard (try? row.integer(0)) == store else { return false }
                try body(row)
                return true
            })
        }
        guard let key else { return try run("store >= ?") { $0.bind(store, at: 1) } }
        let bounds = key.boundsOfEntries
        let ranges = bounds.map { _ in "key >= ? AND key < ?" }.joined(separator: " OR ")
        try run("store = ? AND (\(ranges) OR key = x'')") { statement in
            statement.bind(store, at: 1)
            let ends = bounds.flatMap { [$0.lower, $0.upper] }
            for (index, end) in zip(Int32(2)..., ends) { statement.bind(end, at: index) }
        }
    }

    /// The value of a version that is not in a pack, or of a current record.
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
            statement = try RawStatement(
                "SELECT value FROM version WHERE \(RowName.condition)", db)
            RowName(line).bind(of: store, to: statement)
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
                if row.isEmptyBlob(0) {
                    try VersionPack(try row.bytes(1)).check()
                } else {
                    let record = StoredRecord(
                        key: try row.bytes(0), stamp: Stamp(.zero, .unassigned),
                        value: row.isNull(1) ? nil : try row.bytes(1))
                    _ = try record.record()
                }
            } catch StorageError.unreadable { count += 1 }
        }
        return count
    }
}
