// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation
internal import UbiquityCore

/// The state of the database at one moment of a transaction.
struct PostgresMoment: Sendable {
    /// The database's milliseconds since 1970.
    var now: Int64
    /// See ``ServerStorage/addRunningTime(_:)``.
    var running: Int64
    var history: DatabaseHistory
    /// The key of the tags in epochs, see ``epoch(of:)``.
    private var key: SymmetricKey
    /// A part of the history's name, see `ubiquity database`.
    var incarnation: Int64
    /// The position up to which the log is on the disk; nil if the engine does not say.
    var log: Int64?

    /// The statement that reads it. Read in each transaction after its locks, because a session goes
    /// on when its server becomes the primary.
    /// - Parameter hasTimelines: Whether the engine has timelines, and permits to read them.
    static func reading(hasTimelines: Bool) -> SQLStatement {
        SQLStatement("SELECT \(hasTimelines ? usual : simple) \(tables)")
    }

    private static let simple = """
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint, r.milliseconds, m.compatible,
        m.incarnation
        """

    private static let primary = """
        (SELECT system_identifier FROM pg_control_system()),
        substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8),
        (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
        """

    private static let usual = """
        \(simple), \(primary),
        (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
        pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint
        """

    /// Reads which server answers. Fails if the engine has no timelines, or does not permit to read
    /// them.
    static let readingPrimary = SQLStatement("SELECT \(primary)")

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
        let primary = hasTimelines ? try Self.primary(row, from: 4) : nil
        let database = hasTimelines ? try row.bits(7) : 0
        history = DatabaseHistory(
            primary: primary, name: Self.name(primary, database, incarnation))
        let secrets = [UInt64(bitPattern: incarnation), primary?.system ?? 0, database]
        key = SymmetricKey(data: secrets.withUnsafeBytes { Data($0) })
    }

    /// - Parameter column: The first of the three.
    static func primary(
        _ row: PostgresRow, from column: Int
    ) throws(StorageError) -> DatabaseHistory.Primary {
        guard let timeline = UInt32(try row.text(column + 1), radix: 16) else { throw .unreadable }
        return DatabaseHistory.Primary(
            system: try row.bits(column), timeline: timeline, start: try row.bits(column + 2))
    }

    /// Changes when a standby becomes the primary, when the server restarts, as it must for a
    /// restored copy, and when an operator renews the incarnation.
    private static func name(
        _ primary: DatabaseHistory.Primary?, _ database: UInt64, _ incarnation: Int64
    ) -> UInt64 {
        var hash = StableHash("ubiquity", seed: UInt64(bitPattern: incarnation))
        guard let primary else { return hash.value }
        for part in [UInt64(primary.timeline), primary.system, primary.start, database] {
            hash.combine(part)
        }
        return hash.value
    }

    // MARK: - Epochs

    /// The epoch of a store in this history. Its tag is made with what a device never sees: the
    /// incarnation, the system's identifier and the database's number.
    func epoch(of store: StoreReference) -> UInt64 {
        Position.epoch(in: history) { tag($0, store) } ?? store.epoch(inRun: history.name)
    }

    /// The primary that a position names if that has replaced the one of this moment.
    func successor(namedBy position: Position, of store: StoreReference) -> DatabaseHistory.Primary?
    {
        guard var primary = history.primary,
            let timeline = position.timeline(tag: { tag($0, store) }), timeline > primary.timeline
        else { return nil }
        // Its start is not known.
        (primary.timeline, primary.start) = (timeline, 0)
        return primary
    }

    private func tag(_ number: UInt64, _ store: StoreReference) -> UInt32 {
        var hash = HMAC<SHA256>(key: key)
        hash.update(data: withUnsafeBytes(of: number.littleEndian) { Data($0) })
        hash.update(data: Data("\(store.account.string)/\(store.identifier)".utf8))
        return hash.finalize().prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }
}
