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

/// Decides when to ask an identity provider for its keys, and how long they stay valid.
///
/// When a provider changes its keys, the first sign is a token with an unknown key. A forged token
/// looks the same, and must not make the server ask every time.
///
/// All times are milliseconds of a monotonic clock.
package struct KeyRefresh: Hashable, Sendable {
    /// Keys are fetched again after this time, even if no unknown key has appeared.
    package static let ageMilliseconds: Int64 = 3_600_000
    /// Keys that could not be refreshed for this long are no longer trusted: one may have been
    /// stolen and withdrawn.
    package static let ageMillisecondsMax: Int64 = 24 * 3_600_000
    /// The shortest interval between two requests caused by unknown keys.
    package static let unknownKeyMilliseconds: Int64 = 60_000
    /// The shortest wait after a failed request.
    package static let retryMilliseconds: Int64 = 5_000

    private var asked: Int64?
    private var loaded: Int64?

    package init() {}

    /// Whether to fetch the keys before checking a token.
    /// - Parameter knowsKey: Whether the token's key was in the last set loaded.
    package func shouldAsk(knowsKey: Bool, now: Int64) -> Bool {
        guard let asked else { return true }
        let hasFailed = loaded.map { $0 < asked } ?? true
        if hasFailed, now - asked < Self.retryMilliseconds { return false }
        guard let loaded else { return true }
        if now - loaded >= Self.ageMilliseconds { return true }
        return !knowsKey && now - asked >= Self.unknownKeyMilliseconds
    }

    package mutating func willAsk(now: Int64) { asked = now }

    /// Records that the keys requested at this time have been loaded.
    package mutating func hasLoaded(asked: Int64) { loaded = asked }

    /// Whether the last set loaded is still valid.
    package func areGood(now: Int64) -> Bool {
        loaded.map { now - $0 < Self.ageMillisecondsMax } ?? false
    }
}
