// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// A code that people type: letters and digits in groups of four, `7KQ2-M9XD-4TRW`.
///
/// Without 0, O, 1 and I, which are easily confused; in any case, with or without hyphens.
package struct TypedCode: Hashable, Sendable {
    package let text: String

    /// The use of a code, with the number of its letters and digits.
    package enum Kind: Int {
        /// To sign in on a new device.
        ///
        /// 60 random bits are few for a secret, but enough for one that is valid once and for ten
        /// minutes. A server allows 50 attempts a second to all addresses together. With 1,000
        /// unused codes at any time, a guess succeeds once in 700,000 years.
        case signIn = 12
        /// To approve, on a signed-in device, the sign-in of another one that shows the code.
        ///
        /// Its 40 bits are not a secret: who knows the code still needs a signed-in device, and
        /// gives away rights rather than getting any. A guess only matters as a way to sign somebody
        /// else's new device in to one's own account. With ``PairingRule/requestsMax`` requests
        /// waiting at any time, the 50 attempts a second that a server allows to all addresses
        /// together succeed once in 250 days, and those of one account once in 35 years.
        case user = 8
    }

    private static let alphabet = Array("23456789ABCDEFGHJKLMNPQRSTUVWXYZ")

    static func random(_ kind: Kind) -> TypedCode {
        var generator = SystemRandomNumberGenerator()
        return TypedCode(
            (0..<kind.rawValue).map { _ in alphabet.randomElement(using: &generator)! })
    }

    /// Fails if the text cannot be a code.
    package init?(typed text: String, _ kind: Kind) {
        guard text.utf8.count <= 64 else { return nil }
        let letters = text.uppercased().filter { $0 != "-" && !$0.isWhitespace }
        guard letters.count == kind.rawValue, letters.allSatisfy(Self.alphabet.contains) else {
            return nil
        }
        self.init(Array(letters))
    }

    private init(_ letters: [Character]) {
        text = stride(from: 0, to: letters.count, by: 4)
            .map { String(letters[$0..<$0 + 4]) }.joined(separator: "-")
    }

    var hash: SecretHash { SecretHash(of: text) }
}

/// A sign-in code as stored.
struct NewCode: Hashable, Sendable {
    var hash: SecretHash
    var account: AccountID
    /// When the code expires, in milliseconds since 1970 by the server's clock.
    var expiresMilliseconds: Int64
    /// The rights of the device that signs in with it.
    var terms = CredentialTerms()
}
