// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

extension AccountCommand {
    struct Reset: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete all values of a sealed account, for a person who has lost every key.",
            discussion: """
                The values of all stores and their history are deleted on the server, at once, and \
                the account is not sealed any more. Its devices stay signed in and keep what they \
                have, but send nothing until they are signed out and in again. Ask the person first: \
                `ubiquity encryption reset`, on a device, does the same after seven days, unless \
                another device still has the key.

                JSON: {"account"}.
                """)

        @Argument(
            help: "The account's name.", completion: Completions.accounts, transform: notEmpty)
        var name: String
        @Flag(help: "Do not ask.") var yes = false
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            try Question.confirm(
                "Delete all values of the sealed account \(name) for good?", isGiven: yes,
                otherwise: "nothing was deleted")
            try await operation.withClient(about: .account(name)) { client in
                try await client.request(.delete, ["accounts", name, "sealing"]).done()
            }
            json.print(
                ["account": .string(name)],
                or: "Deleted all values of \(name). The account is not sealed any more.")
        }
    }
}
