// SPDX-License-Identifier: Apache-2.0

/// What a token of an identity provider says (RFC 7519), its signature known to be good.
package struct IdentityClaims: Hashable, Sendable {
    package var issuer: String?
    package var audiences: [String]
    /// Seconds since 1970; nil: it says nothing.
    package var expires: Double?
    /// Seconds since 1970; nil: it says nothing; no number: it says what is none.
    package var notBefore: Double?
    /// The claims that are texts, by their names.
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
