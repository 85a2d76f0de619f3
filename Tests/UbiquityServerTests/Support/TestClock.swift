// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityServer

/// A server's clock that a test sets forward.
final class TestClock: Sendable {
    private let milliseconds = Mutex(Int64(Date().timeIntervalSince1970 * 1_000))

    var now: Int64 { milliseconds.withLock(\.self) }

    func advance(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1_000 } }

    /// Both times are this one.
    var clock: ServerClock { ServerClock(now: { self.now }, uptime: { self.now }) }
}
