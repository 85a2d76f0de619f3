// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// A run's only source of randomness. All of it follows from the seed.
package final class Chance {
    private var source: RandomSource

    package init(seed: UInt64) { source = RandomSource(seed: seed) }

    package func number() -> UInt64 { source.next() }

    package func int(_ range: ClosedRange<Int>) -> Int {
        Int(int64(Int64(range.lowerBound)...Int64(range.upperBound)))
    }

    package func int64(_ range: ClosedRange<Int64>) -> Int64 {
        range.lowerBound + Int64(source.next() % UInt64(range.upperBound - range.lowerBound + 1))
    }

    /// True in this many of a thousand cases.
    package func perMille(_ count: Int) -> Bool { Int(source.next() % 1_000) < count }

    package func coin() -> Bool { source.next() & 1 == 0 }

    package func pick<T>(_ all: [T]) -> T { all[int(0...all.count - 1)] }

    /// A random interval in milliseconds with this mean, at times much longer.
    package func interval(mean: Int64) -> Int64 {
        // The logarithm of a uniform number, by its leading zeros. Without floating point, so that
        // every machine draws the same.
        let bits = source.next()
        let octave = Int64(bits.leadingZeroBitCount)
        let fraction = Int64((bits << (UInt64(octave) + 1)) >> 54)
        // -ln(u) = (octave + 1 - log2(1 + fraction)) * ln 2, with a linear approximation of the
        // latter.
        return max(1, mean * (octave * 1_024 + 1_024 - fraction) * 693 / 1_024 / 1_000)
    }
}
