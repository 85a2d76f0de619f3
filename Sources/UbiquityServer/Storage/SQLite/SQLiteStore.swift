// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// A store's number and state. `id` is nil until it is stored.
///
/// The state is a row among the store's records, under the empty key, which no record has. It is
/// beside them so that a push to a small store writes one page. Its revision is the store's, and its
/// time is the newest one. The rest is in the value, see ``StoreHead``.
///
/// Each run of the server that writes to the store begins a span. The newest are in the head, which
/// every push writes; when they become many, all but the last become rows of `span`.
struct SQLiteStore: Sendable {
    var id: Int64?
    var state: StoreState { didSet { isStored = false } }
    /// The newest versions of its history, which are in the head, too.
    var recent = VersionPack() { didSet { isStored = false } }
    private var isStored: Bool
    /// The number of spans that are rows.
    private var spanRows: Int

    /// A store that is not stored yet.
    init() { (state, isStored, spanRows) = (StoreState(), false, 0) }

    private init(_ id: Int64, _ state: StoreState, spanRows: Int, _ recent: VersionPack) {
        (self.id, self.state, self.recent) = (id, state, recent)
        (isStored, self.spanRows) = (true, spanRows)
    }

    /// Nil if there is no such store.
    static func fetch(_ store: StoreReference, _ db: Database) throws -> SQLiteStore? {
        let statement = try RawStatement(
            "SELECT id FROM store WHERE account = ? AND identifier = ?", db)
        statement.bind(text: store.account.string, at: 1)
        statement.bind(text: store.identifier.string, at: 2)
        var found: Int64?
        try statement.run { found = try $0.integer(0) }
        guard let id = found else { return nil }
        var (state, spanRows, recent) = try head(of: id, db)
        if spanRows > 0 {
            state.lineage = Lineage(
                spans: try spans(id, db) + state.lineage.spans, revision: state.lineage.revision,
                compactedRevision: state.lineage.compactedRevision)
        }
        return SQLiteStore(id, state, spanRows: spanRows, recent)
    }

    /// The spans that are rows.
    private static func spans(_ id: Int64, _ db: Database) throws -> [Lineage.Span] {
        let statement = try RawStatement(
            "SELECT first_revision, epoch FROM span WHERE store = ? ORDER BY first_revision", db)
        statement.bind(id, at: 1)
        var spans: [Lineage.Span] = []
        try statement.run { row in
            spans.append(Lineage.Span(firstRevision: try row.revision(0), epoch: try row.bits(1)))
        }
        return spans
    }

    /// Never reuses the number of a store whose records are still to be removed.
    /// - Returns: The number of the new store.
    static func insert(_ store: StoreReference, _ db: Database) throws -> Int64 {
        let statement = try db.cachedStatement(
            sql: "INSERT INTO store (id, account, identifier) SELECT \(nextID), ?, ? FROM \(ids)")
        try statement.execute(arguments: [store.account.string, store.identifier.string])
        return db.lastInsertedRowID
    }

    private static let nextID = "coalesce(max(id), 0) + 1"
    private static let ids =
        "(SELECT max(id) AS id FROM store UNION ALL SELECT max(store) FROM erased)"

    /// Gives the store another number, under which it has no records and no history. What it had under
    /// the old one is removed as that of an erased account is.
    /// - Parameter keepsFolded: Whether it keeps the increments of folded counts.
    mutating func begin(_ state: StoreState, keepsFolded: Bool, _ db: Database) throws {
        guard let old = id,
            let new = try Int64.fetchOne(db, sql: "SELECT \(Self.nextID) FROM \(Self.ids)")
        else { return }
        let moved = ["span", "passed"] + (keepsFolded ? ["folded"] : [])
        for table in moved {
            try db.execute(
                sql: "UPDATE \(table) SET store = ? WHERE store = ?", arguments: [new, old])
        }
        try db.execute(sql: "UPDATE store SET id = ? WHERE id = ?", arguments: [new, old])
        try db.execute(sql: "INSERT INTO erased (store) VALUES (?)", arguments: [old])
        try db.execute(sql: "INSERT OR IGNORE INTO chore (name) VALUES ('scrub')")
        (id, recent, self.state) = (new, VersionPack(), state)
        try update(db)
    }

    /// The approximate size in memory of what it refers to.
    var bytes: Int {
        64 * state.accepted.times.count + 16 * state.lineage.spans.count + recent.bytes.count
    }

    /// Stores the state. Does nothing if it is stored.
    mutating func update(_ db: Database) throws {
        guard let id, !isStored else { return }
        let spans = state.lineage.spans
        if spans.count - spanRows > StoreHead.spansMax {
            let statement = try RawStatement(
                "INSERT INTO span (store, first_revision, epoch) VALUES (?, ?, ?)", db)
            for span in spans[spanRows..<(spans.count - 1)] {
                statement.bind(id, at: 1)
                statement.bind(span.firstRevision, at: 2)
                statement.bind(span.epoch, at: 3)
                try statement.run()
            }
            spanRows = spans.count - 1
        }
        let value = StoreHead.value(state, spanRows: spanRows)
        if value.count + recent.bytes.count > StoreHead.bytesMax {
            try SQLiteVersion.settle(&self, db)
        }
        try Self.write(state, value + recent.bytes, of: id, db)
        isStored = true
    }

    private static func write(
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
    static func head(
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
