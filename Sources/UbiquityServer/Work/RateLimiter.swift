// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// A token bucket for each device or remote address.
///
/// State: `buckets`, guarded by its lock. In memory only, so a restart fills all buckets.
final class RateLimiter<Name: Hashable & Sendable>: Sendable {
    private let buckets = Mutex<[Name: TokenBucket]>([:])
    private let limit: EdgeLimit
    private let allowance: Allowance
    private let clock: ServerClock

    /// All buckets are full again when there are more than this.
    private static var bucketsMax: Int { 65_536 }

    /// - Parameter limit: The name of the limit.
    init(_ limit: EdgeLimit, _ allowance: Allowance, clock: ServerClock) {
        self.limit = limit
        self.allowance = allowance
        self.clock = clock
    }

    func take(_ name: Name) throws(RateExceeded) {
        let now = clock.uptime()
        let wait = buckets.withLock { buckets in
            if buckets.count >= Self.bucketsMax, buckets[name] == nil { buckets.removeAll() }
            return buckets[name, default: TokenBucket(allowance, now: now)].take(now: now)
        }
        if let wait { throw RateExceeded(limit: limit, waitMilliseconds: wait) }
    }

    /// Charges the cost beyond the token already taken, even if that leaves a debt.
    func charge(bytes: Int, _ name: Name) {
        guard bytes >= Allowance.bytesPerToken else { return }
        let now = clock.uptime()
        buckets.withLock { $0[name]?.charge(bytes: bytes, now: now) }
    }
}

/// A bucket is empty; it has a token again after this time.
struct RateExceeded: Error, Hashable, Sendable {
    var limit: EdgeLimit
    var waitMilliseconds: Int64
}

/// Limits the attempts to sign in, and what a device does to sign in another one: by address, by
/// account, and in total.
struct SignInThrottle: Sendable {
    private let addresses: RateLimiter<String>
    private let devices: RateLimiter<ShareHolder>
    private let accounts: RateLimiter<AccountID>
    private let all: RateLimiter<Everybody>

    private enum Everybody { case all }

    init(_ settings: ServerSettings) {
        addresses = RateLimiter(
            .signInAttempts, settings.signInAllowance, clock: settings.clock)
        devices = RateLimiter(
            .signInAttempts, settings.signInAllowance.ofDevice, clock: settings.clock)
        accounts = RateLimiter(
            .signInAttempts, settings.signInAllowance, clock: settings.clock)
        all = RateLimiter(.signInAttempts, settings.signInTotalAllowance, clock: settings.clock)
    }

    /// Attempts above an address's limit do not count towards the total.
    /// - Parameter device: Nil for anybody else.
    func take(_ address: String, _ device: DeviceRights? = nil) throws(RateExceeded) {
        // First: what is refused here takes nothing from the others.
        if let device { try devices.take(device.share) }
        try addresses.take(address)
        if let device { try accounts.take(device.account) }
        try all.take(.all)
    }
}

/// Limits the pushes of each device, of each account's confined devices together, and of each account
/// with all its devices. The cost of a push is only known after reading it, or after committing it: a
/// push needs a token to be read at all, and the rest is charged afterwards.
struct PushAllowance: Sendable {
    private let devices: RateLimiter<ShareHolder>
    private let accounts: RateLimiter<AccountID>

    init(_ settings: ServerSettings) {
        devices = RateLimiter(.pushesPerDevice, settings.allowance, clock: settings.clock)
        accounts = RateLimiter(
            .pushesPerDevice, settings.allowance.ofAccount, clock: settings.clock)
    }

    func take(_ device: DeviceRights) throws(RateExceeded) {
        try devices.take(device.share)
        try accounts.take(device.account)
    }

    func charge(bytes: Int, _ device: DeviceRights) {
        devices.charge(bytes: bytes, device.share)
        accounts.charge(bytes: bytes, device.account)
    }
}
