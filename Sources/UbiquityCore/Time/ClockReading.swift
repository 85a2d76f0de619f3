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

    package init(reading: ClockReading, serverMilliseconds: Int64) {
        self.reading = reading
        self.serverMilliseconds = serverMilliseconds
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
