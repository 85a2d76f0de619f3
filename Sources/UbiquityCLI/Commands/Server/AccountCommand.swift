// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer
import UbiquityWire

struct AccountCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "Create, rename and delete accounts, and create sign-in codes for devices.",
        discussion: """
            For server operators, while the server is running: on its machine, through its data \
            folder (--data), or from anywhere with the server's address and the operator's \
            credential (--server, --operator-credential), which servers on a shared database need.
            """,
        subcommands: [
            Create.self, NewCode.self, List.self, Rename.self, Limits.self, Reset.self,
            Delete.self, Export.self,
        ])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create an account, and a code for its first device.",
            discussion: """
                With --sign-in, this device is the first: it is signed in with the code, and the \
                command prints what `ubiquity sign-in` does. With `sudo`, that is the device of the \
                user who calls it.

                JSON: {"account", "code", "expires", "signIn"}.
                """)

        @Argument(help: "The account's name.", transform: notEmpty) var name: String
        @OptionGroup var validity: CodeOptions
        @OptionGroup(title: "This device") var signIn: OwnSignInOptions
        @OptionGroup(title: "This device") var home: HomeOptions
        @OptionGroup(title: "The server") var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func validate() throws { try signIn.check(home) }

        func run() async throws {
            if signIn.isOn { try signIn.check(device: home, operation) }
            let code = try await operation.withClient(about: .account(name)) { client in
                try await client.createAccount(name: name, codeSeconds: validity.seconds)
            }
            SeenAccounts.remember([name], beside: true)
            try await show(code, for: name, operation, signIn, home, json)
        }
    }

    struct NewCode: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "code",
            abstract: "Create a code for another device of an account.",
            discussion: """
                With --store the device is confined: it can access these stores of the account \
                and nothing else, like an app's own credential. With --credential-days it is \
                signed out automatically.

                JSON: {"account", "code", "expires", "signIn"}.
                """)

        @Argument(
            help: "The account's name.", completion: Completions.accounts, transform: notEmpty)
        var name: String

        @Option(
            help: ArgumentHelp(
                "A store that the device may access; may be given several times. Default: all.",
                valueName: "identifier"), completion: Completions.stores, transform: notEmpty)
        var store: [String] = []

        @Option(
            help: ArgumentHelp(
                "Days after which the device is signed out. Default: never.", valueName: "number"))
        var credentialDays: Int?

        @OptionGroup var validity: CodeOptions
        @OptionGroup(title: "This device") var signIn: OwnSignInOptions
        @OptionGroup(title: "This device") var home: HomeOptions
        @OptionGroup(title: "The server") var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            if signIn.isOn { try signIn.check(device: home, operation) }
            let stores = try store.map { try StoreIdentifier($0).string }
            let code = try await operation.withClient(about: .account(name)) { client in
                try await client.newCode(
                    accountName: name, stores: stores,
                    credentialSeconds: credentialDays.map { Int64($0) * 86_400 },
                    codeSeconds: validity.seconds)
            }
            try await show(code, for: name, operation, signIn, home, json)
        }

        func validate() throws {
            try signIn.check(home)
            guard credentialDays.map({ (1...36_500).contains($0) }) ?? true else {
                throw ValidationError("--credential-days needs a number from 1 to 36500.")
            }
            guard store.count <= CredentialTerms.storesMax else {
                throw ValidationError(
                    "A device can be confined to at most \(CredentialTerms.storesMax) stores.")
            }
        }
    }

    struct List: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the accounts, with their devices.",
            discussion: """
                JSON: a list of {"name", "id", "created", "limits", "sealed", "devices"}; "sealed" \
                says whether only the account's devices can read its values; "devices" is like the \
                output of `ubiquity device list`.
                """)

        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let accounts = try await operation.withClient { try await $0.accounts() }
            SeenAccounts.remember(accounts.map(\.name))
            let rows = accounts.map { account in
                [
                    account.name.listed, account.id, account.generation > 0 ? "yes" : "no",
                    account.devices.map(\.name.listed).joined(separator: ", "),
                ]
            }
            json.print(
                accounts.map(JSON.account),
                or: Table(header: ["NAME", "ID", "SEALED", "DEVICES"], rows: rows),
                ifEmpty: "There are no accounts yet.")
        }
    }

    struct Rename: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "Rename an account.",
            discussion: """
                Its devices stay signed in.

                JSON: {"account"}.
                """)

        @Argument(
            help: "The account's name.", completion: Completions.accounts, transform: notEmpty)
        var name: String
        @Argument(help: "Its new name.", transform: notEmpty) var newName: String
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            try await operation.withClient(about: .account(name, newName: newName)) { client in
                try await client.rename(accountName: name, to: newName)
            }
            json.print(
                ["account": .string(newName)], or: "Renamed the account \(name) to \(newName).")
        }
    }
}

/// Prints a code, or signs this device in with it.
private func show(
    _ code: DeviceCode, for name: String, _ operation: OperatorOptions,
    _ signIn: OwnSignInOptions, _ home: HomeOptions, _ json: JSONOption
) async throws {
    let link = SignInLink(server: operation.address(for: code), code: code.code, pin: code.pin)
    if signIn.isOn {
        return try await signIn.run(
            await operation.ownLink(for: code) ?? link, home, json, operation.connection,
            again: "ubiquity account code \(Phrase.word(name))")
    }
    let command = Phrase.signIn(server: link.server, code: link.code)
    if json.isOn {
        return Output.print([
            "account": .string(name), "code": .string(code.code),
            "expires": .string(Phrase.isoTime(code.expiresMilliseconds)),
            "signIn": .string(command),
        ])
    }
    Output.print(
        """
        Code for a device of \(name): \(Output.styled(TerminalText(code.code), .bold))
        Valid until \(Phrase.time(code.expiresMilliseconds)), for one device. On that device:

            \(command)
        """ + (Phrase.reach(link.server).map { "\n\n\($0)" } ?? ""))
}

extension JSON {
    fileprivate static func account(_ account: WireAccount) -> JSON {
        [
            "name": .string(account.name), "id": .string(account.id),
            "created": .string(Phrase.isoTime(Int64(clamping: account.createdMilliseconds))),
            "limits": .limits(AccountLimits(ofServer: account.limits)),
            "sealed": .boolean(account.generation > 0),
            "devices": .array(account.devices.map { JSON.device(ServerDevice($0)) }),
        ]
    }
}
