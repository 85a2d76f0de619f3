// SPDX-License-Identifier: Apache-2.0

/// The servers to which a person allows a credential to be sent, beyond what is safe by default.
package struct ConnectionSecurity: Hashable, Sendable {
    /// The only certificates accepted for the server, in PEM: those of the issuer, or the server's
    /// own if it is self-signed. Nil means the system's.
    package var certificates: String?
    /// Whether plain HTTP to other machines is allowed.
    package var allowsPlainHTTP: Bool

    package init(certificates: String? = nil, allowsPlainHTTP: Bool = false) {
        self.certificates = certificates
        self.allowsPlainHTTP = allowsPlainHTTP
    }
}
