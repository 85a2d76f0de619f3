// SPDX-License-Identifier: Apache-2.0

/// How often a device may push: so many at once, and so many a second in the long run. A large push
/// counts as several.
package struct Allowance: Hashable, Sendable {
    package var burst: Int
    package var perSecond: Double

    package init(burst: Int = 600, perSecond: Double = 20) {
        self.burst = max(burst, 1)
        self.perSecond = perSecond > 0 && perSecond.isFinite ? perSecond : 1
    }

    /// What one token covers of a push.
    package static let bytesPerToken = 8_192

    /// What an account may do with all its devices.
    package var ofAccount: Allowance {
        Allowance(burst: min(burst, .max / 4) * 4, perSecond: perSecond * 4)
    }
}

/// The allowance as it is used up. Device and server count by the same rule.
package struct TokenBucket: Hashable, Sendable {
    package private(set) var allowance: Allowance
    private var tokens: Double
    private var countedAt: Int64

    /// What a server says may be next to nothing; then it is asked again after an hour.
    private static let waitMillisecondsMax = 3_600_000.0

    /// A full bucket; `now` is in milliseconds of any clock that does not go back.
    package init(_ allowance: Allowance, now: Int64) {
        self.allowance = allowance
        tokens = Double(allowance.burst)
        countedAt = now
    }

    /// Takes a token if there is one.
    /// - Returns: Nil if it was taken, else the milliseconds until there will be one.
    package mutating func take(now: Int64) -> Int64? {
        refill(now: now)
        if tokens >= 1 {
            tokens -= 1
            return nil
        }
        let wait = ((1 - tokens) / allowance.perSecond * 1_000).rounded(.up)
        return Int64(min(max(1, wait), Self.waitMillisecondsMax))
    }

    /// Takes what a push counts beyond one token, whether it is there or not: it is known only when
    /// the push is. What comes next waits for it.
    package mutating func charge(bytes: Int, now: Int64) {
        refill(now: now)
        tokens -= Double(bytes / Allowance.bytesPerToken)
    }

    /// Goes on with another allowance and no more tokens than it grants.
    package mutating func adopt(_ allowance: Allowance, now: Int64) {
        refill(now: now)
        self.allowance = allowance
        tokens = min(tokens, Double(allowance.burst))
    }

    private mutating func refill(now: Int64) {
        let elapsed = Double(max(0, now - countedAt)) / 1_000
        tokens = min(Double(allowance.burst), tokens + elapsed * allowance.perSecond)
        countedAt = max(countedAt, now)
    }
}
