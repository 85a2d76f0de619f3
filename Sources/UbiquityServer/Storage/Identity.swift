// SPDX-License-Identifier: Apache-2.0

/// Who a person is to somebody else, who vouches for them: an issuer of identity tokens.
package struct Identity: Hashable, Sendable {
    package var issuer: String
    /// Names the person for ever, within the issuer only.
    package var subject: String

    package init(issuer: String, subject: String) {
        self.issuer = issuer
        self.subject = subject
    }
}
