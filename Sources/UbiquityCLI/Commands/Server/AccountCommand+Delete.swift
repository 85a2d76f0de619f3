// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

extension AccountCommand {
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete an account and everything in it, permanently.",
            discussion: """
                Shows how much would be lost, and asks. With a NAME, for server operators. Without \
                it, the account that this device is signed in to is deleted; the device is signed \
                out, and its values stay on it unless --wipe is given.

                The server keeps nothing of the account. It overwrites the account's data in the \
                database in slices, and rewrites the file when that delays nobody. PostgreSQL only \
                removes it: docs/OPERATING.md says what is left. Earlier backups have to be deleted separately. What other devices have \
                already received stays on them.

                JSON: {"account"}.
                """)

        @Argument(
            help: "The account's name.", completion: Completions.accounts, transform: notEmpty)
        var name: String?
        @Flag(help: "Do not ask.") var yes = false
        @Flag(help: "Remove the account's values from this device too.") var wipe = false
        @OptionGroup var operation: OperatorOptions
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func validate() throws {
            try operation.check(
                accountName: name, to: "delete", own: given(("--wipe", wipe)) + home.given)
        }

        func run() async throws {
            let name = try await operation.withAccount(
                self.name, home, about: { OperatorSubject.account($0) }
            ) { account in
                if !yes {
                    let place = account.own.map { " at \($0.server)" } ?? ""
                    // A server of version 0.2 or earlier does not say which stores an account has.
                    try confirm(
                        account.name + place, of: try await account.devices(),
                        try? await account.stores(), loss: wipe ? try home.open().loss : nil)
                }
                try await Progress.showing("Deleting \(account.name)") {
                    try await account.erase()
                }
                return account.name
            }
            var sentence = "Deleted the account \(name)"
            if self.name == nil {
                _ = try home.open().endSignIn(wipes: wipe)
                sentence += ", and signed this device out. "
                sentence += wipe ? "Its values were removed from here" : "The values stay here"
            }
            json.print(["account": .string(name)], or: "\(sentence).")
        }

        /// - Parameters:
        ///   - stores: Nil if they are not known.
        ///   - loss: What only this device has and is removed from it, too; nil if there is nothing.
        private func confirm(
            _ account: String, of devices: [ServerDevice], _ stores: [ServerStore]?,
            loss: TerminalText?
        ) throws(Failure) {
            let content = stores.map { stores in
                let keys = stores.reduce(0) { $0 &+ $1.usage.keys }
                let bytes = stores.reduce(0) { $0 &+ $1.usage.bytes }
                return Phrase.counted(stores.count, "store") + " with \(Phrase.keys(keys)) and "
                    + Phrase.bytes(bytes)
            }
            try Question.confirm(
                """
                Permanently delete the account \(account)? It has \(content ?? "its stores"), and \
                \(Phrase.counted(devices.count, "signed-in device")).\(loss.map { " \($0)." } ?? "")
                """, isGiven: yes, otherwise: "nothing was deleted")
        }
    }
}
