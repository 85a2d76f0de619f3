// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore
import UbiquityServer
import UbiquityWire

struct AuthorityCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "Show the authority that makes browsers trust a server of the local network.",
        discussion: """
            For a server that was started with `ubiquity serve --lan`. Devices that signed in by a link \
            or a code of it need no authority: they trust the server's own key. Browsers do not know \
            that key, so they warn, and do not let the page work offline. A browser whose system trusts \
            the authority does neither.

            The authority can only vouch for private addresses, for local names such as pi.local, and \
            for names and addresses that --host-name gave when it was made: not for any other site. \
            Its own key is kept nowhere; the one that signs the server's certificates is in the \
            server's data folder.

            Asks the server that this device is signed in to; with an option for operators, or where \
            this device is not signed in, the server of that folder or address.

            JSON: {"link", "fingerprint", "certificate"}.
            """)

    @Argument(
        help: "A file to write the certificate to, in PEM; - for standard output.",
        completion: .file(), transform: notEmpty)
    var file: String?

    @Flag(help: "Replace the file if it exists.")
    var force = false

    @OptionGroup var home: HomeOptions
    @OptionGroup(title: "For server operators") var operation: OperatorOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        try operation.requireCredentialForServer()
        if !operation.given.isEmpty {
            try refuse(home.given, "with an option for operators, which names the server.")
        }
        if file == nil || file == "-" { try refuse(given(("--force", force)), "without a file.") }
        if file == "-" { try refuse(given(("--json", json.isOn)), "with -, which is for PEM.") }
    }

    func run() async throws {
        guard let house = try await house() else {
            throw Failure(
                .no,
                "this server has no authority of its own; `ubiquity serve --lan` makes one, and browsers "
                    + "trust other servers by a certificate of theirs")
        }
        if file == "-" { return Output.write(Array(house.authority.utf8)) }
        let link = house.address + "/ca.crt"
        let print = Fingerprint.sha256(ofPEM: house.authority) ?? "unknown"
        if let file {
            let draft = try AtomicFile(path: file, replaces: force)
            try draft.write(Array(house.authority.utf8))
            try draft.finish()
        }
        json.print(
            [
                "link": .string(link), "fingerprint": .string(print),
                "certificate": .string(house.authority),
            ],
            or: file.map { "Wrote the authority to \($0). SHA-256 \(print)" } ?? text(link, print))
    }

    private func house() async throws -> WireConfig.House? {
        if operation.given.isEmpty, let account = try home.open().load().signedIn {
            return try await ServerRequest(.get, ["config"], of: account)
                .answer(WireConfig.self) { $0.hasHouse ? $0.house : nil }
        }
        return try await operation.withClient { try await $0.house() }
    }

    private func text(_ link: String, _ fingerprint: String) -> TerminalText {
        let pairs = fingerprint.split(separator: ":")
        let halves = TerminalText(
            lines: [pairs.prefix(16), pairs.dropFirst(16)]
                .map { TerminalText($0.joined(separator: ":")) })
        let picture: TerminalText = QRCode.picture(of: link).map { "\($0)\n\n" } ?? ""
        return """
            The authority of this house, for browsers to trust:

            \(link)

            \(picture)Open the link in the browser; this once, it warns of the certificate. Do so on a
            network that no stranger is on, and trust the authority only if its SHA-256
            fingerprint is this one; if it is another one, delete it:

            \(halves)

            iPhone, iPad: Settings, "Profile Downloaded", Install; then General, About,
            Certificate Trust Settings, and switch it on.
            Android: Settings, Security, "Install a certificate", "CA certificate".
            Mac: open the file; in Keychain Access, set it to "Always Trust".
            Firefox: Settings, Certificates, Authorities, Import.
            Linux: `ubiquity ca FILE`, and import that in the browser's settings.
            """
    }
}
