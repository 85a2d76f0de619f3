// SPDX-License-Identifier: Apache-2.0

/// Decides which tokens of an identity provider are accepted, and whom they identify.
package struct IdentityRule: Hashable, Sendable {
    /// Compared byte by byte, as RFC 7519 requires.
    package var issuer: String
    /// The accepted audiences. A token must name at least one of them.
    package var audiences: Set<String>
    /// The claim that names the account.
    package var subjectClaim = "sub"
    /// The claim with the name for a new account; nil if there is none.
    package var nameClaim: String? = "preferred_username"
    /// The tolerated difference between the provider's clock and the server's.
    package var toleranceSeconds = 60.0

    package static let subjectBytesMax = 255

    package init(issuer: String, audiences: Set<String>) {
        self.issuer = issuer
        self.audiences = audiences
    }

    /// - Parameter now: The server's milliseconds since 1970.
    package func proof(
        of claims: IdentityClaims, now: Int64
    ) throws(IdentityRefusal) -> IdentityProof {
        guard claims.issuer == issuer else { throw .otherIssuer }
        guard !audiences.isDisjoint(with: claims.audiences) else { throw .otherAudience }
        try check(claims, seconds: Double(now) / 1_000)
        guard let subject = claims.texts[subjectClaim],
            (1...Self.subjectBytesMax).contains(subject.utf8.count), !subject.hasControls
        else { throw .noSubject }
        return IdentityProof(
            identity: Identity(issuer: issuer, subject: subject),
            name: nameClaim.flatMap { claims.texts[$0] })
    }

    /// The comparisons are written so that NaN is refused.
    private func check(_ claims: IdentityClaims, seconds: Double) throws(IdentityRefusal) {
        guard let expires = claims.expires else { throw .endless }
        guard seconds < expires + toleranceSeconds else { throw .expired }
        guard let notBefore = claims.notBefore else { return }
        guard seconds >= notBefore - toleranceSeconds else { throw .notYetValid }
    }
}

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

/// The person whose identity a token has proved.
package struct IdentityProof: Hashable, Sendable {
    package var identity: Identity
    /// The name that the provider gives, if any. The person may have chosen it freely.
    package var name: String?

    package init(identity: Identity, name: String? = nil) {
        self.identity = identity
        self.name = name
    }

    /// The name for an account created for this person. It ends with the provider's host, so that
    /// nobody can choose a name that the operator would take for someone else's.
    package var accountName: String? {
        guard let name, !name.isEmpty else { return nil }
        let parts = identity.issuer.split(separator: "/", omittingEmptySubsequences: true)
        return "\(name) (\(parts.dropFirst().first ?? parts.first ?? ""))"
    }
}

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

/// The reason a token is not accepted.
package enum IdentityRefusal: Error, Hashable, Sendable, CaseIterable {
    case otherIssuer
    case otherAudience
    /// The token has no expiry and would be valid forever.
    case endless
    case expired
    case notYetValid
    /// The claim that names the account is missing, empty, too long, not a string, or contains
    /// control characters.
    case noSubject
}
