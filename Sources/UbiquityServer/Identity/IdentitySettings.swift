// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// An identity provider whose tokens sign devices in.
package struct IdentitySettings: Hashable, Sendable {
    /// Where the provider's keys are: a set of JSON Web Keys (RFC 7517).
    package enum Keys: Hashable, Sendable {
        /// A path. Read again when a token names a key that it did not have.
        case file(String)
        /// By `https`, or a loopback's `http`.
        case address(String)
    }

    package var rule: IdentityRule
    package var keys: Keys
    /// For how long a device that was signed in by a token stays so; then it needs another. Nil: until
    /// it is signed out or revoked, whatever becomes of the person at the provider.
    package var credentialSeconds: Int64?

    package init(rule: IdentityRule, keys: Keys, credentialSeconds: Int64? = nil) {
        self.rule = rule
        self.keys = keys
        self.credentialSeconds = credentialSeconds
    }
}
