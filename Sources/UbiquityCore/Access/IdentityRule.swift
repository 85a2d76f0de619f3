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
