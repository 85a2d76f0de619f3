// SPDX-License-Identifier: Apache-2.0

extension Scenario {
    /// The maximum time for everything to settle after the faults have ended, in milliseconds: the
    /// longest pause of a device (after a refused credential), the time to notice a silent
    /// connection, and the time to send.
    package var settlingMilliseconds: Int64 { 300_000 + 60_000 + 60_000 + lineMilliseconds }

    /// The maximum time for a change to reach all connected devices.
    package var spreadingMilliseconds: Int64 { 20_000 + lineMilliseconds }

    /// The additional time if devices have no streams (the longest pause, and that of an attempt),
    /// and if lines are slow.
    private var lineMilliseconds: Int64 {
        (polls ? 130_000 : 0) + (slowest == nil ? 0 : 300_000)
    }
}
