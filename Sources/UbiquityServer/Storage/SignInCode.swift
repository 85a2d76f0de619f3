// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// A code to type when signing in on a new device: twelve letters and digits, `7KQ2-M9XD-4TRW`.
///
/// Without 0, O, 1 and I, which are easily confused; in any case, with or without hyphens.
///
/// 60 random bits are few for a secret, but enough for one that is valid once and for ten minutes.
/// A server allows 50 attempts a second to all addresses together. With 1,000 unused codes at any
/// time, a guess succeeds once in 700,000 years.
package struct SignInCode: Hashable, Sendable {
    package let text: String

    private static let length = 12

    static func random() -> SignInCode { SignInCode(text: CodeLetters.random(length)) }

    /// Fails if the text cannot be a code.
    package init?(typed text: String) {
        guard let text = CodeLetters.typed(text, Self.length) else { return nil }
        self.init(text: text)
    }

    private init(text: String) { self.text = text }

    var hash: SecretHash { SecretHash(of: text) }
}

/// A code to type on a signed-in device, to approve the sign-in of another one that shows it: eight
/// letters and digits, `7KQ2-M9XD`, typed like a ``SignInCode``.
///
/// Its 40 bits are not a secret: who knows the code still needs a signed-in device, and gives away
/// rights rather than getting any. A guess only matters as a way to sign somebody else's new device
/// in to one's own account. With ``PairingRule/requestsMax`` requests waiting at any time, the 50
/// attempts a second that a server allows to all addresses together succeed once in 250 days, and
/// those of one account once in 35 years.
package struct UserCode: Hashable, Sendable {
    package let text: String

    private static let length = 8

    static func random() -> UserCode { UserCode(text: CodeLetters.random(length)) }

    /// Fails if the text cannot be a code.
    package init?(typed text: String) {
        guard let text = CodeLetters.typed(text, Self.length) else { return nil }
        self.init(text: text)
    }

    private init(text: String) { self.text = text }

    var hash: SecretHash { SecretHash(of: text) }
}

/// The letters of codes that people type.
private enum CodeLetters {
    private static let alphabet = Array("23456789ABCDEFGHJKLMNPQRSTUVWXYZ")

    static func random(_ length: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        return text((0..<length).map { _ in alphabet.randomElement(using: &generator)! })
    }

    /// The code as it was made; nil if the text cannot be one.
    static func typed(_ text: String, _ length: Int) -> String? {
        guard text.utf8.count <= 64 else { return nil }
        let letters = text.uppercased().filter { $0 != "-" && !$0.isWhitespace }
        guard letters.count == length, letters.allSatisfy(alphabet.contains) else { return nil }
        return Self.text(Array(letters))
    }

    private static func text(_ letters: [Character]) -> String {
        stride(from: 0, to: letters.count, by: 4)
            .map { String(letters[$0..<$0 + 4]) }.joined(separator: "-")
    }
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
