// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct UnlockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock",
        abstract: "Get the key of a sealed account.",
        discussion: """
            Shows a code, and waits until somebody runs `ubiquity approve` on a device that has the key \
            and pastes it there. The code is a secret: show it to nobody but that device. With --recovery, \
            asks for the recovery key instead, or reads it from standard input.

            JSON: {"generation"}, the number of the key.
            """)

    @Flag(help: "With the recovery key, which is asked for.") var recovery = false
    @OptionGroup var home: HomeOptions
    @OptionGroup var json: JSONOption

    func run() async throws {
        let home = try home.open()
        let progress = try await AccountSealer(home: home).progress()
        if progress.step == .restored { throw AccountSealer.restored(progress) }
        guard progress.server.generation > 0 else { throw AccountSealer.notSealed }
        if progress.step == .getKey {
            let keyring =
                try await recovery ? recovered(progress) : handedOver(to: progress.account)
            try await home.keep(keyring, of: progress.account)
            return report(progress, isNew: true)
        }
        report(progress, isNew: false)
    }

    private func report(_ progress: SealingProgress, isNew: Bool) {
        json.print(
            ["generation": .integer(Int(progress.server.generation))],
            or: isNew
                ? "This device has the account's key now." : "This device has the account's key.")
    }

    // MARK: - The recovery key

    private func recovered(_ progress: SealingProgress) throws -> Keyring {
        guard !progress.server.recovery.isEmpty else {
            throw Failure(
                .noPermission,
                "the server has no recovery key for this device; `ubiquity unlock` gets the account's "
                    + "key from another device")
        }
        for attempt in 1...3 {
            let text = try Question.line(
                attempt == 1 ? "The recovery key:" : "That is not the recovery key. Again:",
                otherwise: "no recovery key was given")
            if let keyring = RecoveryKey(text: text)?.open(progress.server.recovery) {
                return keyring
            }
        }
        throw Failure(.no, "that is not the account's recovery key")
    }

    // MARK: - Another device

    /// Shows the code, and waits for whoever reads it.
    private func handedOver(to account: SignedInAccount) async throws -> Keyring {
        let stores = try await AccountClient.ownDevice(account).stores.map { name in
            try StoreIdentifier(name)
        }
        let secret = HandoverSecret.random()
        let code = KeyCode(front: UnlockRequest(stores: stores).front, secret: secret).text
        Output.note(
            """
            To unlock this device, run `ubiquity approve` on one that has the account's key, and paste \
            this code there:

                \(code)

            \(QRCode.picture(of: code, columns: Output.errorColumns) ?? "")
            Waiting for 15 minutes.
            """)
        guard let keyring = try await AccountClient.awaitHandover(with: secret, account) else {
            throw Failure(.unavailable, "no device has given the key; run the command again")
        }
        return keyring
    }
}
