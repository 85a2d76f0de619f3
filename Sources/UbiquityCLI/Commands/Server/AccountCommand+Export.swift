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
                        try await save {
                            try await client.export(
                                accountName: name, withHistory: withHistory, take: $0)
                        }
                    }
                } else {
                    try await save {
                        try await AccountClient.export(
                            of: OwnAccount(home).account, withHistory: withHistory, take: $0)
                    }
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

        /// Writes a download to the file. In a data folder, the command may be another user by now.
        private func save(
            _ download: (@escaping Take) async throws -> Void
        ) async throws -> (bytes: Int, hasDigests: Bool, path: String) {
            let draft = try AtomicFile(path: output, replaces: force)
            let (bytes, hasDigests) = try await Progress.showing { note in
                note(ProgressStep("Exporting"))
                return try await write(to: draft, note, download)
            }
            try draft.finish()
            return (bytes, hasDigests, draft.path)
        }

        private func write(
            to draft: AtomicFile, _ note: @escaping Progress.Note,
            _ download: (@escaping Take) async throws -> Void
        ) async throws -> (bytes: Int, hasDigests: Bool) {
            let received = Received()
            do {
                try await download { piece in
                    let bytes = try received.check.withLock { check in
                        try check.take(piece)
                        return check.bytes
                    }
                    note(ProgressStep("Exporting", bytes))
                    try draft.write(piece)
                }
                let check = received.check.withLock { $0 }
                return (check.bytes, try check.finish())
            } catch ArchiveError.incomplete {
                throw Failure(.unavailable, "the archive was cut off in transit; try again")
            } catch let error as ArchiveError {
                throw Failure(.unavailable, "the server did not send a complete archive: \(error)")
            }
        }
    }
}

/// State: the pieces so far, guarded by a lock, because they arrive on a connection's thread.
private final class Received: Sendable {
    let check = Mutex(ArchiveCheck())
}
