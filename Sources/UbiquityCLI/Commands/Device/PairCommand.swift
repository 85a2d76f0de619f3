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

            In a sealed account, the code begins with `ubiquity:` and brings the account's key, if this \
            device has it: it is a secret that only the new device should see.

            JSON: {"server", "code", "expires", "link", "signIn", "hasKey", "others"}; "link" is the whole \
            code, "signIn" the command, which asks for a code that is a secret, "hasKey" says whether it \
            brings the key, and "others" has further addresses of a server of a local network.
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
        let handover = try sealing.handover(toStores: grant.store)
        let secret = handover == .notSealed ? nil : HandoverSecret.random()
        if let secret { try await AccountClient.leave(handover, with: secret, account) }
        let bringsKey = handover.hasKeys && !sealing.isLocked
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
            \(Self.meaning(bringsKey)) A browser cannot read it: open \(link.text) there, and unlock the \
            browser then.
            """
        // With its key, no other server is taken for it.
        let others = (code.pin == nil ? [] : code.others).filter { $0 != server }
        let also: TerminalText = others.reduce("") { text, other in
            text + "\nAlso at \(SignInLink(server: other, code: code.code, pin: code.pin).text)"
        }
        json.print(
            [
                "server": .string(server), "code": .string(code.code),
                "expires": .string(Phrase.isoTime(code.expiresMilliseconds)),
                "link": .string(whole),
                "signIn": .string(command), "hasKey": .boolean(bringsKey),
                "others": .array(others.map(JSON.string)),
            ],
            or: """
                Code for another device of \(account.accountName): \
                \(Output.styled(TerminalText(code.code), .bold))
                Valid until \(Phrase.time(code.expiresMilliseconds)), for one device. On that device:

                    \(command)

                \(below)
                """ + also + (Phrase.reach(server).map { "\n\($0)\n" } ?? ""))
    }

    private static func meaning(_ bringsKey: Bool) -> String {
        bringsKey
            ? "The code brings the account's key: show it to nobody else."
            : "The account is sealed, and this device does not have its key, so the new one is locked, too: "
                + "`ubiquity unlock` gets it."
    }
}
