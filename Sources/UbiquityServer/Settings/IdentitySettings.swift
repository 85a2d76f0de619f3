// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// An identity provider whose tokens sign devices in.
package struct IdentitySettings: Hashable, Sendable {
    /// The location of the provider's keys, a JSON Web Key Set (RFC 7517).
    package enum Keys: Hashable, Sendable {
        /// A path. Read again when a token names an unknown key.
        case file(String)
        /// By `https`, or by `http` on a loopback address.
        case address(String)
    }

    package var rule: IdentityRule
    package var keys: Keys
    /// The time for which a device stays signed in by a token; then it needs another one. Nil means
    /// until it is signed out or revoked, whatever happens to the person's account at the provider.
    package var credentialSeconds: Int64?
    /// The provider as people sign in with it on the page; nil if they cannot.
    package var page: PageProvider?

    package init(
        rule: IdentityRule, keys: Keys, credentialSeconds: Int64? = nil, page: PageProvider? = nil
    ) {
        self.rule = rule
        self.keys = keys
        self.credentialSeconds = credentialSeconds
        self.page = page
    }
}
