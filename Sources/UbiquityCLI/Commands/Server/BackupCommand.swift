// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquityServer

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Back up a server's database, whether or not the server is running.",
        discussion: """
            The copy is a consistent snapshot; the server continues meanwhile. It is checked \
            before it gets its name, only you can read it, and it contains all accounts' values, \
            unencrypted. It does not include the operator's credential: keep a copy of the file \
            operator-credential in the data folder yourself.

            JSON: {"file", "bytes", "accounts"}.
            """)

    @OptionGroup var data: DataOptions
    @OptionGroup var database: DatabaseOptions

    @Option(
        name: .shortAndLong, help: ArgumentHelp("The file to write.", valueName: "file"),
        completion: .file(), transform: notEmpty)
    var output: String

    @Flag(help: "Replace the file if it exists.")
    var force = false

    @Option(
        help: ArgumentHelp("The maximum time for copying, in seconds.", valueName: "seconds"))
    var secondsMax = 3_600.0

    @OptionGroup var json: JSONOption

    func validate() throws {
        try database.refuseForBackups()
        guard secondsMax > 0, secondsMax <= 1e6 else {
            throw ValidationError("--seconds-max needs a number from 1 to 1000000.")
        }
    }

    func run() async throws {
        try database.refuseForBackups(data)
        let folder = try data.entered()
        let backup = try await Progress.showing { note in
            try Backup(
                of: folder, to: output, replaces: force, secondsMax: secondsMax
            ) { note(ProgressStep($0)) }
        }
        json.print(
            [
                "file": .string(backup.path), "bytes": .integer(backup.size),
                "accounts": .integer(backup.accounts),
            ],
            or: "Backed up \(Phrase.counted(backup.accounts, "account")), "
                + "\(Phrase.bytes(backup.size)), to \(backup.path).")
    }
}

extension ProgressStep {
    init(_ step: Backup.Step) {
        switch step {
        case .copying(let bytes, let all): self.init("Copying", bytes, of: all)
        case .checking: self.init("Checking")
        }
    }
}
