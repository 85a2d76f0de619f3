// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation

/// The SHA-256 of a credential or code: all that the server keeps of it.
///
/// A plain hash is enough: what is hashed has 60 or 256 random bits, not a password's few.
///
/// A device's credential and a code are found by look-up of the hash, whose time may tell how many
/// of its first bits some stored hash shares. That helps nobody: who does not have the secret cannot
/// choose its hash, nor go from a hash to the secret. The operator's is compared in a time that
/// tells nothing at all, by ``isEqual(to:)``.
package struct SecretHash: Hashable, Sendable {
    /// 32 bytes.
    let bytes: Data

    init(of secret: String) { bytes = Data(SHA256.hash(data: Data(secret.utf8))) }

    init(bytes: Data) { self.bytes = bytes }

    /// Takes the same time wherever the hashes differ.
    func isEqual(to other: SecretHash) -> Bool {
        guard bytes.count == other.bytes.count else { return false }
        return zip(bytes, other.bytes).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
