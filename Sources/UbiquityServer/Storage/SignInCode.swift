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

    private static let alphabet = Array("23456789ABCDEFGHJKLMNPQRSTUVWXYZ")
    private static let length = 12

    static func random() -> SignInCode {
        var generator = SystemRandomNumberGenerator()
        let letters = (0..<length).map { _ in alphabet.randomElement(using: &generator)! }
        return SignInCode(letters: letters)
    }

    /// Fails if the text cannot be a code.
    package init?(typed text: String) {
        guard text.utf8.count <= 64 else { return nil }
        let letters = text.uppercased().filter { $0 != "-" && !$0.isWhitespace }
        guard letters.count == Self.length, letters.allSatisfy(Self.alphabet.contains) else {
            return nil
        }
        self.init(letters: Array(letters))
    }

    private init(letters: [Character]) {
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

/// The rights of a device that signs in with a code.
package struct CredentialTerms: Hashable, Sendable {
    /// As ``DeviceRights/stores``.
    var stores: Set<StoreIdentifier>?
    /// How long the device's credential is valid after the sign-in; nil means until it is revoked.
    var milliseconds: Int64?

    init(stores: Set<StoreIdentifier>? = nil, milliseconds: Int64? = nil) {
        self.stores = stores
        self.milliseconds = milliseconds
    }

    /// A longer list would no longer confine anything.
    package static let storesMax = 64
}
