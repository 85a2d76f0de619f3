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
            The code comes from who runs the server (`ubiquity account create`, `ubiquity account \
            code`) and works once. A server that trusts an identity provider also takes that one's \
            token, a JSON Web Token: in a file, for what stands on a command line can be seen by others.

            What this device wrote before its first sign-in goes into the account; where the account \
            has a key already, its value stays. A store is exchanged when a program opens it, or by \
            `ubiquity sync`. Signed in to another account, the device shows that \
            account's values; what the first one had not yet sent waits, and is sent when it is \
            signed in again.

            With https the server must show a certificate that the system trusts, or one of \
            --certificate, which is kept with the sign-in. Plain HTTP is for this machine alone, \
            unless --allow-plain-http is given.

            A device that is signed in is not signed in again unless --replace is given: then the old \
            credential is given up once the new one works.

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
            "Instead of a code: a file with an identity provider's token; -: the standard input.",
            valueName: "file"), transform: notEmpty)
    var tokenFile: String?

    @Option(
        help: ArgumentHelp(
            "What the account's owner sees this device as. Default: the host's name.",
            valueName: "name"), transform: notEmpty)
    var deviceName: String?

    @Flag(help: "Give up the present sign-in for this one.")
    var replace = false

    @OptionGroup(title: "Connection") var connection: ConnectionOptions
    @OptionGroup var home: HomeOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        guard (code == nil) != (tokenFile == nil) else {
            throw ValidationError("Give --code or --token-file, one of them.")
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
            "this device is signed in to \(account.accountName) at \(account.server) already; "
                + "`ubiquity sign-out` first, or give --replace")
    }

    private func report(_ old: DeviceHome.DiscardedCredential) {
        guard let failure = old.failure else { return }
        Output.note(
            "The old credential of \(old.account.accountName) at \(old.account.server) could not "
                + "be given up: \(failure.detail)")
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
