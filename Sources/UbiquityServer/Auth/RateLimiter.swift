// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// A token bucket for each device or remote address.
///
/// State: `buckets`, guarded by its lock. In memory only, so a restart fills all buckets.
final class RateLimiter<Name: Hashable & Sendable>: Sendable {
    private let buckets = Mutex<[Name: TokenBucket]>([:])
    private let allowance: Allowance
    private let clock: ServerClock

    /// All buckets are full again when there are more than this.
    private static var bucketsMax: Int { 65_536 }

    init(_ allowance: Allowance, clock: ServerClock) {
        self.allowance = allowance
        self.clock = clock
    }

    /// - Throws: ``Problem`` with the time to wait.
    func take(_ name: Name) throws(Problem) {
        let now = clock.uptime()
        let wait = buckets.withLock { buckets in
            if buckets.count >= Self.bucketsMax, buckets[name] == nil { buckets.removeAll() }
            return buckets[name, default: TokenBucket(allowance, now: now)].take(now: now)
        }
        if let wait { throw .tooManyRequests(afterMilliseconds: wait) }
    }

    /// Charges the cost beyond the token already taken, even if that leaves a debt.
    func charge(bytes: Int, _ name: Name) {
        let now = clock.uptime()
        buckets.withLock { $0[name]?.charge(bytes: bytes, now: now) }
    }
}
