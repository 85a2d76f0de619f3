// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation

/// Unguessable texts from the system's secure random source.
enum Secret {
    static let devicePrefix = "ubd_"
    static let operatorPrefix = "ubo_"
    /// For sign-in requests.
    static let requestPrefix = "ubr_"

    /// Makes a text of the prefix and 32 random bytes in base64url.
    static func random(prefix: String) -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let text = Data(bytes).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
        return prefix + text
    }
}

/// The SHA-256 of a credential or code, which is all that the server stores of it.
///
/// A plain hash is enough: its input has 60 or 256 random bits, unlike a password.
///
/// A device's credential or a code is found by a look-up of the hash, whose duration may reveal how
/// many leading bits some stored hash shares. That is of no use: without the secret nobody can
/// choose its hash, or get from a hash to the secret. The operator's hash is compared in constant
/// time by ``isEqual(to:)``.
struct SecretHash: Hashable, Sendable {
    /// 32 bytes.
    let bytes: Data

    init(of secret: String) { bytes = Data(SHA256.hash(data: Data(secret.utf8))) }

    init(bytes: Data) { self.bytes = bytes }

    /// Compares in constant time.
    func isEqual(to other: SecretHash) -> Bool {
        guard bytes.count == other.bytes.count else { return false }
        return zip(bytes, other.bytes).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
