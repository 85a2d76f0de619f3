// SPDX-License-Identifier: Apache-2.0

/// The files of a server's TLS identity, in PEM.
package struct ServerTLS: Hashable, Sendable {
    /// The server's certificate, and those between it and a root.
    package var certificatePath: String
    /// For the server's user alone to read.
    package var keyPath: String

    package init(certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}
