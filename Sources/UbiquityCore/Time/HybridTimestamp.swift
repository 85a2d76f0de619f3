// SPDX-License-Identifier: Apache-2.0

/// The timestamp of a write by a hybrid logical clock: 48 bits of milliseconds since 1970 and a
/// 16-bit counter.
///
/// The counter orders writes within one millisecond, and makes a write that was made after seeing
/// another later than it, even if the clock says otherwise.
package struct HybridTimestamp: Hashable, Comparable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Clamps milliseconds to 48 bits.
    package init(milliseconds: Int64, counter: UInt16 = 0) {
        let clamped = UInt64(min(max(milliseconds, 0), 1 << 48 - 1))
        rawValue = clamped << 16 | UInt64(counter)
    }

    package static let zero = HybridTimestamp(rawValue: 0)

    /// The furthest that a write's stamp may be ahead of the server's clock, in milliseconds.
    package static let aheadMax: Int64 = 60_000

    package var milliseconds: Int64 { Int64(rawValue >> 16) }
    package var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

    /// The smallest timestamp after this one.
    package var next: HybridTimestamp {
        HybridTimestamp(rawValue: rawValue == .max ? .max : rawValue + 1)
    }

    /// The greatest timestamp before this one.
    package var previous: HybridTimestamp {
        HybridTimestamp(rawValue: rawValue == 0 ? 0 : rawValue - 1)
    }

    package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
