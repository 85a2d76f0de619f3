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
            The code comes from a device that is signed in (`ubiquity pair`) or from the server \
            operator (`ubiquity account create`, `ubiquity account code`), and works once. A link \
            such as https://ubiquity.example#7KQ2-M9XD-4TRW, which `ubiquity pair` shows as a QR \
            code too, stands for --server and --code. Without any of them, this command asks for the \
            link, or reads it from standard input.

            With --server alone, this command shows a code itself, and waits until somebody runs \
            `ubiquity approve` with it on a device that is signed in, or on the server. --store and \
            --for ask for limited rights. A device that gets the whole code tells this one whether the \
            account is sealed (see `ubiquity encryption`); otherwise, this command asks, because a server \
            could be after values that it can read.

            A server that trusts an identity provider also accepts the provider's token, a JSON \
            Web Token. It is read from a file, because others can see a command line.

            What this device wrote before its first sign-in goes into the account; if the account \
            already has a key, its value stays, unless --keep says otherwise: `device` keeps this \
            device's values, `newest` those that were written later. Before anything is written, \
            the command shows the keys that differ and, at a terminal, asks. A store syncs when a \
            program opens it, or with `ubiquity sync`. When the device is signed in to another \
            account, it shows that account's values; unsent changes of the first account wait, and \
            are sent when it is signed in again.

            With https, the server must present a certificate that the system trusts, or one from \
            --certificate, which is kept with the sign-in. A link may have the server's key after \
            the code: then that key is accepted, and no other. Plain HTTP is only for this machine, \
            unless --allow-plain-http is given.

            A device that is already signed in needs --replace: the old credential is revoked \
            once the new one works.

            The code of a sealed account begins with `ubiquity:`, and brings the account's key. It is a secret: let this command ask for it, because others can \
            see a command line. A device that is signed in without the \
            key is locked until `ubiquity unlock` gets it.

            JSON: {"name", "id", "server", "device", "deviceName", "sealed", "hasKey"}; "sealed" \
            says whether the account is sealed.
            """)

    @Argument(
        help: "The server's address with a code, in place of --server and --code.",
        transform: notEmpty)
    var link: String?

    @Option("The server, such as https://ubiquity.example.", "url")
    var server: String?

    @Option(help: "The code, such as 7KQ2-M9XD-4TRW; - asks for it.", transform: notEmpty)
    var code: String?

    @Option(
        "A file with an identity provider's token, instead of a code; - for standard input.",
        "file", completion: .file())
    var tokenFile: String?

    @Option(
        "This device's name, as the account's owner sees it. Default: the host's, without its domain.",
        "name")
    var deviceName: String?

    @Flag(help: "Replace the current sign-in.")
    var replace = false

    @Flag(help: "Yes, sign in although only the server says that the account is not sealed.")
    var yes = false

    @Option(
        help: ArgumentHelp(
            "Whose values to keep of keys that differ: server, device or newest. Default: server.",
            valueName: "side"))
    var keep: FirstSyncChoice?

    @OptionGroup(title: "What to ask for without a code") var grant: GrantOptions
    @OptionGroup(title: "Connection") var connection: ConnectionOptions
    @OptionGroup var home: HomeOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        guard server == nil || link == nil else {
            throw ValidationError("Give either --server URL or a link.")
        }
        guard [link != nil, code != nil, tokenFile != nil].count(where: \.self) <= 1 else {
            throw ValidationError("Give only one of --code, --token-file and a link.")
        }
        if server == nil {
            try refuse(
                given(("--code", code != nil), ("--token-file", tokenFile != nil)),
                "without --server URL.")
        }
        if server == nil || code != nil || tokenFile != nil {
            try refuse(grant.given, "with a code or a token, which decides about the rights.")
        }
        try connection.check(server)
        // What is found wrong here must not repeat the code.
        do {
            if let link { try connection.check(Self.parts(of: link).link.server) }
            if let code, code != Self.asks { _ = try KeyCode.given(code, prompt: "") }
        } catch let failure as Failure { throw ValidationError(failure.sentence) }
    }

    private static let asks = "-"

    /// What signs this device in, and the secret that brings the account's key.
    private struct Way {
        var server: String
        /// Nil if the sign-in is to be approved.
        var proof: SignInProof?
        var secret: HandoverSecret?
    }

    /// - Parameter link: Nil to ask for it.
    private static func parts(
        of link: String?
    ) throws(Failure) -> (link: SignInLink, secret: HandoverSecret?) {
        let code = try KeyCode.given(link, prompt: "The whole code that the other device shows:")
        guard let link = SignInLink(code.front) else {
            throw Failure(
                .badInput,
                "that is not a server's address with a code; give the address with --server")
        }
        return (link, code.secret)
    }

    private func way() throws(Failure) -> Way {
        guard let server else {
            let (link, secret) = try Self.parts(of: link)
            return Way(server: link.server, proof: .code(link.code), secret: secret)
        }
        if let tokenFile {
            let text = String(decoding: try InputFile.read(tokenFile), as: UTF8.self)
            let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
            guard !token.isEmpty else {
                throw Failure(.badInput, "there is no token in \(tokenFile)")
            }
            return Way(server: server, proof: .token(token))
        }
        guard let code else { return Way(server: server) }
        let keyCode = try KeyCode.given(code == Self.asks ? nil : code, prompt: "The code:")
        return Way(server: server, proof: .code(keyCode.signInCode), secret: keyCode.secret)
    }

    func run() async throws {
        let security = try connection.security()
        if let server { try Failure.checkAddress(server, security) }
        let home = try home.open()
        let old = try home.load().signedIn
        if let old, !replace { throw refusal(old) }
        if let given = link ?? code { KeyCode(given)?.warn(ifGiven: given) }
        let way = try way()
        try Failure.checkAddress(way.server, security)
        let name = deviceName ?? DeviceHome.usualDeviceName
        let signIn: DeviceHome.SignIn
        if let proof = way.proof {
            signIn = try await home.signIn(
                server: way.server, by: proof, deviceName: name, security: security,
                secret: way.secret, acceptsUnsealed: acceptsUnsealed, review: review)
        } else {
            let pending = try await AccountClient.requestSignIn(
                server: way.server, deviceName: name, stores: grant.store,
                credentialSeconds: grant.credentialSeconds, security: security)
            let secret = HandoverSecret.random()
            show(pending, secret)
            signIn = try await home.signIn(
                approved: pending, secret: secret, acceptsUnsealed: acceptsUnsealed,
                review: review)
        }
        if let old = signIn.old { report(old) }
        report(signIn)
    }

    private func acceptsUnsealed(_ doubt: UnsealedDoubt) throws -> Bool {
        try Question.confirm(
            "\(Phrase.sentence(doubt)) The server could be after values that it can read. Sign in?",
            isGiven: yes, otherwise: "this device was not signed in")
        return true
    }

    /// Shows what differs, and decides whose values to keep.
    private func review(_ stores: [FirstSyncStore]) throws -> FirstSyncChoice {
        for store in stores { Output.note(store.lines) }
        let choice = keep ?? .server
        let count = stores.reduce(0) { $0 + $1.comparison.different.count }
        guard keep == nil, count > 0, Output.isAskable else { return choice }
        try Question.confirm(
            "Replace \(Phrase.keys(count)) here by the server's values?", isGiven: false,
            otherwise: "this device was not signed in; --keep device or --keep newest keeps its "
                + "values")
        return choice
    }

    private func show(_ pending: PendingSignIn, _ secret: HandoverSecret) {
        let code = KeyCode(front: pending.link.text, secret: secret).text
        Output.note(
            """
            To let this device sign in, run `ubiquity approve` on a device that is signed in, and paste \
            this code there when it asks:

                \(code)

            \(QRCode.picture(of: code, columns: Output.errorColumns) ?? "")
            Where it cannot be pasted, `ubiquity approve \(pending.userCode)` does it, too. Then only \
            the server says whether the account is sealed: a sealed one is locked here, and of any other \
            one, this command asks.
            Waiting until \(Phrase.time(pending.expiresMilliseconds)).
            """)
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

    private func report(_ signIn: DeviceHome.SignIn) {
        let (account, sealing) = (signIn.account, signIn.sealing)
        let isSealed = sealing.isSealed
        let sentence =
            if sealing.isLocked { Phrase.locked } else if sealing.step == .restored {
                AccountSealer.restored(sealing).sentence + "."
            } else if isSealed {
                "The account is sealed, and this device has its key."
            } else {
                "The account is not sealed" + (signIn.isVouched ? "" : ", according to its server")
                    + ": whoever has the server can read the values."
            }
        json.print(
            .signIn(
                account, isSealed: isSealed,
                hasKey: isSealed && ![.getKey, .restored].contains(sealing.step)),
            or: "Signed in to \(account.accountName) at \(account.server) as "
                + "\(account.deviceName) (\(account.device.shortID)). \(sentence)")
    }
}

extension JSON {
    fileprivate static func signIn(
        _ account: SignedInAccount, isSealed: Bool, hasKey: Bool
    ) -> JSON {
        .object(
            accountFields(account) + [
                ("sealed", .boolean(isSealed)), ("hasKey", .boolean(hasKey)),
            ])
    }
}

extension OwnSignInOptions {
    /// Signs the device of a folder in, as the command does. For a person who called this one with
    /// `sudo`, as that person, for good.
    /// - Parameters:
    ///   - connection: As for the request that has made the code.
    ///   - again: The command that makes another one.
    func run(
        _ link: SignInLink, secret: HandoverSecret? = nil, _ home: HomeOptions,
        _ json: JSONOption, _ connection: ConnectionOptions? = nil, again: String
    ) async throws {
        let words = words(link, secret, home, json, connection)
        do {
            if let caller = SudoCaller(ProcessInfo.processInfo.environment) { try caller.become() }
            let command = try SignInCommand.parse(words)
            try await command.run()
        } catch {
            Output.note(
                secret != nil
                    ? "This device was not signed in. `\(again)` makes another code."
                    : """
                    This device was not signed in. Unless its code was used up, this still does it:

                        ubiquity sign-in \(words.map(Phrase.word).joined(separator: " "))

                    `\(again)` makes another code.
                    """)
            throw error
        }
    }

    private func words(
        _ link: SignInLink, _ secret: HandoverSecret?, _ home: HomeOptions, _ json: JSONOption,
        _ connection: ConnectionOptions?
    ) -> [String] {
        let code = KeyCode(front: link.code, secret: secret).text
        let options = [
            ("server", link.server), ("code", code), ("device-name", deviceName),
            ("home", home.home), ("certificate", connection?.certificate),
        ]
        let flags = given(
            ("--json", json.isOn), ("--allow-plain-http", connection?.allowPlainHttp ?? false))
        return options.compactMap { name, value in value.map { "--\(name)=\($0)" } } + flags
    }
}

extension FirstSyncChoice: ExpressibleByArgument {}

extension FirstSyncStore {
    /// Counts and keys, for people.
    fileprivate var lines: TerminalText {
        let parts: [(String, Set<Key>)] = [
            ("only on this device", comparison.onlyHere),
            ("only on the server", comparison.onlyThere),
            ("different", comparison.different),
        ]
        let title: TerminalText = "\(identifier.string): values on this device and on the server"
        return TerminalText(
            lines: [title]
                + parts.filter { !$0.1.isEmpty }.map { name, keys -> TerminalText in
                    let names = keys.map(\.string).sorted()
                    let rest = names.count > Self.keysShownMax ? ", ..." : ""
                    let shown = names.prefix(Self.keysShownMax).joined(separator: ", ") + rest
                    return "    \(Phrase.keys(keys.count)) \(name): \(shown)"
                })
    }

    private static let keysShownMax = 20
}
