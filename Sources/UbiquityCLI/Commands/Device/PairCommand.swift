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

            JSON: {"server", "code", "expires", "link", "signIn"}.
            """)

    @OptionGroup(title: "The new device") var grant: GrantOptions
    @OptionGroup var home: HomeOptions
    @OptionGroup var json: JSONOption

    func run() async throws {
        let account = try home.signedIn().account
        let code = try await AccountClient.makeCode(
            stores: grant.store, credentialSeconds: grant.credentialSeconds, account)
        let link = SignInLink(server: account.server, code: code.code, pin: code.pin)
        let command = Phrase.signIn(server: link.server, code: link.code)
        json.print(
            [
                "server": .string(account.server), "code": .string(code.code),
                "expires": .string(Phrase.isoTime(code.expiresMilliseconds)),
                "link": .string(link.text),
                "signIn": .string(command),
            ],
            or: """
                Code for another device of \(account.accountName): \
                \(Output.styled(TerminalText(code.code), .bold))
                Valid until \(Phrase.time(code.expiresMilliseconds)), for one device. On that device:

                    \(command)

                \(QRCode.block(command: "ubiquity sign-in \(Phrase.word(link.text))", link: link.text))
                """)
    }
}
