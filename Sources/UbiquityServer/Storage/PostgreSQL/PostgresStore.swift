// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// A store's row, and the rows of its older spans.
///
/// The newest spans are in the head, which every push writes; when they become many, all but the
/// last become rows of `span`.
struct PostgresStore: Sendable {
    let reference: StoreReference
    /// The number that its records have.
    private(set) var number: Int64
    var state: StoreState
    /// The revision in its row.
    let storedRevision: Int64
    /// The number of spans that are rows.
    private var spanRows: Int

    /// The stored revision, for the watch on the database's history.
    var storedPosition: HistoryWatch.Revision {
        HistoryWatch.Revision(store: number, revision: storedRevision)
    }

    // MARK: - Reading

    /// The statements that read stores, in this order: their rows, and their older spans.
    /// - Parameters:
    ///   - stores: Sorted, if they are to be locked.
    ///   - isLocking: Whether to lock the rows for writing, in this order. The spans are of a later
    ///     moment then, when nobody else can change them.
    static func reading(_ stores: [StoreReference], isLocking: Bool) -> [SQLStatement] {
        let names = names(of: stores)
        return [
            SQLStatement(isLocking ? rows("FOR UPDATE") : rows("OFFSET 0"), names),
            SQLStatement(Self.spans, names),
        ]
    }

    /// The accounts and identifiers, as two parameters.
    static func names(of stores: [StoreReference]) -> [SQLValue] {
        [.texts(stores.map(\.account.string)), .texts(stores.map(\.identifier.string))]
    }

    private static let asked =
        "unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (account, identifier, place)"

    /// Joins the numbers of stores, `s`, with their names, `w`. `OFFSET 0`, here and elsewhere, makes
    /// sure that each row is looked up by its key: a table that was small when the statement was
    /// planned may have grown.
    static let found = """
        CROSS JOIN LATERAL (SELECT number FROM ubiquity.store
            WHERE account = w.account AND identifier = w.identifier OFFSET 0) AS s
        """

    /// A lookup for each store, in the order of the parameters.
    private static func rows(_ clause: String) -> String {
        """
        SELECT w.place, s.number, s.revision, s.newest, s.head FROM \(asked)
        CROSS JOIN LATERAL (SELECT number, revision, newest, head FROM ubiquity.store
            WHERE account = w.account AND identifier = w.identifier \(clause)) AS s
        """
    }

    private static let spans = """
        SELECT w.place, p.first_revision, p.epoch FROM \(asked) \(found)
        CROSS JOIN LATERAL (SELECT first_revision, epoch FROM ubiquity.span
            WHERE account = w.account AND store = s.number ORDER BY first_revision) AS p
        """

    /// The stores that exist, from the results of ``reading(_:isLocking:)``. Those that cannot be
    /// read are failures.
    static func read(
        _ stores: [StoreReference], from results: ArraySlice<PostgresResult>
    ) throws(StorageError) -> [StoreReference: Result<PostgresStore, StorageError>] {
        // In the order of their revisions.
        var spans: [Int: [Lineage.Span]] = [:]
        for row in results[results.startIndex + 1].rows {
            spans[try row.count(0) - 1, default: []].append(
                Lineage.Span(firstRevision: try row.revision(1), epoch: try row.bits(2)))
        }
        var found: [StoreReference: Result<PostgresStore, StorageError>] = [:]
        for row in results[results.startIndex].rows {
            let place = try row.count(0) - 1
            let older = spans[place] ?? []
            found[stores[place]] = Result { () throws(StorageError) in
                try PostgresStore(stores[place], row, older)
            }
        }
        return found
    }

    private init(
        _ reference: StoreReference, _ row: PostgresRow, _ older: [Lineage.Span]
    ) throws(StorageError) {
        self.reference = reference
        number = try row.integer(1)
        storedRevision = try row.revision(2)
        let head = try row.bytes(4)
        guard !head.isEmpty else {
            // Just made.
            (state, spanRows) = (StoreState(), 0)
            return
        }
        let recent: VersionPack
        (state, spanRows, recent) = try StoreHead.state(
            head, newest: try row.timestamp(3), revision: storedRevision)
        guard spanRows == older.count, recent.isEmpty else { throw .unreadable }
        let lineage = state.lineage
        state.lineage = Lineage(
            spans: older + lineage.spans, revision: lineage.revision,
            compactedRevision: lineage.compactedRevision)
    }

    // MARK: - Writing

    /// The statements that store the states of locked stores. They fail if a row is not as it was
    /// read, so that a commit that was already sent fails too.
    static func updating(_ stores: [PostgresStore]) -> [SQLStatement] {
        guard !stores.isEmpty else { return [] }
        var stores = stores
        let spans = stores.indices.flatMap { index in
            stores[index].moveSpans().map { (stores[index], $0) }
        }
        var statements = [
            SQLStatement(
                update,
                names(of: stores.map(\.reference)) + [
                    .integers(stores.map(\.number)), .integers(stores.map(\.storedRevision)),
                    .integers(stores.map(\.state.lineage.revision)),
                    .integers(stores.map { Int64(bitPattern: $0.state.newest.rawValue) }),
                    .blobs(stores.map { Data(StoreHead.value($0.state, spanRows: $0.spanRows)) }),
                ])
        ]
        if !spans.isEmpty {
            statements.append(
                SQLStatement(
                    """
                    INSERT INTO ubiquity.span (account, store, first_revision, epoch)
                    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
                    """, .texts(spans.map(\.0.reference.account.string)),
                    .integers(spans.map(\.0.number)), .integers(spans.map(\.1.firstRevision)),
                    .integers(spans.map { Int64(bitPattern: $0.1.epoch) })))
        }
        return statements
    }

    /// Gives a locked store another number, under which it has no records and no history. What it had
    /// under the old one is removed as that of an erased account is.
    /// - Parameter keepsFolded: Whether it keeps the increments of folded counts.
    /// - Returns: The statements that do it, and store the state.
    mutating func begin(_ state: StoreState, keepsFolded: Bool) -> [SQLStatement] {
        self.state = state
        var statements = Self.updating([self])
        let new = Int64.random(in: 1 ... .max)
        let numbers: [SQLValue] = [
            .integer(new), .text(reference.account.string), .integer(number),
        ]
        for table in ["span", "passed"] + (keepsFolded ? ["folded"] : []) {
            statements.append(
                SQLStatement(
                    "UPDATE ubiquity.\(table) SET store = $1 WHERE account = $2 AND store = $3",
                    numbers))
        }
        statements += [
            SQLStatement(
                "UPDATE ubiquity.store SET number = $1 WHERE account = $2 AND number = $3", numbers),
            SQLStatement(
                "INSERT INTO ubiquity.erased (account, store) VALUES ($1, $2)",
                Array(numbers.dropFirst())),
        ]
        number = new
        return statements
    }

    /// A division by zero if not every row was found: a number of rows would be noticed too late.
    private static let update = """
        WITH n AS (
            SELECT * FROM unnest(
                $1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                $7::bytea[]) AS n (account, identifier, number, old, revision, newest, head)),
        u AS (
            UPDATE ubiquity.store s SET revision = n.revision, newest = n.newest, head = n.head
            FROM n WHERE s.account = n.account AND s.identifier = n.identifier
                AND s.number = n.number AND s.revision = n.old
            RETURNING 1)
        SELECT 1 / (count(*) = cardinality($1))::int FROM u
        """

    /// - Returns: The spans that become rows.
    private mutating func moveSpans() -> ArraySlice<Lineage.Span> {
        let spans = state.lineage.spans
        guard spans.count - spanRows > StoreHead.spansMax else { return [] }
        defer { spanRows = spans.count - 1 }
        return spans[spanRows..<(spans.count - 1)]
    }
}
