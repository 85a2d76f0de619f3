// SPDX-License-Identifier: Apache-2.0

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
