// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Calls that never leave the process, beside Foundation's `UserDefaults` with the same keys.
struct LocalCalls: Codable {
    private var name: String
    /// Nanoseconds a call.
    private var own: Int64
    private var foundation: Int64

    private static let rounds = 50
    private static let nanosecondsMax: Int64 = 2_000_000_000

    static func measure(_ workshop: Workshop) throws -> [Measurement] {
        var child = try workshop.start(
            .benchmarks, ["role", "local", "--home", workshop.path("local")])
        defer { child.end() }
        let line = try child.lines.next(seconds: 60)
        return try JSONDecoder().decode([LocalCalls].self, from: Data(line.utf8)).map(\.line)
    }

    private var line: Measurement {
        let ratio = String(format: "%.2f", Double(own) / Double(foundation))
        return Measurement(
            name: "`\(name)`, 1,024 keys",
            result: "\(own) ns; `UserDefaults` \(foundation) ns; ratio \(ratio)")
    }

    static func measure(home: String) throws -> [LocalCalls] {
        let store = try SampleStore.open(home: home)
        guard let defaults = UserDefaults(suiteName: SampleStore.identifier) else {
            throw Failure("UserDefaults cannot be opened")
        }
        let writes = LocalCalls(
            name: "set(_:forKey:)",
            own: perCall { store.set($1, forKey: $0) },
            foundation: perCall { defaults.set($1, forKey: $0) })
        let strings = LocalCalls(
            name: "string(forKey:)",
            own: perCall { key, _ in _ = store.string(forKey: key) },
            foundation: perCall { key, _ in _ = defaults.string(forKey: key) })
        for (index, key) in SampleStore.keys.enumerated() {
            store.set(index % 2 == 0, forKey: key)
            defaults.set(index % 2 == 0, forKey: key)
        }
        let bools = LocalCalls(
            name: "bool(forKey:)",
            own: perCall { key, _ in _ = store.bool(forKey: key) },
            foundation: perCall { key, _ in _ = defaults.bool(forKey: key) })
        return [strings, bools, writes]
    }

    /// The median of rounds over all keys. Each round has values of its own, made beforehand.
    private static func perCall(_ body: (_ key: String, _ value: String) -> Void) -> Int64 {
        let start = nanoseconds()
        var durations: [Int64] = []
        for round in 0..<rounds where nanoseconds() - start < nanosecondsMax {
            let values = SampleStore.keys.map { "\($0) in round \(round)" }
            let roundStart = nanoseconds()
            for (index, key) in SampleStore.keys.enumerated() { body(key, values[index]) }
            durations.append((nanoseconds() - roundStart) / Int64(SampleStore.keys.count))
        }
        return Samples(durations).median
    }
}
