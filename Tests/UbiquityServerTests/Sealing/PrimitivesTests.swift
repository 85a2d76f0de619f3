// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import Testing

@testable import UbiquityCore

/// A comparison with another implementation, for which UbiquityCore's own tests have no package.
/// `UBIQUITY_SEALING_ROUNDS` says how often.
@Suite struct `Hashing, deriving keys and encrypting, as another library does` {
    private static let rounds =
        ProcessInfo.processInfo.environment["UBIQUITY_SEALING_ROUNDS"].flatMap { Int($0) } ?? 1_000

    @Test func `gives the same for random keys and messages of random lengths`() throws {
        var random = RandomSource(seed: UInt64.random(in: 0...UInt64.max))
        for round in 0..<Self.rounds {
            let (seed, count) = (random, Int.random(in: 0...300, using: &random))
            let key = bytes(Int.random(in: 0...130, using: &random), &random)
            let (message, info) = (bytes(count, &random), bytes(count % 40, &random))
            var isSame =
                UbiquityCore.SHA256.hash(message).bytes == Array(Crypto.SHA256.hash(data: message))
            isSame =
                isSame
                && UbiquityCore.HMAC(key: key).code(of: message).bytes
                    == Array(
                        Crypto.HMAC<Crypto.SHA256>.authenticationCode(
                            for: message, using: SymmetricKey(data: key)))
            isSame =
                isSame
                && UbiquityCore.HKDF.derive(from: message, salt: key, info: info, blocks: 3)
                    .flatMap(\.bytes)
                    == derived(from: message, salt: key, info: info)
            isSame = try isSame && isEncryptedTheSame(message, &random)
            if !isSame {
                Issue.record("round \(round), \(seed)")
                break
            }
        }
    }

    private func derived(from secret: [UInt8], salt: [UInt8], info: [UInt8]) -> [UInt8] {
        let key = Crypto.HKDF<Crypto.SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: secret), salt: salt, info: info,
            outputByteCount: 96)
        return key.withUnsafeBytes { Array($0) }
    }

    /// ChaCha20-Poly1305 encrypts its text from the second block on.
    private func isEncryptedTheSame(
        _ message: [UInt8], _ random: inout RandomSource
    ) throws -> Bool {
        let (key, nonce) = (bytes(32, &random), bytes(12, &random))
        let sealed = try ChaChaPoly.seal(
            message, using: SymmetricKey(data: key), nonce: ChaChaPoly.Nonce(data: nonce))
        let words = stride(from: 0, to: 12, by: 4).map { start in
            nonce[start..<start + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        var cipher = ChaCha20(
            key: try #require(Bytes32(key)), nonce: (words[0], words[1], words[2]), counter: 1)
        var text = message
        cipher.apply(to: &text)
        return text == Array(sealed.ciphertext)
    }

    private func bytes(_ count: Int, _ random: inout RandomSource) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
}
