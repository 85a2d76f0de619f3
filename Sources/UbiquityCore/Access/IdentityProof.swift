// SPDX-License-Identifier: Apache-2.0

/// Whom a token has shown to be there.
package struct IdentityProof: Hashable, Sendable {
    package var identity: Identity
    /// What the provider calls them; nil: nothing. Anybody may have chosen it.
    package var name: String?

    package init(identity: Identity, name: String? = nil) {
        self.identity = identity
        self.name = name
    }

    /// What to call an account that is made for them: with the provider's host behind it, so that
    /// nobody can choose a name which the operator would take for somebody else's.
    package var accountName: String? {
        guard let name, !name.isEmpty else { return nil }
        let parts = identity.issuer.split(separator: "/", omittingEmptySubsequences: true)
        return "\(name) (\(parts.dropFirst().first ?? parts.first ?? ""))"
    }
}
