// SPDX-License-Identifier: Apache-2.0

/// When an identity provider is asked for its keys, and how long they are good.
///
/// Providers change their keys, and announce that by a token with a key that nobody knows yet; so does
/// whoever sends tokens that they made up, and must not make the server ask each time.
///
/// All times are milliseconds of a clock that is never set.
package struct KeyRefresh: Hashable, Sendable {
    /// Asked again after so long, though all keys are known.
    package static let ageMilliseconds: Int64 = 3_600_000
    /// Keys that could not be renewed for so long are good no more: one of them may have been stolen,
    /// and withdrawn.
    package static let ageMillisecondsMax: Int64 = 24 * 3_600_000
    /// A key that nobody knows makes the server ask so often at most.
    package static let unknownKeyMilliseconds: Int64 = 60_000
    /// After a failure, so long at least is waited.
    package static let retryMilliseconds: Int64 = 5_000

    private var asked: Int64?
    private var loaded: Int64?

    package init() {}

    /// Whether to ask before a token is looked at.
    /// - Parameter knowsKey: Whether the token's key is among those that were loaded last.
    package func shouldAsk(knowsKey: Bool, now: Int64) -> Bool {
        guard let asked else { return true }
        let hasFailed = loaded.map { $0 < asked } ?? true
        if hasFailed, now - asked < Self.retryMilliseconds { return false }
        guard let loaded else { return true }
        if now - loaded >= Self.ageMilliseconds { return true }
        return !knowsKey && now - asked >= Self.unknownKeyMilliseconds
    }

    package mutating func willAsk(now: Int64) { asked = now }

    /// The answer to what was asked at this time.
    package mutating func hasLoaded(asked: Int64) { loaded = asked }

    /// Whether the keys that were loaded last are still good.
    package func areGood(now: Int64) -> Bool {
        loaded.map { now - $0 < Self.ageMillisecondsMax } ?? false
    }
}
