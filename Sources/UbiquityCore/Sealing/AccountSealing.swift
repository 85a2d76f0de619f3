// SPDX-License-Identifier: Apache-2.0

/// The mark that an account is sealed. Its server can read nothing of it but the number.
package struct AccountSealing: Hashable, Sendable {
    /// The number of the account's key, from 1.
    package let generation: UInt32
    /// The SHA-256 hash of ``Keyring/proof(of:)``: what the server compares a proof with, and by which
    /// a device with the key knows that another one with it made the mark.
    package let check: Bytes32
    /// The account's keys, sealed with the recovery key.
    package let recovery: [UInt8]

    package static let recoveryBytesMax = 4_096

    /// - Returns: Nil for the generation 0, and for more than ``recoveryBytesMax``.
    package init?(generation: UInt32, check: Bytes32, recovery: [UInt8]) {
        guard generation > 0, recovery.count <= Self.recoveryBytesMax else { return nil }
        (self.generation, self.check, self.recovery) = (generation, check, recovery)
    }
}

/// The reason a device's request for an account's values is not served.
package enum SealingRefusal: Error, Hashable, Sendable {
    /// The account is sealed with the key of this generation, or not if it is 0, and the request was
    /// made for another.
    case otherGeneration(UInt32, asked: UInt32)
    /// The account is not sealed.
    case notSealed
    /// The request did not show the proof of the account's present key.
    case noProof
    /// The account is not sealed, but once had a key of this generation or a later one.
    case spentGeneration
    /// The generation is too far ahead of the server's clock, which shows these milliseconds since 1970.
    case generationAhead(Int64)
    /// The store is not sealed with the account's key yet.
    case storeUnsealed
    /// The store has changed since it was read, or is sealed with this key already.
    case storeChanged

    /// - Parameter generation: The account's.
    /// - Throws: If the request was made for another.
    package static func check(_ asked: UInt32, in generation: UInt32) throws(SealingRefusal) {
        guard asked == generation else { throw .otherGeneration(generation, asked: asked) }
    }
}

extension Record {
    /// Whether a store may have it that is sealed with the key of this generation, or not if it is 0. A
    /// box is only looked at from outside.
    func isSealed(with generation: UInt32) -> Bool {
        guard let value = content.value else { return true }
        guard case .sealed(let box) = value else { return generation == 0 }
        guard generation > 0, box.generation == generation else { return false }
        switch box.bytes.first {
        case SealedCount.version: return key.isCount && SealedCount(bytes: box.bytes) != nil
        case SealedBytes.version:
            return box.bytes.count >= SealedBytes.headerBytes + SealedText.bytesMin
        default: return false
        }
    }
}

extension Refusal {
    /// - Parameter generation: That of the store.
    init(unsealedIn generation: UInt32) {
        self = generation == 0 ? .sealed : .notSealed
    }

    package static let notSealed = Refusal(
        code: "not-sealed", detail: "the account is sealed, and a value was not sealed with its key"
    )
}
