// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation

/// The SHA-256 of a credential or code: all that the server keeps of it.
///
/// A plain hash is enough: what is hashed has 60 or 256 random bits, not a password's few. Found
/// by look-up of the hash, so the time that takes tells nothing about the secret.
package struct SecretHash: Hashable, Sendable {
    /// 32 bytes.
    let bytes: Data

    init(of secret: String) { bytes = Data(SHA256.hash(data: Data(secret.utf8))) }

    init(bytes: Data) { self.bytes = bytes }
}
