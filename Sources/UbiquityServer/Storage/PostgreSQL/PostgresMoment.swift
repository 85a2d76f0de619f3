// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The state of the database at one moment of a transaction.
struct PostgresMoment: Hashable, Sendable {
    /// The database's milliseconds since 1970.
    var now: Int64
    /// See ``ServerStorage/addRunningTime(_:)``.
    var running: Int64
    /// Names the database's history, see ``history(_:)``.
    var history: UInt64
    /// A part of the history's name, see `ubiquity database`.
    var incarnation: Int64
    /// The position up to which the log is on the disk; nil if the engine does not say.
    var log: Int64?

    /// The statement that reads it. Read in each transaction after its locks, because a session goes
    /// on when its server becomes the primary.
    /// - Parameter hasTimelines: Whether the engine has timelines, and permits to read them.
    static func reading(hasTimelines: Bool) -> PostgresStatement {
        PostgresStatement("SELECT \(hasTimelines ? usual : simple) \(tables)")
    }

    private static let simple = """
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint, r.milliseconds, m.compatible,
        m.incarnation
        """

    private static let usual = """
        \(simple), (SELECT system_identifier FROM pg_control_system()),
        substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8),
        (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
        (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
        pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint
        """

    private static let tables = "FROM ubiquity.running r, ubiquity.meta m"

    /// - Throws: ``StorageError``, also if the schema is too new for this program.
    init(_ result: PostgresResult) throws(StorageError) {
        guard let row = result.rows.first else { throw .unreadable }
        guard try row.integer(2) <= PostgresSchema.version else {
            throw .failed("the database was migrated by a newer program; use that one")
        }
        now = try row.time(0)
        running = try row.time(1)
        incarnation = try row.integer(3)
        let hasTimelines = row.columnCount > 4
        log = hasTimelines ? try row.integer(8) : nil
        history = try Self.history(row, hasTimelines: hasTimelines)
    }

    /// The name of the database's history. It changes when a standby becomes the primary, when the
    /// server restarts, as it must for a restored copy, and when an operator renews the incarnation.
    private static func history(
        _ row: PostgresRow, hasTimelines: Bool
    ) throws(StorageError) -> UInt64 {
        var hash = StableHash("ubiquity", seed: try row.bits(3))
        if hasTimelines {
            hash = StableHash(try row.text(5), seed: hash.value)
            for index in [4, 6, 7] { hash.combine(try row.bits(index)) }
        }
        return hash.value
    }
}
