// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore
import UbiquityWire

struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app",
        abstract: "Register the apps that may have stores on a server.",
        discussion: """
            This only matters for a server that was started with `--apps registered`; other \
            servers accept all apps. An app is named by the identifier of its store, such as \
            TEAMID.com.example.app. For server operators, with the options of `ubiquity account`.
            """,
        subcommands: [Register.self, List.self, Remove.self])

    struct Register: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "Register an app.",
            discussion: """
                With a name, people see it beside the identifier, also on a server that accepts all \
                apps. Registering an app again with another name renames it.

                JSON: {"identifier", "name"}.
                """)

        @Argument(help: "The identifier of its store.", transform: notEmpty) var identifier: String
        @Option(help: "Its name for people.", transform: notEmpty) var name: String?
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let app = try StoreIdentifier(identifier)
            try await operation.withClient(about: .app(app)) {
                try await $0.register(app, name: name)
            }
            json.print(
                ["identifier": .string(app.string), "name": name.map(JSON.string) ?? .null],
                or: "Registered the app \(app)\(name.map { " as \($0)" } ?? "").")
        }
    }

    struct List: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the registered apps.",
            discussion: """
                JSON: {"registeredOnly", "apps"}; "apps" lists {"identifier", "name", "registered"}.
                """)

        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let list = try await operation.withClient { try await $0.apps() }
            if json.isOn { return Output.print(.apps(list)) }
            if !list.registeredOnly {
                Output.note("This server accepts all apps, registered or not.")
            }
            if list.apps.isEmpty { return Output.note("No apps are registered.") }
            let rows = list.apps.map {
                [$0.identifier, $0.name.isEmpty ? "-" : $0.name, Phrase.time($0.registered)]
            }
            Table(header: ["IDENTIFIER", "NAME", "REGISTERED"], rows: rows).print()
        }
    }

    struct Remove: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "Unregister an app.",
            discussion: """
                Its stores stay on the server, and can be accessed again once it is registered \
                again.

                JSON: {"identifier"}.
                """)

        @Argument(help: "The identifier of its store.", transform: notEmpty) var identifier: String
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let app = try StoreIdentifier(identifier)
            try await operation.withClient(about: .app(app)) { try await $0.remove(app) }
            json.print(.app(app), or: "Unregistered the app \(app).")
        }
    }
}

extension WireAppList.App {
    fileprivate var registered: Int64 { Int64(clamping: registeredMilliseconds) }
}

extension JSON {
    fileprivate static func app(_ app: StoreIdentifier) -> JSON {
        ["identifier": .string(app.string)]
    }

    fileprivate static func apps(_ list: WireAppList) -> JSON {
        let apps: [JSON] = list.apps.map {
            [
                "identifier": .string($0.identifier),
                "name": $0.name.isEmpty ? .null : .string($0.name),
                "registered": .string(Phrase.isoTime($0.registered)),
            ]
        }
        return ["registeredOnly": .boolean(list.registeredOnly), "apps": .array(apps)]
    }
}
