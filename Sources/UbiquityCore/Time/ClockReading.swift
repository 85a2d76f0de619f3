// SPDX-License-Identifier: Apache-2.0

/// What a device's clocks show at one moment.
///
/// The wall clock may be wrong and may be set at any time. The uptime is never set; it counts
/// while the device sleeps; readings of it can be compared only if they have the same boot.
package struct ClockReading: Hashable, Sendable {
    /// Milliseconds since 1970, as far as the device knows.
    package var wall: Int64
    /// Milliseconds since the boot.
    package var uptime: Int64
    /// Names the boot; a platform that cannot tell draws a number a process.
    package var boot: UInt64

    package init(wall: Int64, uptime: Int64, boot: UInt64) {
        self.wall = wall
        self.uptime = uptime
        self.boot = boot
    }
}

/// What the server's clock showed at a moment of the device: the measure by which the device
/// turns its own readings into the time that all devices share.
package struct ClockCorrection: Hashable, Sendable {
    package var reading: ClockReading
    /// The server's milliseconds since 1970 at that reading.
    package var serverMilliseconds: Int64
    /// By how many milliseconds it may be wrong, in either direction.
    package var doubt: Int64

    /// What is taken for the doubt where it was not measured.
    package static let doubtMax: Int64 = 30_000
    /// How far two clocks drift apart at most, in milliseconds for each of these.
    private static let driftDivisor: UInt64 = 2_000
    private static let roundingMilliseconds: Int64 = 2
    private static let dayMilliseconds: Int64 = 86_400_000

    package init(reading: ClockReading, serverMilliseconds: Int64, doubt: Int64 = doubtMax) {
        self.reading = reading
        self.serverMilliseconds = serverMilliseconds
        self.doubt = min(max(doubt, 0), Self.dayMilliseconds)
    }

    /// By a request: the server looked at its clock at some moment in between, as likely as not in
    /// the middle.
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

    /// Whether it says more than another one, which was measured before: the way there and back was
    /// shorter, or the other one has aged, or no longer holds because the server's clock was set.
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
    /// Exact within one boot, however often the wall clock was set. Across boots, the wall clock's
    /// error is taken to have been the same.
    package func milliseconds(at other: ClockReading) -> Int64 {
        let (elapsed, overflow) =
            isExact(at: other)
            ? other.uptime.subtractingReportingOverflow(reading.uptime)
            : other.wall.subtractingReportingOverflow(reading.wall)
        return overflow ? serverMilliseconds : serverMilliseconds &+ elapsed
    }

    package func isExact(at other: ClockReading) -> Bool { other.boot == reading.boot }
}
