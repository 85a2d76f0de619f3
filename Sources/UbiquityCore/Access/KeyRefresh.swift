// SPDX-License-Identifier: Apache-2.0

/// Decides when to ask an identity provider for its keys, and how long they stay valid.
///
/// When a provider changes its keys, the first sign is a token with an unknown key. A forged token
/// looks the same, and must not make the server ask every time.
///
/// All times are milliseconds of a monotonic clock.
package struct KeyRefresh: Hashable, Sendable {
    /// Keys are fetched again after this time, even if no unknown key has appeared.
    package static let ageMilliseconds: Int64 = 3_600_000
    /// Keys that could not be refreshed for this long are no longer trusted: one may have been
    /// stolen and withdrawn.
    package static let ageMillisecondsMax: Int64 = 24 * 3_600_000
    /// The shortest interval between two requests caused by unknown keys.
    package static let unknownKeyMilliseconds: Int64 = 60_000
    /// The shortest wait after a failed request.
    package static let retryMilliseconds: Int64 = 5_000

    private var asked: Int64?
    private var loaded: Int64?

    package init() {}

    /// Whether to fetch the keys before checking a token.
    /// - Parameter knowsKey: Whether the token's key was in the last set loaded.
    package func shouldAsk(knowsKey: Bool, now: Int64) -> Bool {
        guard let asked else { return true }
        let hasFailed = loaded.map { $0 < asked } ?? true
        if hasFailed, now - asked < Self.retryMilliseconds { return false }
        guard let loaded else { return true }
        if now - loaded >= Self.ageMilliseconds { return true }
        return !knowsKey && now - asked >= Self.unknownKeyMilliseconds
    }

    package mutating func willAsk(now: Int64) { asked = now }

    /// Records that the keys requested at this time have been loaded.
    package mutating func hasLoaded(asked: Int64) { loaded = asked }

    /// Whether the last set loaded is still valid.
    package func areGood(now: Int64) -> Bool {
        loaded.map { now - $0 < Self.ageMillisecondsMax } ?? false
    }
}
