// SPDX-License-Identifier: Apache-2.0

/// Why a token lets nobody in.
package enum IdentityRefusal: Error, Hashable, Sendable, CaseIterable {
    case otherIssuer
    case otherAudience
    /// It says no end, and would be good for ever.
    case endless
    case expired
    case notYetValid
    /// The claim that names the account is missing, empty, too long, no text, or has control
    /// characters.
    case noSubject
}
