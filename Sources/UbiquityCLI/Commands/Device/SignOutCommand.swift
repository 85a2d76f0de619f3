// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct SignOutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-out",
        abstract: "Sign this device out.",
        discussion: """
            The values stay on this device, readable and writable. Unsent changes wait for the \
            next sign-in to the same account. The server revokes the device's credential; if it \
            cannot be reached, the device is signed out all the same, and a note says so.

            With --wipe the account's values are removed from this device instead, including \
            unsent ones. Running programs lose them at once, too.

            JSON: {"account", "revoked"}.
            """)

    @OptionGroup var home: HomeOptions

    @OptionGroup var time: TimeoutOption

    @Flag(help: "Remove the account's values from this device.")
    var wipe = false

    @OptionGroup var json: JSONOption

    func run() async throws {
        let home = try home.open()
        guard let account = try home.endSignIn(wipes: wipe) else {
            throw Failure(.noPermission, "this device is not signed in")
        }
        let failure = await revoke(account, home)
        if let failure {
            Output.note(
                "The server could not be reached, and still accepts this device's credential: "
                    + "\(failure)")
        }
        report(account, isRevoked: failure == nil)
    }

    /// - Returns: The reason the server did not revoke it; nil if it did, or had before.
    private func revoke(_ account: SignedInAccount, _ home: DeviceHome) async -> String? {
        do {
            try await withTimeout(seconds: time.seconds()) {
                if let failure = await home.giveUp(account).failure { throw failure }
            }
            return nil
        } catch { return Failure.sentence(of: error) }
    }

    private func report(_ account: SignedInAccount, isRevoked: Bool) {
        json.print(
            ["account": .account(account), "revoked": .boolean(isRevoked)],
            or: "Signed out of \(account.accountName) at \(account.server). "
                + (wipe ? "Its values were removed from here." : "The values stay here."))
    }
}
