// SPDX-License-Identifier: Apache-2.0

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
