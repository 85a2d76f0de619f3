// SPDX-License-Identifier: Apache-2.0

/// The files of a server's TLS identity, in PEM.
package struct ServerTLS: Hashable, Sendable {
    /// The server's certificate and its intermediate certificates.
    package var certificatePath: String
    /// Must only be readable by the server's user.
    package var keyPath: String

    package init(certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}
