// SPDX-License-Identifier: Apache-2.0

/// A value that only devices with the account's key can read, as everybody else has it.
package struct SealedBox: Hashable, Sendable {
    /// The number of the key that it was sealed with.
    package let generation: UInt32
    package let bytes: [UInt8]

    package init(generation: UInt32, bytes: [UInt8]) {
        self.generation = generation
        self.bytes = bytes
    }
}

extension SealedBox: Comparable {
    package static func < (a: Self, b: Self) -> Bool {
        guard a.generation == b.generation else { return a.generation < b.generation }
        return a.bytes.lexicographicallyPrecedes(b.bytes)
    }
}

extension SealedBox: CustomStringConvertible {
    package var description: String { "sealed, \(bytes.count) bytes" }
}

extension SealedBox {
    /// Of a box, the part that is not the value's: the header, the tag, the length, and the padding
    /// of a short value.
    private static let overheadMax = 64

    /// A size that is at most that of any value from which such a box is made, because padding adds
    /// less than an eighth: what fits on a device fits on its server.
    var quotaBytes: Int {
        let (eighths, rest) = max(0, bytes.count - Self.overheadMax).quotientAndRemainder(
            dividingBy: 9)
        return 8 * eighths + 8 * rest / 9
    }
}
