// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquityServer

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy a server's database, while it runs or not.",
        discussion: """
            The copy is of one moment: of every change all or nothing. The server goes on meanwhile. \
            The copy is checked before it gets its name, is for its owner alone, and holds all \
            accounts' values, not encrypted. The operator's credential is not in it: keep the \
            file operator-credential of the data folder yourself.

            JSON: {"file", "bytes", "accounts"}.
            """)

    @OptionGroup var data: DataOptions

    @Option(
        name: .shortAndLong, help: ArgumentHelp("The file to write.", valueName: "file"),
        transform: notEmpty)
    var output: String

    @Flag(help: "Replace the file if there is one.")
    var force = false

    @Option(
        help: ArgumentHelp("How long the copying may take.", valueName: "seconds"))
    var secondsMax = 3_600.0

    @OptionGroup var json: JSONOption

    func validate() throws {
        guard secondsMax > 0, secondsMax <= 1e6 else {
            throw ValidationError("--seconds-max needs a number from 1 to 1000000.")
        }
    }

    func run() async throws {
        let folder = try data.enter()
        let backup = try await Progress.showing("Copying the database") {
            try Backup(
                of: folder, to: output, replaces: force, secondsMax: secondsMax)
        }
        guard json.isOn else {
            return Output.print(
                "Backed up \(Phrase.counted(backup.accounts, "account")), "
                    + "\(Phrase.bytes(backup.size)), to \(backup.path).")
        }
        Output.print(
            .object([
                ("file", .string(backup.path)), ("bytes", .integer(backup.size)),
                ("accounts", .integer(backup.accounts)),
            ]))
    }
}
