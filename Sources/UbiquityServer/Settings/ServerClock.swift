// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The server's two clocks. A value, so that tests can supply their own.
package struct ServerClock: Sendable {
    /// Milliseconds since 1970-01-01 00:00:00 UTC.
    package var now: @Sendable () -> Int64
    /// Milliseconds of a monotonic clock.
    package var uptime: @Sendable () -> Int64

    package init(now: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Int64) {
        self.now = now
        self.uptime = uptime
    }

    package static let system = ServerClock(
        now: { Int64(Date().timeIntervalSince1970 * 1_000) },
        uptime: { Int64(ProcessInfo.processInfo.systemUptime * 1_000) })
}

/// Work that is done at once, and again after each interval.
struct Interval {
    let milliseconds: Int64
    private var last: Int64?

    init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// - Parameter now: In milliseconds of uptime.
    mutating func isOver(now: Int64) -> Bool {
        if let last, now - last < milliseconds { return false }
        last = now
        return true
    }
}
