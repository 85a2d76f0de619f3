// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct PairCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pair",
        abstract: "Make a code that signs in another device of yours.",
        discussion: """
            The new device gets at most the rights of this one, for no longer than this one has \
            them. The code works once, usually for ten minutes, and ends when this device is signed \
            out. The QR code contains the server's address and the code, as `ubiquity sign-in` \
            takes them, and the key of a server whose certificate is signed by itself. If the new \
            device trusts the server only with --certificate otherwise, it needs that option too.

            If typing is easier on this device, run `ubiquity sign-in --server URL` on the new one, \
            and `ubiquity approve` here.

            To try two devices on one machine, --sign-in uses the code at once: it signs in the \
            device in the folder --home, and the code comes from the device of UBIQUITY_HOME or the \
            system's folder. It then prints what `ubiquity sign-in` does.

            In a sealed account, the code begins with `ubiquity:` and brings the account's key: it is \
            a secret that only the new device should see.

            JSON: {"server", "code", "expires", "link", "signIn"}; "link" is the whole code, and \
            "signIn" the command, which asks for a code that is a secret.
            """)

    @OptionGroup(title: "The new device") var grant: GrantOptions
    @OptionGroup var signIn: OwnSignInOptions
    @OptionGroup var home: HomeOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        try signIn.check()
        if signIn.isOn, home.home == nil {
            throw ValidationError("--sign-in needs --home FOLDER, for the other device.")
        }
    }

    func run() async throws {
        if signIn.isOn { try signIn.check(device: home) }
        var own = home
        if signIn.isOn { own.home = nil }
        let (home, account) = try own.signedIn()
        let sealing = try await home.sealing()
        let code = try await AccountClient.makeCode(
            stores: grant.store, credentialSeconds: grant.credentialSeconds, account)
        let server = code.server ?? account.server
        let link = SignInLink(server: server, code: code.code, pin: code.pin)
        let secret = try await handOver(sealing)
        if signIn.isOn {
            return try await signIn.run(
                link, secret: secret, self.home, json, again: "ubiquity pair")
        }
        let whole = KeyCode(front: link.text, secret: secret).text
        let command =
            secret == nil
            ? Phrase.signIn(server: link.server, code: link.code) : "ubiquity sign-in"
        let below: TerminalText =
            secret == nil
            ? QRCode.block(command: "ubiquity sign-in \(Phrase.word(whole))", link: whole)
            : """
            Paste the whole code there when it asks:

                \(whole)

            \(QRCode.picture(of: whole) ?? "")
            The code brings the account's key: show it to nobody else.
            """
        json.print(
            [
                "server": .string(server), "code": .string(code.code),
                "expires": .string(Phrase.isoTime(code.expiresMilliseconds)),
                "link": .string(whole),
                "signIn": .string(command),
            ],
            or: """
                Code for another device of \(account.accountName): \
                \(Output.styled(TerminalText(code.code), .bold))
                Valid until \(Phrase.time(code.expiresMilliseconds)), for one device. On that device:

                    \(command)

                \(below)
                """ + (Phrase.reach(server).map { "\n\($0)\n" } ?? ""))
    }

    /// Leaves this device's keys for the new device. The server has no say in that: it could tell this
    /// device that the account is not sealed, and then the new one.
    /// - Returns: The secret for the code; nil without keys.
    private func handOver(_ sealing: SealingProgress) async throws -> HandoverSecret? {
        if sealing.isLocked {
            Output.note(
                "The account is sealed, and neither this device nor the new one has its key. "
                    + "`ubiquity unlock` gets it.")
        }
        guard let keyring = sealing.keyring else { return nil }
        let secret = HandoverSecret.random()
        try await AccountClient.handOver(
            keyring.granted(grant.store), with: secret, sealing.account)
        return secret
    }
}
