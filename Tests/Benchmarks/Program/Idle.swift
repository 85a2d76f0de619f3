// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// The cost of a process that holds a connected store and does nothing.
struct Idle: Encodable {
    private var cpuMilliseconds: Double
    /// The number of times that any thread went back to sleep after it had been woken.
    private var wakes: Int

    static func measure(home: String, seconds: UInt32) throws -> Idle {
        let store = try SampleStore.open(home: home)
        SampleStore.fill(store)
        try store.exchange(seconds: 20)
        // The tail of what the exchange began.
        sleep(3)
        let before = usage()
        sleep(seconds)
        let after = usage()
        withExtendedLifetime(store) {}
        return Idle(
            cpuMilliseconds: milliseconds(after) - milliseconds(before),
            wakes: after.ru_nvcsw - before.ru_nvcsw)
    }

    private static func usage() -> rusage {
        var usage = rusage()
        #if canImport(Darwin)
        getrusage(RUSAGE_SELF, &usage)
        #else
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #endif
        return usage
    }

    private static func milliseconds(_ usage: rusage) -> Double {
        func milliseconds(_ time: timeval) -> Double {
            Double(time.tv_sec) * 1_000 + Double(time.tv_usec) / 1_000
        }
        return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime)
    }
}
