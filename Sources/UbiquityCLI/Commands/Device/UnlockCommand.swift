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
        let isNew = progress.step == .getKey
        if isNew {
            try await recovery
                ? recover(home, progress)
                : home.unlock(with: .handover(code(for: progress.account)), progress.account)
        }
        json.print(
            ["generation": .integer(Int(progress.server.generation))],
            or: isNew
                ? "This device has the account's key now." : "This device has the account's key.")
    }

    /// Asks for the recovery key. On paper, it may have more than one line.
    private func recover(_ home: DeviceHome, _ progress: SealingProgress) async throws {
        let wrap = progress.server.recovery
        guard !wrap.isEmpty else { throw KeyringRefusal.noRecoveryKey }
        var (lines, refusal) = ([String](), KeyringRefusal?.none)
        for _ in 0..<Self.linesMax {
            let question = refusal.map { "\(Phrase.sentence($0)) Again, or the rest of it:" }
            lines.append(
                try Question.line(
                    TerminalText(question ?? "The recovery key:"), isSecret: true,
                    otherwise: refusal?.description ?? "no recovery key was given"))
            refusal = nil
            for start in lines.indices.reversed() {
                do {
                    let key = try RecoveryKey(given: lines[start...].joined())
                    return try await home.keep(key.open(wrap), of: progress.account)
                } catch let error as KeyringRefusal {
                    if case .recoveryKeyLength = error, refusal != nil { continue }
                    refusal = error
                }
            }
        }
        throw Failure(.no, refusal?.description ?? "")
    }

    private static let linesMax = 4

    /// Shows a code to whoever reads it.
    private func code(for account: SignedInAccount) async throws -> HandoverSecret {
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
        return secret
    }
}
