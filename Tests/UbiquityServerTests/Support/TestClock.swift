// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityServer

/// A server's clock that a test sets forward.
final class TestClock: Sendable {
    private let milliseconds = Mutex(nowMilliseconds())
    private let uptime: (@Sendable () -> Int64)?
    private let run = Mutex<Int64>(0)

    /// - Parameter uptime: Nil: it is set forward, too.
    init(uptime: (@Sendable () -> Int64)? = nil) { self.uptime = uptime }

    var now: Int64 { milliseconds.withLock(\.self) }

    func advance(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1_000 } }

    /// Sets the uptime forward, too.
    func pass(seconds: Int64) {
        advance(seconds: seconds)
        run.withLock { $0 += seconds * 1_000 }
    }

    var clock: ServerClock {
        ServerClock(
            now: { self.now },
            uptime: { self.uptime.map { $0() + self.run.withLock(\.self) } ?? self.now })
    }
}
