// SPDX-License-Identifier: Apache-2.0

/// The claims of an identity provider's token (RFC 7519) whose signature has been verified.
package struct IdentityClaims: Hashable, Sendable {
    package var issuer: String?
    package var audiences: [String]
    /// Seconds since 1970; nil if the claim is missing.
    package var expires: Double?
    /// Seconds since 1970; nil if the claim is missing, NaN if it is not a number.
    package var notBefore: Double?
    /// The claims that are strings, by name.
    package var texts: [String: String]

    package init(
        issuer: String? = nil, audiences: [String] = [], expires: Double? = nil,
        notBefore: Double? = nil, texts: [String: String] = [:]
    ) {
        self.issuer = issuer
        self.audiences = audiences
        self.expires = expires
        self.notBefore = notBefore
        self.texts = texts
    }
}
