// SPDX-License-Identifier: Apache-2.0

/// A person as an identity provider knows them.
package struct Identity: Hashable, Sendable {
    package var issuer: String
    /// The person's permanent name, unique within the issuer only.
    package var subject: String

    package init(issuer: String, subject: String) {
        self.issuer = issuer
        self.subject = subject
    }
}
