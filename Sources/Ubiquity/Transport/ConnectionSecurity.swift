// SPDX-License-Identifier: Apache-2.0

/// Whom a person lets a credential be shown to, beyond what is safe by itself.
package struct ConnectionSecurity: Hashable, Sendable {
    /// The only certificates that the server may be known by, in PEM: those of who signed its
    /// own, or its own if it signed itself. Nil: whatever the system trusts.
    package var certificates: String?
    /// Plain HTTP to other machines too.
    package var allowsPlainHTTP: Bool

    package init(certificates: String? = nil, allowsPlainHTTP: Bool = false) {
        self.certificates = certificates
        self.allowsPlainHTTP = allowsPlainHTTP
    }
}
