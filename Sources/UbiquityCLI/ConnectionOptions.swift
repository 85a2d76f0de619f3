// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity

/// Whom a command shows a credential to.
struct ConnectionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A PEM file with the only certificates that the server may be known by: those of who "
                + "signed its own, or its own if it signed itself.",
            discussion: "Default: the certificates that the system trusts.", valueName: "file"))
    var certificate: String?

    @Flag(help: "Talk to another machine without encryption, where anybody on the way can read it.")
    var allowPlainHttp = false

    /// - Throws: ``Failure`` if the file cannot be read.
    func security() throws(Failure) -> ConnectionSecurity {
        ConnectionSecurity(
            certificates: try certificate.map { path throws(Failure) in
                String(decoding: try InputFile.read(path), as: UTF8.self)
            }, allowsPlainHTTP: allowPlainHttp)
    }
}
