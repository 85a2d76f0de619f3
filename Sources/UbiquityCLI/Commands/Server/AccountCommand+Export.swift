// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Synchronization
import Ubiquity
import UbiquityArchive
import UbiquityCore
import UbiquityServer

extension AccountCommand {
    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Export everything in an account to one file.",
            discussion: """
                The file is a tar archive: manifest.plist describes the content, stores/ has a \
                property list for each store, and SHA256SUMS has the digests of all files. \
                `ubiquity import` reads it. With --with-history, history/ has a list for each \
                store of what its keys were, which is not imported.

                Without a name: the account that this device is signed in to, as the server has \
                it. It does not include what this device has not sent yet; `ubiquity sync` sends \
                it. With a name: any account, for server operators, with the data folder or the \
                operator's credential.

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

        @Flag(help: "Also export what keys were before, as far as the server has it.")
        var withHistory = false

        @OptionGroup var operation: OperatorOptions
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func validate() throws {
            try operation.check(accountName: name, to: "export", own: home.given)
        }

        func run() async throws {
            let (bytes, hasDigests, path) =
                if let name {
                    try await operation.withClient(about: .account(name), usesFiles: true) {
                        client in
                        try await save(expecting { try await client.stores(accountName: name) }) {
                            try await client.export(
                                accountName: name, withHistory: withHistory, take: $0)
                        }
                    }
                } else {
                    try await saveOwn(OwnAccount(home).account)
                }
            if !hasDigests {
                Output.note("The server has version 0.1, whose archives have no digests.")
            }
            guard json.isOn else {
                return Output.print("Exported \(Phrase.bytes(bytes)) to \(path).")
            }
            Output.print(
                .object([("file", .string(path)), ("bytes", .integer(bytes))]))
        }

        private typealias Take = @Sendable ([UInt8]) throws -> Void

        private func saveOwn(
            _ account: SignedInAccount
        ) async throws -> (bytes: Int, hasDigests: Bool, path: String) {
            try await save(expecting { try await AccountClient.stores(account) }) {
                try await AccountClient.export(of: account, withHistory: withHistory, take: $0)
            }
        }

        /// The keys of each store that the archive will have, for the line that shows progress; nil
        /// where it is not shown or the server does not say.
        private func expecting(
            _ stores: () async throws -> [ServerStore]
        ) async -> [StoreIdentifier: Int]? {
            guard Output.isErrorTerminal, let stores = try? await stores() else { return nil }
            return Dictionary(
                stores.compactMap { store in
                    (try? StoreIdentifier(store.identifier)).map { identifier in
                        (identifier, min(store.usage.keys, Self.keysMax))
                    }
                }
            ) { $1 }
        }

        /// More than any store has. The numbers are the server's.
        private static let keysMax = 1 << 32

        /// Writes a download to the file. In a data folder, the command may be another user by now.
        private func save(
            _ keys: [StoreIdentifier: Int]?, _ download: (@escaping Take) async throws -> Void
        ) async throws -> (bytes: Int, hasDigests: Bool, path: String) {
            let draft = try AtomicFile(path: output, replaces: force)
            let (bytes, hasDigests) = try await Progress.showing { note in
                note(ProgressStep("Exporting"))
                return try await write(to: draft, { note($0.step(of: keys)) }, download)
            }
            try draft.finish()
            return (bytes, hasDigests, draft.path)
        }

        private func write(
            to draft: AtomicFile, _ note: @escaping @Sendable (ArchiveCheck) -> Void,
            _ download: (@escaping Take) async throws -> Void
        ) async throws -> (bytes: Int, hasDigests: Bool) {
            // The pieces arrive on a connection's thread.
            let check = Mutex(ArchiveCheck())
            do {
                try await download { piece in
                    let soFar = try check.withLock { check in
                        try check.take(piece)
                        return check
                    }
                    note(soFar)
                    try draft.write(piece)
                }
                let whole = check.withLock { $0 }
                return (whole.bytes, try whole.finish())
            } catch ArchiveError.incomplete {
                throw Failure(.unavailable, "the archive was cut off in transit; try again")
            } catch let error as ArchiveError {
                throw Failure(.unavailable, "the server did not send a complete archive: \(error)")
            }
        }
    }
}

extension ArchiveCheck {
    /// Counts keys, if it is known how many there will be.
    fileprivate func step(of keys: [StoreIdentifier: Int]?) -> ProgressStep {
        guard let keys else { return ProgressStep("Exporting", bytes) }
        let done = keys.reduce(0) { $0 + part(of: $1.key) * Double($1.value) }
        return ProgressStep("Exporting", Int(done), of: keys.values.reduce(0, &+), .keys)
    }
}
