// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

/// The machine's clocks.
package enum SystemClock {
    /// The current readings. Cheap: on Linux the two calls do not enter the kernel.
    package static func reading() -> ClockReading {
        ClockReading(
            wall: milliseconds(of: CLOCK_REALTIME), uptime: milliseconds(of: sleepingClock),
            boot: boot)
    }

    /// Identifies the boot; read once per process. Where the system has no such name, a random
    /// number is used: too many names do no harm, but the same name for two boots would.
    private static let boot: UInt64 =
        bootName.map { StableHash($0).value } ?? .random(in: 1 ... .max)

    /// The clock that also counts while the machine sleeps. `CLOCK_MONOTONIC` does not on Linux,
    /// but does on Apple's systems.
    #if canImport(Darwin)
    private static var sleepingClock: clockid_t { CLOCK_MONOTONIC }
    #else
    private static var sleepingClock: clockid_t { CLOCK_BOOTTIME }
    #endif

    private static func milliseconds(of clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    private static var bootName: String? {
        #if canImport(Darwin)
        var name = [UInt8](repeating: 0, count: 64)
        var count = name.count
        guard sysctlbyname("kern.bootsessionuuid", &name, &count, nil, 0) == 0 else { return nil }
        return String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        #else
        // The size of a kernel file is unknown before it is read.
        return try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        #endif
    }
}
