// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The tables in the database, all in the schema `ubiquity`.
///
/// A migration only adds, as long as it can: then the nodes of the version before go on beside the
/// new ones. `meta.compatible` is the oldest version whose nodes may go on. A migration that breaks
/// them raises it, and they refuse to work from then on.
enum PostgresSchema {
    /// The changes from each version to the next. The first one makes the tables of an empty
    /// database; the next one is to be added here, and its test to `FormatTests`.
    static let migrations = [version1]
    static var version: Int64 { Int64(migrations.count) }
    /// The oldest version that can work with this one.
    private static let compatible: Int64 = 1

    /// The state of a database.
    enum State: Hashable, Sendable {
        /// There is no schema, or an empty one.
        case empty
        /// The schema belongs to another program.
        case foreign
        case ours(version: Int64, compatible: Int64)

        /// - Throws: ``DatabaseProblem`` if this program cannot work with it.
        func check() throws(DatabaseProblem) {
            switch self {
            case .empty: throw .empty
            case .foreign: throw .foreign
            case .ours(let version, _) where version < PostgresSchema.version:
                throw .older(version: version, known: PostgresSchema.version)
            case .ours(let version, let compatible) where compatible > PostgresSchema.version:
                throw .newer(version: version, known: PostgresSchema.version)
            case .ours: break
            }
        }
    }

    static func state(_ transaction: PostgresTransaction) throws -> State {
        let found = try transaction.run(
            """
            SELECT count(*), count(*) FILTER (WHERE c.relname = 'meta' AND EXISTS (
                SELECT FROM pg_attribute a
                WHERE a.attrelid = c.oid AND a.attname = 'ubiquity_server'))
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'ubiquity'
            """
        ).rows[0]
        guard try found.integer(0) > 0 else { return .empty }
        guard try found.integer(1) > 0 else { return .foreign }
        let rows = try transaction.run("SELECT version, compatible FROM ubiquity.meta").rows
        guard let row = rows.first, try row.integer(0) > 0 else { return .foreign }
        return .ours(version: try row.integer(0), compatible: try row.integer(1))
    }

    /// Makes the schema, or migrates an older one. Of several callers at a time, the later ones fail
    /// or find the work done.
    /// - Parameter migrations: See ``migrations``.
    /// - Returns: The version that was found; 0 for an empty database.
    /// - Throws: Also ``DatabaseProblem``; nothing was changed then.
    static func migrate(
        _ transaction: PostgresTransaction, migrations: [[String]] = migrations
    ) throws -> Int64 {
        let version = Int64(migrations.count)
        let from: Int64
        switch try state(transaction) {
        case .empty: from = 0
        case .foreign: throw DatabaseProblem.foreign
        case .ours:
            // Waits for another migration.
            from = try transaction.run("SELECT version FROM ubiquity.meta FOR UPDATE").rows[0]
                .integer(0)
        }
        guard from <= version else {
            throw DatabaseProblem.newer(version: from, known: version)
        }
        guard from < version else { return from }
        // An administrator may have made it for a user who may not.
        let schemas = try transaction.run("SELECT FROM pg_namespace WHERE nspname = 'ubiquity'")
        if schemas.rows.isEmpty { try transaction.run("CREATE SCHEMA ubiquity") }
        let statements = migrations.dropFirst(Int(from)).joined()
        try transaction.run(statements.map { SQLStatement($0) })
        try transaction.run(
            "UPDATE ubiquity.meta SET version = $1, compatible = $2", .integer(version),
            .integer(compatible))
        if from == 0 { try transaction.run([renewingIncarnation()]) }
        return from
    }

    /// `record` has no index of what changes, so that a changed record stays on its page, and no
    /// index has to be told. (With one of the revisions, PostgreSQL took half as long again, and the
    /// table grew to twice its size.) What is new in a store is found among all of its records,
    /// without their long values.
    ///
    /// Every table with much in it begins its key with the account, by which an engine of several
    /// machines can distribute it. No foreign keys: nobody else writes here.
    ///
    /// ``SQLiteSchema/migrations`` says what the tables have in common with SQLite's. `store` in
    /// other tables is `store.number`, a random number that is never used again. `store.head` is a
    /// ``StoreHead``. Names that people gave are bytes, because a text cannot contain a zero byte. In
    /// `version`, every version is a row.
    private static let version1 = [
        """
        CREATE TABLE ubiquity.meta (
            ubiquity_server boolean PRIMARY KEY CHECK (ubiquity_server), version bigint NOT NULL,
            compatible bigint NOT NULL, incarnation bigint NOT NULL)
        """,
        "INSERT INTO ubiquity.meta VALUES (true, 0, 0, 0)",
        """
        CREATE TABLE ubiquity.running (
            one boolean PRIMARY KEY CHECK (one), milliseconds bigint NOT NULL)
        """,
        "INSERT INTO ubiquity.running VALUES (true, 0)",
        """
        CREATE TABLE ubiquity.directory (
            one boolean PRIMARY KEY CHECK (one), accounts bigint NOT NULL)
        """,
        "INSERT INTO ubiquity.directory VALUES (true, 0)",
        """
        CREATE TABLE ubiquity.lease (
            name text COLLATE "C" PRIMARY KEY, holder bigint NOT NULL, until bigint NOT NULL)
        """,
        """
        CREATE TABLE ubiquity.secret (name text COLLATE "C" PRIMARY KEY, hash bytea NOT NULL)
        """,
        """
        CREATE TABLE ubiquity.known_limit (name text COLLATE "C" PRIMARY KEY, value text NOT NULL)
        """,
        """
        CREATE TABLE ubiquity.app (
            identifier text COLLATE "C" PRIMARY KEY, registered bigint NOT NULL, name text)
        """,
        """
        CREATE TABLE ubiquity.audit (
            number bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, time bigint NOT NULL,
            deed text COLLATE "C" NOT NULL, account text COLLATE "C", device bigint,
            actor text COLLATE "C" NOT NULL, actor_device bigint, last bigint,
            count bigint NOT NULL DEFAULT 1, detail text)
        """,
        "CREATE INDEX audit_recent ON ubiquity.audit (deed, account)",
        """
        CREATE TABLE ubiquity.account (
            id text COLLATE "C" PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE,
            created bigint NOT NULL, limits text, sealing bytea, reset_at bigint)
        """,
        "CREATE INDEX account_reset ON ubiquity.account (reset_at) WHERE reset_at IS NOT NULL",
        """
        CREATE TABLE ubiquity.device (
            account text COLLATE "C" NOT NULL, id bigint NOT NULL, title bytea NOT NULL,
            credential bytea NOT NULL UNIQUE, created bigint NOT NULL, seen bigint NOT NULL,
            stores text, expires bigint, clock_ahead bigint, clock_measured bigint, version text,
            adder bigint, PRIMARY KEY (account, id)) WITH (fillfactor = 80)
        """,
        "CREATE INDEX device_expires ON ubiquity.device (expires) WHERE expires IS NOT NULL",
        """
        CREATE TABLE ubiquity.code (
            hash bytea PRIMARY KEY, account text COLLATE "C" NOT NULL, expires bigint NOT NULL,
            stores text, credential_milliseconds bigint, used bigint, credential_latest bigint,
            maker bigint)
        """,
        "CREATE INDEX code_account ON ubiquity.code (account)",
        "CREATE INDEX code_expires ON ubiquity.code (expires)",
        """
        CREATE TABLE ubiquity.identity (
            issuer bytea NOT NULL, subject bytea NOT NULL, account text COLLATE "C" NOT NULL,
            PRIMARY KEY (issuer, subject))
        """,
        "CREATE INDEX identity_account ON ubiquity.identity (account)",
        """
        CREATE TABLE ubiquity.store (
            account text COLLATE "C" NOT NULL, identifier text COLLATE "C" NOT NULL,
            number bigint NOT NULL, revision bigint NOT NULL, newest bigint NOT NULL,
            head bytea NOT NULL, PRIMARY KEY (account, identifier))
        WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05,
            autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0)
        """,
        """
        CREATE TABLE ubiquity.span (
            account text COLLATE "C" NOT NULL, store bigint NOT NULL,
            first_revision bigint NOT NULL, epoch bigint NOT NULL,
            PRIMARY KEY (account, store, first_revision))
        """,
        """
        CREATE TABLE ubiquity.record (
            account text COLLATE "C" NOT NULL, store bigint NOT NULL, key bytea NOT NULL,
            time bigint NOT NULL, device bigint NOT NULL, revision bigint NOT NULL,
            committed bigint NOT NULL, value bytea, digest bigint NOT NULL, came bigint DEFAULT 0,
            PRIMARY KEY (account, store, key))
        WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05,
            autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0)
        """,
        """
        CREATE TABLE ubiquity.folded (
            account text COLLATE "C" NOT NULL, store bigint NOT NULL, key bytea NOT NULL,
            run bytea NOT NULL, times bigint NOT NULL, since bigint NOT NULL,
            amount bigint NOT NULL, total bigint NOT NULL, reals bigint NOT NULL,
            mark bigint NOT NULL, removed bigint NOT NULL, time bigint NOT NULL,
            committed bigint NOT NULL, PRIMARY KEY (account, store, key, run, times))
        """,
        "CREATE INDEX folded_mark ON ubiquity.folded (account, store, mark)",
        """
        CREATE INDEX folded_shown ON ubiquity.folded (account, store, key, mark) WHERE removed = 0
        """,
        """
        CREATE TABLE ubiquity.passed (
            account text COLLATE "C" NOT NULL, store bigint NOT NULL, device bigint NOT NULL,
            revision bigint NOT NULL, PRIMARY KEY (account, store, device)) WITH (fillfactor = 80)
        """,
        """
        CREATE TABLE ubiquity.erased (
            account text COLLATE "C" NOT NULL, store bigint NOT NULL, PRIMARY KEY (account, store))
        """,
        """
        CREATE TABLE ubiquity.version (
            account text COLLATE "C" NOT NULL, store bigint NOT NULL, key bytea NOT NULL,
            ended bigint NOT NULL, time bigint NOT NULL, device bigint NOT NULL,
            digest bigint NOT NULL, value bytea, revision bigint NOT NULL, came bigint NOT NULL,
            ended_ms bigint NOT NULL, by_time bigint NOT NULL, by_device bigint NOT NULL,
            outcome bigint NOT NULL, PRIMARY KEY (account, store, key, ended, time, device, digest))
        """,
        """
        CREATE TABLE ubiquity.sign_in_request (
            hash bytea PRIMARY KEY, user_code bytea NOT NULL UNIQUE, title bytea NOT NULL,
            address text COLLATE "C" NOT NULL, expires bigint NOT NULL, stores text,
            credential_milliseconds bigint, credential_latest bigint, account text COLLATE "C",
            maker bigint, denied bigint, used bigint)
        """,
        "CREATE INDEX sign_in_request_account ON ubiquity.sign_in_request (account)",
        """
        CREATE TABLE ubiquity.handover (
            account text COLLATE "C" NOT NULL, name bytea NOT NULL, expires bigint NOT NULL,
            box bytea NOT NULL, confined bigint NOT NULL, PRIMARY KEY (account, name))
        """,
    ]

    /// Starts a new history: what was committed before is not a part of it.
    /// - Parameter old: The incarnation that is replaced; nil for any.
    static func renewingIncarnation(_ old: Int64? = nil) -> SQLStatement {
        SQLStatement(
            """
            UPDATE ubiquity.meta SET incarnation = $1
            WHERE $2::bigint IS NULL OR incarnation = $2
            """, .integer(.random(in: 0 ... .max)), .optional(old))
    }
}
