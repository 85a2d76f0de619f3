// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquityServer

struct DatabaseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "database",
        abstract: "Prepare, check or copy the PostgreSQL database of servers that share one.",
        discussion: """
            A server that is started with --database is one of any number of nodes on a PostgreSQL \
            database, version 15 or later. Accounts, devices, apps and the audit log are managed \
            by the same commands as with a data folder, given --server and --operator-credential \
            in place of --data; `ubiquity database credential` makes one.
            """,
        subcommands: [Migrate.self, Check.self, Copy.self, Credential.self])

    struct Migrate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create the tables, or bring them to this program's format.",
            discussion: """
                A server only creates tables in an empty database. Run this with the new program \
                before the first new server is started; servers of the previous version keep \
                running if the new format allows it. Running it again changes nothing.

                JSON: {"format", "formatBefore"}; the last is 0 for an empty database.
                """)

        @OptionGroup var database: DatabaseOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let settings = try database.required()
            let (before, format) = try await Progress.showing("Migrating") {
                try settings.migrate()
            }
            json.print(
                ["format": .integer(format), "formatBefore": .integer(before)],
                or: format == before
                    ? "The database has format \(format) already."
                    : "The database now has format \(format).")
        }
    }

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Read everything in the database, as a server would.",
            discussion: """
                Servers may be running. Shows the number of rows of each table and a digest of \
                their content: a restored dump has the same. The status is 1 if a row cannot be \
                used. `ubiquity doctor --database` checks the settings and the connection.

                JSON: {"format", "unreadable", "isCountRight", "tables"}; "tables" lists {"name", \
                "rows", "digest"}.
                """)

        @OptionGroup var database: DatabaseOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let settings = try database.required()
            let check = try await Progress.showing { note in
                try DatabaseCheck(settings) { note(ProgressStep("Reading", $0, .rows)) }
            }
            let isSound = check.unreadable == 0 && check.isCountRight
            if json.isOn { Output.print(check.json) } else { show(check) }
            if !isSound { Output.end(.no) }
        }

        private func show(_ check: DatabaseCheck) {
            let rows = check.tables.map { table in
                [table.name, Phrase.grouped(table.rows), String(table.text.prefix(16))]
            }
            Table(header: ["TABLE", "ROWS", "DIGEST"], rows: rows).print()
            if check.unreadable > 0 {
                Output.note(
                    "\(Phrase.counted(check.unreadable, "row")) cannot be used; restore a backup.")
            }
            if !check.isCountRight {
                Output.note(
                    "The stored number of accounts does not match the accounts in the database; was "
                        + "it changed by another program?")
            }
        }
    }

    struct Copy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy a server's data from a data folder into a database, or back.",
            discussion: """
                No server may be running on either. The target must have no data yet; the source \
                stays as it is. Everything is copied and then compared, and only then it counts: \
                an interrupted copy leaves nothing behind. Devices continue where they were, once \
                the new servers answer at the old address. The operator's credential stays valid: \
                keep its file. Do not start a server on the source again.

                JSON: {"accounts", "devices", "stores", "records", "tables"}, the last as for \
                `ubiquity database check`.
                """)

        @OptionGroup var data: DataOptions
        @OptionGroup var database: DatabaseOptions

        @Flag(help: "Copy from the database into the folder.")
        var back = false

        @OptionGroup var json: JSONOption

        func run() async throws {
            let settings = try database.required()
            let folder = try data.entered()
            let copy = try await Progress.showing { note in
                let progress = { (done: Int, all: Int) in
                    // Each row is copied, and read again in both databases.
                    note(ProgressStep("Copying and comparing", done / 3, of: all / 3, .rows))
                }
                return back
                    ? try DatabaseCopy(from: settings, to: folder, progress: progress)
                    : try DatabaseCopy(from: folder, to: settings, progress: progress)
            }
            guard !json.isOn else { return Output.print(copy.json) }
            let target = back ? "from the database to \(folder)" : "from \(folder) to the database"
            Output.print(
                "Copied \(Phrase.counted(copy.tables.rows(in: "account"), "account")) with "
                    + "\(Phrase.counted(copy.tables.rows(in: "device"), "device")), "
                    + "\(Phrase.counted(copy.tables.rows(in: "store"), "store")) and "
                    + "\(Phrase.counted(copy.tables.rows(in: "record"), "record")) \(target), and "
                    + "compared both.")
        }
    }
}

extension DatabaseCommand {
    struct Credential: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a new operator's credential.",
            discussion: """
                For the page at /operator, and for --operator-credential. Running servers accept \
                it within a few seconds, in place of the earlier one, if there was one. It is only \
                shown here: the database keeps a hash.

                JSON: {"operatorCredential"}.
                """)

        @OptionGroup var database: DatabaseOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let credential = try OperatorCredential.renew(in: database.required())
            json.print(["operatorCredential": .string(credential)], or: "\(credential)")
        }
    }
}

extension DatabaseCheck {
    fileprivate var json: JSON {
        [
            "format": .integer(format), "unreadable": .integer(unreadable),
            "isCountRight": .boolean(isCountRight), "tables": .tables(tables),
        ]
    }
}

extension DatabaseCopy {
    fileprivate var json: JSON {
        [
            "accounts": .integer(tables.rows(in: "account")),
            "devices": .integer(tables.rows(in: "device")),
            "stores": .integer(tables.rows(in: "store")),
            "records": .integer(tables.rows(in: "record")), "tables": .tables(tables),
        ]
    }
}

extension JSON {
    fileprivate static func tables(_ tables: [TableDigest]) -> JSON {
        .array(
            tables.map { table in
                [
                    "name": .string(table.name), "rows": .integer(table.rows),
                    "digest": .string(table.text),
                ]
            })
    }
}
