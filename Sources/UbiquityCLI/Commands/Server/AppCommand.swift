// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app",
        abstract: "Register the apps that may have stores on a server.",
        discussion: """
            Counts for a server that was started with `--apps registered`; any other takes all \
            apps. An app goes by the identifier of its store, such as TEAMID.com.example.app. For \
            who runs the server: as with `ubiquity account`.
            """,
        subcommands: [Register.self, List.self, Remove.self])

    struct Register: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let an app have stores.", discussion: "JSON: {\"identifier\"}.")

        @Argument(help: "The identifier of its store.", transform: notEmpty) var identifier: String
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let app = try AppCommand.check(identifier)
            try await operation.authority().register(app)
            if json.isOn { return Output.print(.app(app)) }
            Output.print("The app \(app) is registered.")
        }
    }

    struct List: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the registered apps.",
            discussion: """
                JSON: {"registeredOnly", "apps"}; "registeredOnly" is null where only the data \
                folder was asked, which does not know; "apps" lists {"identifier", "registered"}.
                """)

        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let apps = try await operation.authority().apps()
            if json.isOn { return Output.print(.apps(apps)) }
            if apps.isRegisteredOnly == false {
                Output.note("This server takes all apps, registered or not.")
            }
            if apps.apps.isEmpty { return Output.note("No app is registered.") }
            let rows = apps.apps.map { [$0.identifier, Phrase.time($0.registered)] }
            let table = Table(header: ["IDENTIFIER", "REGISTERED"], rows: rows)
            Output.print(TerminalText(lines: table.lines))
        }
    }

    struct Remove: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let an app have stores no more.",
            discussion: """
                Its stores stay on the server, and are there again when it is registered again.

                JSON: {"identifier"}.
                """)

        @Argument(help: "The identifier of its store.", transform: notEmpty) var identifier: String
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let app = try AppCommand.check(identifier)
            try await operation.authority().remove(app)
            if json.isOn { return Output.print(.app(app)) }
            Output.print("The app \(app) is not registered any more.")
        }
    }

    private static func check(_ identifier: String) throws(Failure) -> StoreIdentifier {
        do { return try StoreIdentifier(identifier) } catch { throw Failure(.badInput, "\(error)") }
    }
}

extension JSON {
    fileprivate static func app(_ app: StoreIdentifier) -> JSON {
        .object([("identifier", .string(app.string))])
    }

    fileprivate static func apps(_ apps: ServerApps) -> JSON {
        let list = apps.apps.map {
            JSON.object([
                ("identifier", .string($0.identifier)),
                ("registered", .string(Phrase.isoTime($0.registered))),
            ])
        }
        return .object([
            ("registeredOnly", apps.isRegisteredOnly.map(JSON.boolean) ?? .null),
            ("apps", .array(list)),
        ])
    }
}
