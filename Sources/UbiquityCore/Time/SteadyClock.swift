// SPDX-License-Identifier: Apache-2.0

/// Decides whether a server's clock is trusted with what cannot be undone, which is every removal by
/// time: it must have run evenly for an hour. A clock may be months off until it is synchronised,
/// usually soon after the start.
package struct SteadyClock: Sendable {
    package static let evenMilliseconds: Int64 = 3_600_000
    /// By how much it may be adjusted meanwhile.
    package static let jumpMilliseconds: Int64 = 60_000

    /// The difference between the clock and the uptime, and the uptime since which it is that.
    private var even: (difference: Int64, since: Int64)?

    package init() {}

    /// The time by which what has expired may be removed: now, and while the clock is not trusted the
    /// beginning of time, by which nothing has expired. Parameters as for ``isSteady(now:uptime:)``.
    package mutating func removalTime(now: Int64, uptime: Int64) -> Int64 {
        isSteady(now: now, uptime: uptime) ? now : 0
    }

    /// - Parameters:
    ///   - now: The clock's milliseconds since 1970.
    ///   - uptime: In milliseconds.
    package mutating func isSteady(now: Int64, uptime: Int64) -> Bool {
        let difference = now - uptime
        if let even, (difference - even.difference).magnitude <= Self.jumpMilliseconds {
            return uptime - even.since >= Self.evenMilliseconds
        }
        even = (difference, uptime)
        return false
    }
}
