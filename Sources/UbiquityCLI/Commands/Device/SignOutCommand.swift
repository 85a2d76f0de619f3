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

            With --wipe the account's values are removed from this device instead. Unsent changes \
            are sent before; if some cannot be, it says how many would be lost, and asks. Running \
            programs lose the values at once, too.

            JSON: {"account", "revoked"}.
            """)

    @OptionGroup var home: HomeOptions

    @OptionGroup var time: TimeoutOption

    @Flag(help: "Remove the account's values from this device.")
    var wipe = false

    @Flag(help: "With --wipe: do not ask.")
    var yes = false

    @OptionGroup var json: JSONOption

    func validate() throws {
        if !wipe { try refuse(given(("--yes", yes)), "without --wipe.") }
    }

    func run() async throws {
        let home = try home.open()
        if wipe, try home.load().signedIn != nil {
            await send(try home.unsentStores())
            if let loss = try home.loss {
                try Question.confirm(
                    "\(loss). Sign out and remove them?", isGiven: yes,
                    otherwise: "nothing was removed, and this device stays signed in")
            }
        }
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

    /// Sends what the server takes. It may also have some already, which the disk does not say.
    private func send(_ stores: [DeviceHome.UnsentStore]) async {
        var options = StoreOptions()
        options.home = home
        for store in stores where (try? StoreIdentifier(store.identifier)) != nil {
            options.store = store.identifier
            do {
                try await OpenStore.with(options, SyncPolicy(timeout: time.seconds())) { open in
                    try await open.awaitConfirmation()
                }
            } catch let error as UbiquityError where error.code == .unreachable {
                return
            } catch {}
        }
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
