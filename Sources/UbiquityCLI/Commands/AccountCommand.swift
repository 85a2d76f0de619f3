// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer

struct AccountCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "Make accounts, and codes by which devices sign in.",
        discussion: """
            For who runs the server: on its machine with the server's data folder (--data), or from \
            anywhere with its address and the operator's credential (--server, \
            --operator-credential).
            """,
        subcommands: [Create.self, Code.self, List.self, Export.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make an account, and a code for its first device.",
            discussion: "JSON: {\"account\", \"code\", \"expires\", \"signIn\"}.")

        @Argument(help: "What people call the account.") var name: String
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let code = try await operation.authority().createAccount(name)
            print(code, for: name, operation, json)
        }
    }

    struct Code: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a code for a further device of an account.",
            discussion: "JSON: {\"account\", \"code\", \"expires\", \"signIn\"}.")

        @Argument(help: "The account's name.") var name: String
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let code = try await operation.authority().newCode(name)
            print(code, for: name, operation, json)
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the accounts, with their devices.",
            discussion: """
                Works on the server's data folder only.

                JSON: a list of {"name", "id", "devices"}; "devices" lists {"id", "name"}.
                """)

        @OptionGroup var data: DataOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let administration = try Administration(dataFolder: data.folder)
            let accounts = try administration.accounts().map { account in
                (account, try administration.devices(accountName: account.name.string))
            }
            if json.isOn { return Output.print(.array(accounts.map(JSON.account))) }
            if accounts.isEmpty { return Output.note("There is no account yet.") }
            let rows = accounts.map { account, devices in
                [
                    account.name.string, account.id.string,
                    devices.map(\.title).joined(separator: ", "),
                ]
            }
            let table = Table(header: ["NAME", "ID", "DEVICES"], rows: rows)
            Output.print(table.lines.joined(separator: "\n"))
        }
    }
}

private func print(
    _ code: DeviceCode, for name: String, _ operation: OperatorOptions,
    _ json: JSONOption
) {
    let command = "ubiquity sign-in --server \(operation.serverForDevices) --code \(code.code)"
    if json.isOn {
        return Output.print(
            .object([
                ("account", .string(name)), ("code", .string(code.code)),
                ("expires", .string(Phrase.isoTime(code.expires))),
                ("signIn", .string(command)),
            ]))
    }
    Output.print(
        """
        Code for a device of \(name): \(Output.styled(code.code, .bold))
        Valid until \(Phrase.time(code.expires)), for one device. On that device:

            \(command)
        """)
}

extension JSON {
    fileprivate static func account(_ account: Account, _ devices: [Device]) -> JSON {
        .object([
            ("name", .string(account.name.string)), ("id", .string(account.id.string)),
            (
                "devices",
                .array(
                    devices.map {
                        .object([
                            ("id", .string($0.name.id.description)), ("name", .string($0.title)),
                        ])
                    })
            ),
        ])
    }
}
