// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

extension AccountCommand {
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete an account with all that is its, for good.",
            discussion: """
                With a NAME, for who runs the server. Without, it is the account that this device \
                is signed in to, and the device is signed out; its values stay on it unless --wipe \
                is given.

                The server keeps nothing of the account. What its file had is overwritten, by a server \
                that runs in slices, and the file is written anew when that disturbs nobody. Backups \
                that were made before are others' to delete. What other devices have already received \
                stays on them.

                JSON: {"account"}.
                """)

        @Argument(help: "The account's name.", transform: notEmpty) var name: String?
        @Flag(help: "Yes, delete it.") var yes = false
        @Flag(help: "Remove the account's values from this device too.") var wipe = false
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func validate() throws {
            guard name != nil else {
                return try refuse(
                    operation.given,
                    "without the account's NAME: the command would delete the account that this "
                        + "device is signed in to. Give the NAME.")
            }
            try refuse(
                given(("--wipe", wipe)) + home.given,
                "with a NAME, only for the account that this device is signed in to.")
            try operation.requireCredentialForServer()
        }

        func run() async throws {
            guard let name else { return try await eraseOwn() }
            try confirm(name)
            if try await !operation.authority().erase(account: name) {
                Output.note(
                    "What it had is not overwritten in the database's file yet: the server that runs on "
                        + "the folder is at it, and if none runs, the next one will be.")
            }
            report(name, "The account \(name) is deleted.")
        }

        private func eraseOwn() async throws {
            let own = try OwnAccount(home)
            try confirm("\(own.account.accountName) at \(own.account.server)")
            try await AccountClient.erase(own.account)
            _ = try own.home.endSignIn(wipes: wipe)
            report(
                own.account.accountName,
                "The account \(own.account.accountName) is deleted, and this device signed out. "
                    + (wipe ? "Its values were removed from here." : "The values stay here."))
        }

        private func confirm(_ account: String) throws(Failure) {
            guard yes else {
                throw Failure(
                    .usage,
                    "this deletes the account \(account) with all its values, for good; "
                        + "give --yes to do it")
            }
        }

        private func report(_ account: String, _ sentence: String) {
            if json.isOn {
                return Output.print(.object([("account", .string(account))]))
            }
            Output.print(TerminalText(sentence))
        }
    }
}
