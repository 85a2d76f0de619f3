// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Synchronization
import Ubiquity
import UbiquityCore
import UbiquityServer
import UbiquityWire

extension AccountCommand {
    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Export everything in an account to one file.",
            discussion: """
                The file is JSON: the account with its devices, and for each store its keys, with \
                values in the exact form of the protocol. `ubiquity import` reads it. With \
                --with-history, each store also has a list of what its keys were, which is not \
                imported.

                Without a name: the account that this device is signed in to, as the server has \
                it. It does not include what this device has not sent yet; `ubiquity sync` sends \
                it. With a name: any account, for server operators.

                Of a sealed account, this device opens the values. The operator's export has them \
                sealed, and nobody can import them.

                Only you can read the file. It gets its name when it is complete.

                JSON: {"file", "bytes"}.
                """)

        @Argument(
            help: "The account's name. Default: the account that this device is signed in to.",
            completion: Completions.accounts, transform: notEmpty)
        var name: String?

        @Option(
            name: .shortAndLong, help: ArgumentHelp("The file to write.", valueName: "file"),
            completion: .file(), transform: notEmpty)
        var output: String

        @Flag(help: "Replace the file if it exists.")
        var force = false

        @Flag(help: "Also export the history of the keys, as far as the server has it.")
        var withHistory = false

        @OptionGroup var operation: OperatorOptions
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func validate() throws {
            try operation.check(accountName: name, to: "export", own: home.given)
        }

        func run() async throws {
            let (bytes, path) = try await operation.withAccount(
                name, home, about: { OperatorSubject.account($0) }
            ) { account in
                let draft = try AtomicFile(path: output, replaces: force)
                let bytes = try await Progress.showing { note in
                    note(ProgressStep("Exporting"))
                    return try await write(account, to: draft) {
                        note(ProgressStep("Exporting", $0))
                    }
                }
                try draft.finish()
                return (bytes, draft.path)
            }
            json.print(
                ["file": .string(path), "bytes": .integer(bytes)],
                or: "Exported \(Phrase.bytes(bytes)) to \(path).")
        }

        /// - Returns: The size of the file.
        private func write(
            _ account: ManagedAccount, to draft: AtomicFile,
            _ note: @escaping @Sendable (Int) -> Void
        ) async throws -> Int {
            // The pieces arrive on a connection's thread.
            let check = Mutex(AccountFileReader(keepsValues: false))
            do {
                try await account.export(withHistory: withHistory) { piece in
                    let soFar = try check.withLock { check in
                        _ = try check.take(piece)
                        return check.bytes
                    }
                    note(soFar)
                    try draft.write(piece)
                }
                let whole = check.withLock { $0 }
                try whole.finish()
                return whole.bytes
            } catch AccountFileError.incomplete {
                throw Failure(.unavailable, "the export was cut off in transit; try again")
            } catch let error as AccountFileError {
                throw Failure(.unavailable, "the server did not send a complete export: \(error)")
            }
        }
    }
}
