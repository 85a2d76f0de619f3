// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquityServer

struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Replace a server's database with a backup.",
        discussion: """
            Stop the server on the data folder first. If there is data, --replace is needed, \
            and the old database is kept beside the new one, under a name with the time. The file \
            with the operator's credential stays as it is.

            Devices notice that the server has gone back in time: they send what they have had \
            since the backup, with its original times, so nothing is lost that any device has.

            Everything else since then is undone: devices that were signed out are signed in \
            again with their old credentials, and deleted accounts are back. Devices that have \
            signed in since are refused, and accounts that were created since are gone. \
            --sign-out-devices signs every device out; each then needs a new code. \
            docs/OPERATING.md says what to do.

            JSON: {"data", "accounts", "devices", "oldDatabase"}; the last is null or a path.
            """)

    @Argument(
        help: "The backup, as written by `ubiquity backup`.", completion: .file(),
        transform: notEmpty)
    var file: String

    @OptionGroup var data: DataOptions
    @OptionGroup var database: DatabaseOptions

    @Flag(help: "Replace the existing data.")
    var replace = false

    @Flag(help: "Sign every device out.")
    var signOutDevices = false

    @OptionGroup var json: JSONOption

    func validate() throws { try database.refuseForBackups() }

    func run() async throws {
        try database.refuseForBackups(data)
        let folder = try data.entered()
        let restoration = try await Progress.showing { note in
            try Restoration(
                of: file, into: folder, replaces: replace, signsOutDevices: signOutDevices
            ) { note(ProgressStep($0)) }
        }
        if json.isOn { Output.print(restoration.json(folder)) } else { report(restoration, folder) }
        if let missing = restoration.missingCredential { Output.note(Self.noCredential(missing)) }
    }

    private func report(_ restoration: Restoration, _ folder: String) {
        Output.print(
            "Restored \(Phrase.counted(restoration.accounts, "account")) with "
                + "\(Phrase.counted(restoration.devices, "signed-in device")) to \(folder).")
        if let old = restoration.oldDatabase { Output.note("The old database is \(old).") }
        Output.note(signOutDevices ? Self.everybodyOut : Self.comesBack)
    }

    private static let everybodyOut: TerminalText =
        "Every device is signed out, and needs a code from `ubiquity account code` to sign in "
        + "again."
    private static func noCredential(_ path: String) -> TerminalText {
        """
        There is no operator's credential: copy the file that you kept to \(path), or write a new \
        one there (`ubo_` and a long random text, chmod 600) before the server starts. Without \
        it, the server can only be administered with --data on its machine.
        """
    }
    private static let comesBack: TerminalText = """
        Devices that were signed out since the backup are signed in again, and deleted accounts \
        are back: sign out and delete them again, or restore with --sign-out-devices.
        """
}

extension Restoration {
    fileprivate func json(_ folder: String) -> JSON {
        [
            "data": .string(folder), "accounts": .integer(accounts), "devices": .integer(devices),
            "oldDatabase": .optional(oldDatabase),
        ]
    }
}
