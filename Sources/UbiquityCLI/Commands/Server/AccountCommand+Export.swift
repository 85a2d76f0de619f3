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
                `ubiquity import` reads it.

                Without a name: the account that this device is signed in to, as the server has \
                it. It does not include what this device has not sent yet; `ubiquity sync` sends \
                it. With a name: any account, for server operators, with the data folder or the \
                operator's credential.

                Only you can read the file. It gets its name when it is complete.

                JSON: {"file", "bytes"}.
                """)

        @Argument(
            help: "The account's name. Default: the account that this device is signed in to.",
            transform: notEmpty)
        var name: String?

        @Option(
            name: .shortAndLong, help: ArgumentHelp("The file to write.", valueName: "file"),
            transform: notEmpty)
        var output: String

        @Flag(help: "Replace the file if it exists.")
        var force = false

        @OptionGroup var operation: OperatorOptions
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func validate() throws {
            try operation.check(accountName: name, to: "export", own: home.given)
        }

        func run() async throws {
            // First, because a command that works in a data folder may become another user.
            let authority = try name.map { _ in try operation.authority() }
            let draft = try AtomicFile(path: output, replaces: force)
            let (bytes, hasDigests) = try await Progress.showing("Exporting") {
                try await write(to: draft, authority)
            }
            try draft.finish()
            if !hasDigests {
                Output.note("The server has version 0.1, whose archives have no digests.")
            }
            guard json.isOn else {
                return Output.print("Exported \(Phrase.bytes(bytes)) to \(draft.path).")
            }
            Output.print(
                .object([("file", .string(draft.path)), ("bytes", .integer(bytes))]))
        }

        private func write(
            to draft: AtomicFile, _ authority: OperatorAuthority?
        ) async throws -> (bytes: Int, hasDigests: Bool) {
            let received = Received()
            let take: @Sendable ([UInt8]) throws -> Void = { piece in
                try received.check.withLock { try $0.take(piece) }
                try draft.write(piece)
            }
            do {
                if let name, let authority {
                    try await authority.export(name, take: take)
                } else {
                    try await AccountClient.export(of: OwnAccount(home).account, take: take)
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
