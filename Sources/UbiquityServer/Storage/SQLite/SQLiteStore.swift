// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// A store's number and state. `id` is nil until it is stored.
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
        var (state, spanRows, recent) = try SQLiteHead.fetch(of: id, db)
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
            sql: """
                INSERT INTO store (id, account, identifier) SELECT coalesce(max(id), 0) + 1, ?, ?
                FROM (SELECT max(id) AS id FROM store UNION ALL SELECT max(store) FROM erased)
                """)
        try statement.execute(arguments: [store.account.string, store.identifier.string])
        return db.lastInsertedRowID
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
        try SQLiteHead.write(state, value + recent.bytes, of: id, db)
        isStored = true
    }
}
