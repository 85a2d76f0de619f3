// SPDX-License-Identifier: Apache-2.0

/// Which tokens of an identity provider let somebody in, and as whom.
package struct IdentityRule: Hashable, Sendable {
    /// Compared letter by letter, as RFC 7519 wants it.
    package var issuer: String
    /// For whom tokens may be made out: one of a token's must be here.
    package var audiences: Set<String>
    /// The claim that names the account.
    package var subjectClaim = "sub"
    /// The claim for what to call an account that is made; nil: none.
    package var nameClaim: String? = "preferred_username"
    /// By how much the provider's clock and the server's may differ.
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

    /// The comparisons are so put that what is no number refuses.
    private func check(_ claims: IdentityClaims, seconds: Double) throws(IdentityRefusal) {
        guard let expires = claims.expires else { throw .endless }
        guard seconds < expires + toleranceSeconds else { throw .expired }
        guard let notBefore = claims.notBefore else { return }
        guard seconds >= notBefore - toleranceSeconds else { throw .notYetValid }
    }
}
