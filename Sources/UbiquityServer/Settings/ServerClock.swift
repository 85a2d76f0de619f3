// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

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

/// The clock by which a server works: its storage's, if that has one, so that all nodes and the
/// storage agree on what has expired, whatever their own clocks show. The uptime carries on the last
/// reading. Before the first one, it is the server's own clock.
///
/// State: `correction`, guarded by its lock.
final class SharedClock: Sendable {
    private let own: ServerClock
    private let correction = Mutex<ClockCorrection?>(nil)

    init(_ own: ServerClock) { self.own = own }

    var clock: ServerClock {
        ServerClock(
            now: { [self] in
                let reading = self.reading
                return correction.withLock { $0?.milliseconds(at: reading) } ?? reading.wall
            }, uptime: own.uptime)
    }

    /// The process is the boot.
    private var reading: ClockReading {
        ClockReading(wall: own.now(), uptime: own.uptime(), boot: 0)
    }

    /// Reads the storage's clock.
    /// - Parameter read: Returns its milliseconds since 1970; nil if there is none.
    /// - Returns: By how much the server's own clock differs at least; nil if there is none.
    func compare<Failure>(_ read: () throws(Failure) -> Int64?) throws(Failure) -> Int64? {
        let before = reading
        guard let time = try read() else { return nil }
        let after = reading
        let measured = ClockCorrection(
            serverMilliseconds: time, sentAt: before, heardAt: after)
        correction.withLock { if measured.isBetter(than: $0) { $0 = measured } }
        // The answer took some of the difference.
        return max(before.wall - time, time - after.wall, 0)
    }
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
