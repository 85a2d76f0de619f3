// SPDX-License-Identifier: Apache-2.0

/// A reading of a device's clocks.
///
/// The wall clock may be wrong and may be set at any time. The uptime is never set and also counts
/// while the device sleeps. Uptimes can be compared only within one boot.
package struct ClockReading: Hashable, Sendable {
    /// Milliseconds since 1970 by the device's clock.
    package var wall: Int64
    /// Milliseconds since the boot.
    package var uptime: Int64
    /// Identifies the boot. Where the platform cannot tell, each process draws a random number.
    package var boot: UInt64

    package init(wall: Int64, uptime: Int64, boot: UInt64) {
        self.wall = wall
        self.uptime = uptime
        self.boot = boot
    }
}

/// The server's time at a reading of the device's clocks. Converts the device's readings to the
/// time that all devices share.
package struct ClockCorrection: Hashable, Sendable {
    package var reading: ClockReading
    /// The server's milliseconds since 1970 at that reading.
    package var serverMilliseconds: Int64
    /// The possible error in either direction, in milliseconds.
    package var doubt: Int64

    /// The doubt of a correction that was not measured.
    package static let doubtMax: Int64 = 30_000
    /// The maximum drift between two clocks is one millisecond per this many.
    private static let driftDivisor: UInt64 = 2_000
    private static let roundingMilliseconds: Int64 = 2
    private static let dayMilliseconds: Int64 = 86_400_000

    package init(reading: ClockReading, serverMilliseconds: Int64, doubt: Int64 = doubtMax) {
        self.reading = reading
        self.serverMilliseconds = serverMilliseconds
        self.doubt = min(max(doubt, 0), Self.dayMilliseconds)
    }

    /// Measures by a request: the server read its clock at some moment in between, so the middle is
    /// taken.
    package init(serverMilliseconds: Int64, sentAt: ClockReading, heardAt: ClockReading) {
        guard sentAt.boot == heardAt.boot, sentAt.uptime <= heardAt.uptime else {
            self.init(reading: heardAt, serverMilliseconds: serverMilliseconds)
            return
        }
        let half = (heardAt.uptime - sentAt.uptime) / 2
        var middle = heardAt
        middle.uptime -= half
        middle.wall &-= half
        self.init(reading: middle, serverMilliseconds: serverMilliseconds, doubt: half)
    }

    /// Whether it is more precise than an earlier one: its round trip was shorter, or the other one
    /// has aged, or is invalid because the server's clock was set.
    package func isBetter(than other: ClockCorrection?) -> Bool {
        guard let other, other.isExact(at: reading) else { return true }
        let (age, isOlder) = reading.uptime.subtractingReportingOverflow(other.reading.uptime)
        let (difference, isFarAway) = serverMilliseconds.subtractingReportingOverflow(
            other.milliseconds(at: reading))
        guard !isOlder, !isFarAway else { return true }
        let doubts = other.doubt + Int64(age.magnitude / Self.driftDivisor)
        return doubt <= doubts
            || difference.magnitude > (doubt + doubts + Self.roundingMilliseconds).magnitude
    }

    /// The shared time of another reading.
    ///
    /// Exact within one boot, however often the wall clock was set. Across boots, assumes that the
    /// wall clock's error was the same.
    package func milliseconds(at other: ClockReading) -> Int64 {
        let (elapsed, overflow) =
            isExact(at: other)
            ? other.uptime.subtractingReportingOverflow(reading.uptime)
            : other.wall.subtractingReportingOverflow(reading.wall)
        return overflow ? serverMilliseconds : serverMilliseconds &+ elapsed
    }

    package func isExact(at other: ClockReading) -> Bool { other.boot == reading.boot }
}
