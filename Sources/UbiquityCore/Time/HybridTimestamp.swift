// SPDX-License-Identifier: Apache-2.0

/// When a write was made: 48 bits of milliseconds since 1970 and a counter of 16 bits.
///
/// The counter orders what happened within one millisecond, and lets a write that was made after
/// seeing another be later than it even where the clock says otherwise.
package struct HybridTimestamp: Hashable, Comparable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Milliseconds outside of 48 bits become the nearest end.
    package init(milliseconds: Int64, counter: UInt16 = 0) {
        let clamped = UInt64(min(max(milliseconds, 0), 1 << 48 - 1))
        rawValue = clamped << 16 | UInt64(counter)
    }

    package static let zero = HybridTimestamp(rawValue: 0)

    package var milliseconds: Int64 { Int64(rawValue >> 16) }
    package var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

    /// The least timestamp after this one.
    package var next: HybridTimestamp {
        HybridTimestamp(rawValue: rawValue == .max ? .max : rawValue + 1)
    }

    /// The greatest timestamp before this one.
    package var previous: HybridTimestamp {
        HybridTimestamp(rawValue: rawValue == 0 ? 0 : rawValue - 1)
    }

    package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
