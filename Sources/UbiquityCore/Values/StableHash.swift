// SPDX-License-Identifier: Apache-2.0

/// A hash that is the same in every process and version, unlike Swift's own (FNV-1a). Must not
/// change: files are found by it, and cursors contain it.
package struct StableHash: Hashable, Sendable {
    package private(set) var value: UInt64

    /// - Parameter seed: Hashes with different seeds differ.
    package init(seed: UInt64 = 0) { value = seed ^ 0xCBF2_9CE4_8422_2325 }

    package init(_ text: String, seed: UInt64 = 0) {
        self.init(seed: seed)
        for byte in text.utf8 { combine(UInt64(byte)) }
    }

    package mutating func combine(_ number: UInt64) {
        value = (value ^ number) &* 0x0000_0100_0000_01B3
    }
}
