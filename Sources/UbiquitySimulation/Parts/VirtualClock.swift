// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A device's clocks: the wall clock is wrong and may be set, the uptime only drifts.
package struct VirtualClock: Hashable {
    /// How far the wall clock is ahead, in milliseconds.
    package var error: Int64
    /// How much too fast the uptime runs, in millionths.
    package var drift: Int64 = 0
    package private(set) var boot: UInt64
    private var bootedAt: Int64

    /// - Parameter boot: A number that no other boot of any machine has.
    package init(error: Int64, boot: UInt64, now: Int64) {
        self.error = error
        self.boot = boot
        bootedAt = now
    }

    package func reading(at now: Int64) -> ClockReading {
        let elapsed = now - bootedAt
        return ClockReading(
            wall: now + error, uptime: elapsed + elapsed * drift / 1_000_000, boot: boot)
    }

    /// The first moment at which the uptime has reached this value.
    package func moment(ofUptime uptime: Int64) -> Int64 {
        bootedAt + uptime - uptime * drift / (1_000_000 + drift) + 1
    }

    /// The machine slept for this long: the uptime continues where it was, and the wall clock is
    /// late.
    mutating func sleep(_ milliseconds: Int64) {
        bootedAt += milliseconds
        error -= milliseconds
    }

    package mutating func reboot(as boot: UInt64, at now: Int64) {
        self.boot = boot
        bootedAt = now
    }
}
