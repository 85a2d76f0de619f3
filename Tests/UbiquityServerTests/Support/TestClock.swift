// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityServer

/// A server's clock that a test sets forward.
final class TestClock: Sendable {
    private let milliseconds = Mutex(nowMilliseconds())
    private let uptime: (@Sendable () -> Int64)?

    /// - Parameter uptime: Nil: it is set forward, too.
    init(uptime: (@Sendable () -> Int64)? = nil) { self.uptime = uptime }

    var now: Int64 { milliseconds.withLock(\.self) }

    func advance(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1_000 } }

    var clock: ServerClock {
        ServerClock(now: { self.now }, uptime: { self.uptime?() ?? self.now })
    }
}
