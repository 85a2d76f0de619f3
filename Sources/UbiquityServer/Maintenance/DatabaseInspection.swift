// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A PostgreSQL database and the server it is on, as far as a node sees them. Examined without
/// changing anything, while nodes may be running. Blocks.
package struct DatabaseInspection: Hashable, Sendable {
    package enum Tables: Hashable, Sendable {
        /// The tables of this project, with their format and the newest one that this program
        /// knows.
        case ours(version: Int, known: Int)
        case none
        /// For the reason of a sentence.
        case unusable(String)
    }

    package var tables = Tables.none
    /// Such as 150020.
    package var version = 0
    package var versionText = ""
    package var encoding = "UTF8"
    package var isFlushing = true
    package var hasFullPages = true
    /// The setting's value for other programs; nodes do not accept less than `on`.
    package var synchronousCommit = "on"
    package var hasChecksums = true
    package var isVacuuming = true
    /// Whether the role may do everything, which nodes do not need.
    package var isSuperuser = false
    /// Whether the role may create the tables.
    package var mayCreate = true
    package var connectionsMax = 100
    /// The part of `connectionsMax` that is reserved for administrators.
    package var connectionsReserved = 3
    /// All connections at the moment, and those of nodes and commands.
    package var connections = 0
    package var ownConnections = 0
    /// The lead of the server's clock over this machine's, in milliseconds, and its uncertainty.
    package var clockAhead: Int64 = 0
    package var clockPrecision: Int64 = 0
    package var standbys = 0
    /// The setting `synchronous_standby_names`.
    package var synchronousStandbys = ""
    /// Whether what is sent can be read by others on the way.
    package var isOpenToEavesdroppers = false

    package init() {}

    /// - Throws: ``DatabaseProblem`` if there is no connection.
    package init(_ settings: PostgresSettings) throws(DatabaseProblem) {
        var settings = settings
        settings.connectionsMax = 1
        let pool = PostgresPool(settings)
        defer { pool.close() }
        do {
            try pool.with { connection in
                func run(_ statements: [SQLStatement]) throws -> [PostgresRow] {
                    try connection.run(statements, milliseconds: settings.answerMilliseconds)
                        .map { result in
                            guard let row = result.rows.first else { throw StorageError.unreadable }
                            return row
                        }
                }
                // Prepares the statement, so that only the answer's time is measured afterwards.
                _ = try run([Self.time])
                let before = Self.now
                let time = try run([Self.time])[0].integer(0)
                let after = Self.now
                clockAhead = time - (before + after) / 2
                clockPrecision = (after - before + 1) / 2
                let rows = try run([Self.settings, Self.activity])
                try read(rows[0], rows[1])
            }
        } catch let failure as PostgresFailure {
            throw DatabaseProblem(failure)
        } catch { throw .unusable("\(error)") }
        do { tables = try Self.tables(pool, settings) } catch { tables = .unusable("\(error)") }
    }

    private static func tables(_ pool: PostgresPool, _ settings: PostgresSettings) throws -> Tables
    {
        let storage = PostgresServerStorage(settings, pool: pool, hasTimelines: false)
        let state = try storage.reading { try PostgresSchema.state($0) }
        guard case .ours(let version, _) = state else {
            return state == .empty ? .none : .unusable("\(DatabaseProblem.foreign)")
        }
        do { try state.check() } catch {
            guard case .older = error else { return .unusable("\(error)") }
        }
        return .ours(version: Int(version), known: Int(PostgresSchema.version))
    }

    private static let time = SQLStatement(
        "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")

    private static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    private static let settings = SQLStatement(
        """
        SELECT current_setting('server_version_num')::bigint, current_setting('server_version'),
            current_setting('server_encoding'), current_setting('fsync')::boolean,
            current_setting('full_page_writes')::boolean,
            (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
            current_setting('data_checksums')::boolean, current_setting('autovacuum')::boolean,
            current_setting('max_connections')::bigint,
            current_setting('superuser_reserved_connections')::bigint,
            current_setting('synchronous_standby_names')
        """)

    /// Counts other roles' sessions too, whose kind is hidden from ordinary ones.
    private static let activity = SQLStatement(
        """
        SELECT (SELECT count(*) FROM pg_stat_activity
                WHERE datid IS NOT NULL AND usesysid IS NOT NULL),
            (SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name ~ '^ubiquity'
                    AND pid <> pg_backend_pid()),
            (SELECT count(*) FROM pg_stat_replication),
            coalesce((SELECT rolsuper FROM pg_roles WHERE rolname = current_user), false),
            has_database_privilege(current_database(), 'CREATE'),
            NOT coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)
                AND inet_server_addr() IS NOT NULL
                AND inet_server_addr() IS DISTINCT FROM inet_client_addr()
        """)

    private mutating func read(_ settings: PostgresRow, _ activity: PostgresRow) throws {
        version = try settings.count(0)
        versionText = try settings.text(1)
        encoding = try settings.text(2)
        isFlushing = try settings.boolean(3)
        hasFullPages = try settings.boolean(4)
        synchronousCommit = try settings.text(5)
        hasChecksums = try settings.boolean(6)
        isVacuuming = try settings.boolean(7)
        connectionsMax = try settings.count(8)
        connectionsReserved = try settings.count(9)
        synchronousStandbys = try settings.text(10)
        connections = try activity.count(0)
        ownConnections = try activity.count(1)
        standbys = try activity.count(2)
        isSuperuser = try activity.boolean(3)
        mayCreate = try activity.boolean(4)
        isOpenToEavesdroppers = try activity.boolean(5)
    }
}
