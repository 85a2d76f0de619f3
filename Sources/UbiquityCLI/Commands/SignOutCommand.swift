// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct SignOutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-out",
        abstract: "Sign this device out.",
        discussion: """
            The values stay on this device, readable and writable. What was not yet sent waits for the \
            next sign-in to the same account. The server is told to forget the device's credential; if \
            it cannot be reached, the device is signed out all the same, and a note says so.

            JSON: {"account", "revoked"}.
            """)

    @OptionGroup var home: HomeOptions

    @Option(help: ArgumentHelp("How long to wait for the server.", valueName: "seconds"))
    var timeout = 5.0

    @OptionGroup var json: JSONOption

    func run() async throws {
        let home = try home.open()
        var signedOut: SignedInAccount?
        try home.update { signedOut = $0.signOut() }
        guard let account = signedOut else {
            throw Failure(.noPermission, "this device is not signed in")
        }
        let failure = await revoke(account)
        if let failure {
            Output.note(
                "The server was not told, and still knows this device's credential: \(failure)")
        }
        report(account, isRevoked: failure == nil)
    }

    /// - Returns: Why the server did not do it; nil: it did, or had before.
    private func revoke(_ account: SignedInAccount) async -> String? {
        do {
            try await withTimeout(seconds: timeout) { try await AccountClient.signOut(account) }
            return nil
        } catch {
            if let failure = error as? LinkFailure, failure.kind == .unauthorized { return nil }
            return Failure(error)?.sentence ?? "\(error)"
        }
    }

    private func report(_ account: SignedInAccount, isRevoked: Bool) {
        guard json.isOn else {
            return Output.print(
                "Signed out of \(account.accountName) at \(account.server). The values stay here.")
        }
        Output.print(
            .object([("account", .account(account)), ("revoked", .boolean(isRevoked))]))
    }
}
