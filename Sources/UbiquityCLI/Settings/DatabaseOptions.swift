// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquityCore
import UbiquityServer

/// The PostgreSQL database of servers that share one instead of using data folders.
struct DatabaseOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A PostgreSQL database in place of the data folder: postgresql://user@host/name.",
            discussion: """
                Prefer the environment variable \(Self.variable), because other users of the \
                machine can read a command's options. --data overrides it, and it overrides \
                \(DataOptions.variable). The password may also be in ~/.pgpass or PGPASSWORD. \
                Several hosts, separated by commas, are tried in turn.
                """, valueName: "url"), transform: notEmpty)
    var database: String?

    static let variable = "UBIQUITY_DATABASE"

    var given: [String] { UbiquityCLI.given(("--database", database != nil)) }

    /// The database of the option, or of the environment unless another place is given.
    /// - Parameter others: The given options of another place, such as a data folder.
    func settings(unless others: [String]) -> PostgresSettings? {
        if let database { return PostgresSettings(url: database) }
        return others.isEmpty ? Self.fromEnvironment : nil
    }

    /// For commands that only work on a database.
    func required() throws -> PostgresSettings {
        guard let settings = settings(unless: []) else {
            throw ValidationError("Give --database URL, or set \(Self.variable).")
        }
        return settings
    }

    static var fromEnvironment: PostgresSettings? {
        ProcessInfo.processInfo.environment[nonEmpty: variable].map(PostgresSettings.init(url:))
    }

    /// - Throws: `ValidationError` if a data folder is given too.
    func refuse(with data: DataOptions) throws {
        guard database != nil, data.data != nil else { return }
        throw ValidationError("Give --data or --database, not both.")
    }

    /// For commands that only work on a data folder.
    /// - Throws: `ValidationError` if a database is given.
    func refuseForBackups() throws {
        guard database == nil else { throw ValidationError(Self.backups) }
    }

    /// The same for the environment.
    /// - Throws: ``Failure``.
    func refuseForBackups(_ data: DataOptions) throws(Failure) {
        guard settings(unless: data.given) == nil else {
            throw Failure(.usage, "\(Self.backups) For a data folder, give --data.")
        }
    }

    private static let backups =
        "PostgreSQL backs up and restores a database by its own programs: pg_dump, pg_basebackup, "
        + "and archives of the write-ahead log. docs/OPERATING.md says how."
}

/// The part of a server in its database.
struct NodeOptions: ParsableArguments {
    @OptionGroup var database: DatabaseOptions

    @Option(
        help: ArgumentHelp(
            "The most connections to the database, plus one that listens for the other servers' "
                + "notifications. (default: 8)", valueName: "number"))
    var databaseConnections: Int?

    @Flag(
        help: """
            Only write when a synchronous standby of the database has it. Without one, the server \
            is not ready.
            """)
    var requireSynchronousStandby = false

    /// - Parameter data: The options for a data folder, which excludes a database.
    func check(_ data: DataOptions) throws {
        try database.refuse(with: data)
        guard databaseConnections.map({ (1...1_000).contains($0) }) ?? true else {
            throw ValidationError("--database-connections needs a number from 1 to 1000.")
        }
        guard database.settings(unless: data.given) == nil else { return }
        try refuse(
            given(
                ("--database-connections", databaseConnections != nil),
                ("--require-synchronous-standby", requireSynchronousStandby)),
            "without --database.")
    }

    /// Nil for a server with a data folder.
    func settings(_ data: DataOptions) -> PostgresSettings? {
        var settings = database.settings(unless: data.given)
        if let databaseConnections { settings?.connectionsMax = databaseConnections }
        settings?.requiresSynchronousStandby = requireSynchronousStandby
        return settings
    }
}
