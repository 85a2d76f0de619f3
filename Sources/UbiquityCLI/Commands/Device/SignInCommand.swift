// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

struct SignInCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-in",
        abstract: "Sign this device in to an account, for all its apps.",
        discussion: """
            The code comes from the server operator (`ubiquity account create`, `ubiquity account \
            code`) and works once. A server that trusts an identity provider also accepts the \
            provider's token, a JSON Web Token. It is read from a file, because others can see a \
            command line.

            What this device wrote before its first sign-in goes into the account; if the account \
            already has a key, its value stays. A store syncs when a program opens it, or with \
            `ubiquity sync`. When the device is signed in to another account, it shows that \
            account's values; unsent changes of the first account wait, and are sent when it is \
            signed in again.

            With https, the server must present a certificate that the system trusts, or one from \
            --certificate, which is kept with the sign-in. Plain HTTP is only for this machine, \
            unless --allow-plain-http is given.

            A device that is already signed in needs --replace: the old credential is revoked \
            once the new one works.

            JSON: {"name", "id", "server", "device", "deviceName"}.
            """)

    @Option(
        help: ArgumentHelp("The server, such as https://ubiquity.example.", valueName: "url"),
        transform: notEmpty)
    var server: String

    @Option(help: "The code, such as 7KQ2-M9XD-4TRW.", transform: notEmpty)
    var code: String?

    @Option(
        help: ArgumentHelp(
            "A file with an identity provider's token, instead of a code; - for standard input.",
            valueName: "file"), transform: notEmpty)
    var tokenFile: String?

    @Option(
        help: ArgumentHelp(
            "This device's name, as the account's owner sees it. Default: the host name.",
            valueName: "name"), transform: notEmpty)
    var deviceName: String?

    @Flag(help: "Replace the current sign-in.")
    var replace = false

    @OptionGroup(title: "Connection") var connection: ConnectionOptions
    @OptionGroup var home: HomeOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        guard (code == nil) != (tokenFile == nil) else {
            throw ValidationError("Give either --code or --token-file.")
        }
        try connection.check(server)
    }

    private func proof() throws(Failure) -> SignInProof {
        guard let tokenFile else { return .code(code ?? "") }
        let text = String(decoding: try InputFile.read(tokenFile), as: UTF8.self)
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard !token.isEmpty else { throw Failure(.badInput, "there is no token in \(tokenFile)") }
        return .token(token)
    }

    func run() async throws {
        let security = try connection.security()
        try Failure.checkAddress(server, security)
        let home = try home.open()
        let old = try home.load().signedIn
        if let old, !replace { throw refusal(old) }
        let name = deviceName ?? ProcessInfo.processInfo.hostName
        let (account, given) = try await home.signIn(
            server: server, by: try proof(), deviceName: name, security: security)
        if let given { report(given) }
        report(account)
    }

    private func refusal(_ account: SignedInAccount) -> Failure {
        Failure(
            .usage,
            "this device is already signed in to \(account.accountName) at \(account.server); run "
                + "`ubiquity sign-out` first, or give --replace")
    }

    private func report(_ old: DeviceHome.DiscardedCredential) {
        guard let failure = old.failure else { return }
        Output.note(
            "The old credential of \(old.account.accountName) at \(old.account.server) could not "
                + "be revoked: \(failure.detail)")
    }

    private func report(_ account: SignedInAccount) {
        guard json.isOn else {
            return Output.print(
                "Signed in to \(account.accountName) at \(account.server) as "
                    + "\(account.deviceName) (\(account.device)).")
        }
        Output.print(.account(account))
    }
}
