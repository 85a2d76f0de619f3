// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity

/// The servers to which a command may send a credential.
struct ConnectionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A PEM file with the only certificates that the server may be known by: those of who "
                + "signed its own, or its own if it signed itself.",
            discussion: "Default: the certificates that the system trusts.", valueName: "file"),
        transform: notEmpty)
    var certificate: String?

    @Flag(help: "Talk to another machine without encryption, where anybody on the way can read it.")
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
            "for an address that begins with http://; give the https address.")
    }

    /// - Throws: ``Failure`` if the file cannot be read.
    func security() throws(Failure) -> ConnectionSecurity {
        ConnectionSecurity(
            certificates: try certificate.map { path throws(Failure) in
                String(decoding: try InputFile.read(path), as: UTF8.self)
            }, allowsPlainHTTP: allowPlainHttp)
    }
}
