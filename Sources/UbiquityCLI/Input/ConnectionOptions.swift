// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity

/// The servers to which a command may send a credential.
struct ConnectionOptions: ParsableArguments {
    @Option(
        "A PEM file with the only certificates to trust for this server: its issuer's, or its "
            + "own if it is self-signed.", "file",
        discussion: "Default: the certificates that the system trusts.", completion: .file())
    var certificate: String?

    @Flag(help: "Allow plain HTTP to another machine. Anybody on the network can read it.")
    var allowPlainHttp = false

    var given: [String] {
        UbiquityCLI.given(
            ("--certificate", certificate != nil), ("--allow-plain-http", allowPlainHttp))
    }

    /// A certificate proves nothing without encryption.
    func check(_ server: String?) throws {
        guard let server, server.lowercased().hasPrefix("http://") else { return }
        try refuse(
            UbiquityCLI.given(("--certificate", certificate != nil)),
            "with an address that begins with http://. Give the https address.")
    }

    /// - Throws: ``Failure`` if the file cannot be read.
    func security() throws(Failure) -> ConnectionSecurity {
        ConnectionSecurity(
            certificates: try certificate.map { path throws(Failure) in
                String(decoding: try InputFile.read(path), as: UTF8.self)
            }, allowsPlainHTTP: allowPlainHttp)
    }
}
