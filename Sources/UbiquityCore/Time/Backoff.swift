// SPDX-License-Identifier: Apache-2.0

/// The delay before the next attempt: doubled each time, with jitter, so that all devices do not
/// return to a recovered server at the same moment.
package struct Backoff: Hashable, Sendable {
    package static let firstMilliseconds: Int64 = 250
    package static let maxMilliseconds: Int64 = 60_000

    package private(set) var attempts = 0

    package init() {}

    /// Counts one more failure.
    /// - Returns: Milliseconds to wait, between half and all of this attempt's delay.
    package mutating func fail(using random: inout RandomSource) -> Int64 {
        let delay = min(Self.firstMilliseconds << min(attempts, 10), Self.maxMilliseconds)
        attempts += 1
        return delay / 2 + Int64(random.next() % UInt64(delay / 2 + 1))
    }

    package mutating func succeed() { attempts = 0 }
}

/// Random numbers from a seed (SplitMix64). A value, so that a copy of an engine draws the same
/// ones.
package struct RandomSource: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
