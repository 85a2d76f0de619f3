// SPDX-License-Identifier: Apache-2.0

internal import Foundation

extension PostgresServerStorage {
    /// Opens a database for a node. Checks that the server has connections left, and makes the schema
    /// if the database is empty.
    static func openForServer(
        _ settings: PostgresSettings
    ) throws(ServerStartError) -> PostgresServerStorage {
        try open(settings, migrates: false, isServing: true)
    }

    /// Opens a database for a command.
    /// - Parameter migrates: Whether to make or migrate the schema if necessary.
    static func openForAdministration(
        _ settings: PostgresSettings, migrates: Bool = false
    ) throws(ServerStartError) -> PostgresServerStorage {
        try open(settings, migrates: migrates, isServing: false)
    }

    private static func open(
        _ settings: PostgresSettings, migrates: Bool, isServing: Bool
    ) throws(ServerStartError) -> PostgresServerStorage {
        let (pool, hasTimelines) = try newPool(settings)
        try first(pool) { connection in
            if isServing {
                try transact(connection, settings) { try checkConnections(settings, $0) }
            }
            var state = try transact(connection, settings, PostgresSchema.state)
            if migrates || isServing && state == .empty {
                try makeSchema(connection, settings)
                state = try transact(connection, settings, PostgresSchema.state)
            }
            try state.check()
        }
        return PostgresServerStorage(settings, pool: pool, hasTimelines: hasTimelines)
    }

    /// A pool whose connections lead to the newest primary, if the engine says which one that is.
    fileprivate static func newPool(
        _ settings: PostgresSettings
    ) throws(ServerStartError) -> (PostgresPool, hasTimelines: Bool) {
        let pool = PostgresPool(settings)
        let hasTimelines = try first(pool) { connection in
            try checkVersion(connection)
            return try findTimelines(connection, settings)
        }
        if hasTimelines { pool.preferNewest() }
        return (pool, hasTimelines)
    }

    /// Makes the schema, or migrates an older one.
    /// - Returns: The version that was found, 0 for an empty database.
    @discardableResult
    fileprivate static func makeSchema(
        _ connection: PostgresConnection, _ settings: PostgresSettings
    ) throws -> Int64 {
        do {
            return try transact(connection, settings) { try PostgresSchema.migrate($0) }
        } catch let failure as PostgresFailure
            where ["23505", "42P06", "42P07", "42710"].contains(failure.state)
        {
            // Another node was first.
            return try transact(connection, settings) { try PostgresSchema.migrate($0) }
        }
    }

    fileprivate static func checkVersion(_ connection: PostgresConnection) throws {
        guard connection.serverVersion >= 150_000 else {
            throw DatabaseProblem.serverTooOld(version: connection.serverVersionText)
        }
    }

    static func transact<T>(
        _ connection: PostgresConnection, _ settings: PostgresSettings,
        _ body: (PostgresTransaction) throws -> T
    ) throws -> T {
        try PostgresTransaction(
            connection, [beginWriting], milliseconds: settings.answerMilliseconds
        ).committing(body)
    }

    /// Whether the engine has timelines and permits to read them.
    private static func findTimelines(
        _ connection: PostgresConnection, _ settings: PostgresSettings
    ) throws -> Bool {
        do {
            _ = try connection.findPrimary(milliseconds: settings.answerMilliseconds)
            return true
        } catch let failure as PostgresFailure
            where ["42883", "42501", "0A000", "55000"].contains(failure.state)
        {
            // No such function, no permission, or not supported.
            return false
        }
    }

    /// Each node's listening session says how many connections the node may make. An ordinary role
    /// sees of other roles' sessions hardly more than their database, their user and this name.
    private static func checkConnections(
        _ settings: PostgresSettings, _ transaction: PostgresTransaction
    ) throws {
        let row = try transaction.run(
            """
            SELECT current_setting('max_connections')::bigint
                - current_setting('superuser_reserved_connections')::bigint,
                coalesce(sum(substring(application_name FROM $1)::bigint), 0)::bigint,
                count(*) FILTER (WHERE application_name !~ '^ubiquity')
            FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL
            """, .text(PostgresNews.sessionName(connections: "([0-9]{1,6})"))
        ).rows[0]
        let free = try Int(row.integer(0) - row.integer(1) - row.integer(2))
        let needed = settings.connectionsMax + 1
        guard free >= needed else {
            throw DatabaseProblem.tooFewConnections(needed: needed, free: max(0, free))
        }
    }

    /// Runs the body with the pool's first connection, and translates its errors.
    fileprivate static func first<T>(
        _ pool: PostgresPool, _ body: (PostgresConnection) throws -> T
    ) throws(ServerStartError) -> T {
        do { return try pool.with(body) } catch let problem as DatabaseProblem {
            throw .database(problem)
        } catch let failure as PostgresFailure {
            throw .database(DatabaseProblem(failure))
        } catch { throw .database(.unusable("\(error)")) }
    }
}

extension PostgresSettings {
    /// Creates the tables of the database, or brings them to this program's format, in one
    /// transaction. Blocks.
    /// - Returns: The format before, 0 for an empty database, and the format now.
    /// - Throws: ``ServerStartError``; nothing was changed then.
    package func migrate() throws(ServerStartError) -> (before: Int, format: Int) {
        let (pool, _) = try PostgresServerStorage.newPool(self)
        defer { pool.close() }
        let before = try PostgresServerStorage.first(pool) { connection in
            try PostgresServerStorage.makeSchema(connection, self)
        }
        return (Int(before), Int(PostgresSchema.version))
    }
}

extension DatabaseProblem {
    init(_ failure: PostgresFailure) {
        switch failure.state {
        case "08006": self.init(connecting: failure.message)
        case "25006": self = .readOnly
        case "42501": self = .notPermitted(failure.message)
        case "53300": self = .noConnectionLeft(failure.message)
        default: self = .unusable(failure.reason)
        }
    }

    /// libpq has no codes for the failure to connect. In another language than English, its own
    /// sentence is told.
    private init(connecting message: String) {
        func says(_ texts: String...) -> Bool { texts.contains { message.contains($0) } }
        self =
            if says(PostgresConnection.libraryMissing) {
                .noClientLibrary
            } else if says(PostgresConnection.addressUnreadable) {
                .addressUnreadable
            } else if says("password authentication failed", "no password supplied")
                || says("no pg_hba.conf entry") || says("role \"") && says("does not exist")
            {
                .passwordWrong
            } else if says("database \"") && says("does not exist") {
                .noDatabase
            } else if says("too many connections", "too many clients")
                || says("remaining connection slots")
            {
                // First: the others of several hosts are standbys.
                .noConnectionLeft(message)
            } else if says("session is read-only", "hot standby mode") {
                .readOnly
            } else {
                .unreachable(message)
            }
    }
}
