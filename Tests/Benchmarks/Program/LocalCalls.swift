// SPDX-License-Identifier: Apache-2.0

import AllocationCount
import Foundation
import ProcessHarness
import Ubiquity

/// Calls that never leave the process, beside Foundation's `UserDefaults` with the same keys.
struct LocalCalls: Encodable {
    private var name: String
    /// Nanoseconds a call.
    private var own: Int64
    private var foundation: Int64
    /// Allocations a call; nil: not counted.
    private var allocations: Double?

    private static let rounds = 50
    private static let allocationCalls = 10_000
    private static let nanosecondsMax: Int64 = 2_000_000_000

    static func measure(home: String) throws -> [LocalCalls] {
        let store = try SampleStore.open(home: home)
        guard let defaults = UserDefaults(suiteName: SampleStore.identifier) else {
            throw Trouble("UserDefaults cannot be opened")
        }
        let writes = compare(
            "set(_:forKey:)", { store.set($1, forKey: $0) },
            { defaults.set($1, forKey: $0) })
        store.synchronize()
        let strings = compare(
            "string(forKey:)", { key, _ in _ = store.string(forKey: key) },
            { key, _ in _ = defaults.string(forKey: key) })
        for (index, key) in SampleStore.keys.enumerated() {
            store.set(index % 2 == 0, forKey: key)
            defaults.set(index % 2 == 0, forKey: key)
        }
        store.synchronize()
        let bools = compare(
            "bool(forKey:)", { key, _ in _ = store.bool(forKey: key) },
            { key, _ in _ = defaults.bool(forKey: key) })
        return [strings, bools, writes]
    }

    private typealias Call = (_ key: String, _ value: String) -> Void

    private static func compare(
        _ name: String, _ own: Call, _ foundation: Call
    ) -> LocalCalls {
        LocalCalls(
            name: name, own: perCall(own), foundation: perCall(foundation),
            allocations: allocations(own))
    }

    private static func allocations(_ body: Call) -> Double? {
        let (key, value) = (SampleStore.keys[7], "one value")
        body(key, value)
        let before = ubiquity_allocation_count()
        guard before >= 0 else { return nil }
        for _ in 0..<allocationCalls { body(key, value) }
        return Double(ubiquity_allocation_count() - before) / Double(allocationCalls)
    }

    /// The median of rounds over all keys. Each round has values of its own, made beforehand.
    private static func perCall(_ body: Call) -> Int64 {
        let start = nanoseconds()
        var durations: [Int64] = []
        for round in 0..<rounds where nanoseconds() - start < nanosecondsMax {
            let values = SampleStore.keys.map { "\($0) in round \(round)" }
            let roundStart = nanoseconds()
            for (index, key) in SampleStore.keys.enumerated() { body(key, values[index]) }
            durations.append((nanoseconds() - roundStart) / Int64(SampleStore.keys.count))
        }
        return durations.sorted()[durations.count / 2]
    }
}
