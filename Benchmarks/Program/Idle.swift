// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Ubiquity

/// What a process costs that holds a connected store and does nothing.
struct Idle: Codable {
    private var cpuMilliseconds: Double
    /// How often any thread went to sleep again after it had been woken.
    private var wakes: Int

    private static let seconds = 40

    static func measure(_ stage: Stage) throws -> [Measurement] {
        let server = try Server(stage, name: "idle")
        defer { server.end() }
        var child = try RoleProcess(stage, .idle, home: try server.newDevice())
        defer { child.end() }
        let line = try child.lines.next(seconds: seconds + 30)
        let idle = try JSONDecoder().decode(Idle.self, from: Data(line.utf8))
        let result = String(
            format: "%.1f ms of CPU, %d wake-ups", idle.cpuMilliseconds, idle.wakes)
        return [Measurement(name: "A connected app, idle for \(seconds) s", result: result)]
    }

    /// In a process of its own.
    static func measure(home: String) throws -> Idle {
        let store = try SampleStore.open(home: home)
        SampleStore.fill(store)
        try store.exchange(seconds: 20)
        // The tail of what the exchange began.
        sleep(3)
        let before = usage()
        sleep(UInt32(seconds))
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
