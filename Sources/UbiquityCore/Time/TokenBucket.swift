// SPDX-License-Identifier: Apache-2.0

/// The rate at which a device may push: a burst at once, and a sustained rate. A large push counts
/// as several.
package struct Allowance: Hashable, Sendable {
    package var burst: Int
    package var perSecond: Double

    package init(burst: Int = 600, perSecond: Double = 20) {
        self.burst = max(burst, 1)
        self.perSecond = perSecond > 0 && perSecond.isFinite ? perSecond : 1
    }

    /// The bytes of a push that one token pays for.
    package static let bytesPerToken = 8_192

    /// A quarter of it, so that no device uses up its account's.
    package var ofDevice: Allowance {
        Allowance(burst: max(1, burst / 4), perSecond: perSecond / 4)
    }

    /// The allowance of an account with all its devices.
    package var ofAccount: Allowance {
        Allowance(burst: min(burst, .max / 4) * 4, perSecond: perSecond * 4)
    }
}

/// The use of an allowance. Device and server count by the same rule.
package struct TokenBucket: Hashable, Sendable {
    package private(set) var allowance: Allowance
    private var tokens: Double
    private var countedAt: Int64

    /// A server may announce an allowance of next to nothing. The bucket then waits an hour at
    /// most.
    private static let waitMillisecondsMax = 3_600_000.0

    /// Makes a full bucket; `now` is in milliseconds of any monotonic clock.
    package init(_ allowance: Allowance, now: Int64) {
        self.allowance = allowance
        tokens = Double(allowance.burst)
        countedAt = now
    }

    /// Takes a token if there is one.
    /// - Returns: Nil if a token was taken, otherwise the milliseconds until there is one.
    package mutating func take(now: Int64) -> Int64? {
        refill(now: now)
        if tokens >= 1 {
            tokens -= 1
            return nil
        }
        let wait = ((1 - tokens) / allowance.perSecond * 1_000).rounded(.up)
        return Int64(min(max(1, wait), Self.waitMillisecondsMax))
    }

    /// Charges the cost of a push beyond one token, even if that leaves a debt. The cost is known
    /// only after the token was taken, and the next push waits for the debt.
    package mutating func charge(bytes: Int, now: Int64) {
        refill(now: now)
        tokens -= Double(bytes / Allowance.bytesPerToken)
    }

    /// Continues with another allowance, and with no more tokens than its burst.
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

/// Limits how often one kind of problem is reported: the first ones at once, then one a second,
/// with the number of those left out. An app that repeats a mistake without end does not fill the
/// log.
package struct ReportRate: Hashable, Sendable {
    package static let allowance = Allowance(burst: 64, perSecond: 1)

    private var bucket: TokenBucket
    private var leftOut = 0

    /// - Parameter now: Milliseconds of any monotonic clock.
    package init(now: Int64) { bucket = TokenBucket(Self.allowance, now: now) }

    /// - Returns: The number of reports left out since the last one; nil if this one is left out
    ///   too.
    package mutating func admit(now: Int64) -> Int? {
        guard bucket.take(now: now) == nil else {
            leftOut += 1
            return nil
        }
        defer { leftOut = 0 }
        return leftOut
    }
}
