// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Ubiquity

/// From a write on one device until it is readable on another: two processes and the server.
struct ChangeLatency {
    static let key = "latency.probe"
    private static let warmUp = 50
    private static let back = 1_000
    private static let apart = 300
    private static let pauseMicroseconds: UInt32 = 20_000
    private static let p50Max: Int64 = 2_000_000
    private static let p99Max: Int64 = 10_000_000

    private let store: UbiquitousKeyValueStore
    private var reader: RoleProcess
    private var count = 0

    static func measure(_ stage: Stage) throws -> [Measurement] {
        let server = try Server(stage, name: "latency")
        defer { server.end() }
        let store = try SampleStore.open(home: try server.newDevice())
        let reader = try RoleProcess(stage, .watch, home: try server.newDevice())
        defer { reader.end() }
        var measure = ChangeLatency(store: store, reader: reader)
        let yardsticks = try Yardsticks.measure(stage, port: server.port)
        _ = try measure.samples(warmUp)
        let back = try measure.samples(back)
        let apart = try measure.samples(apart, pauseMicroseconds: pauseMicroseconds)
        return [line("one after the other", back), line("20 ms apart", apart)] + yardsticks
    }

    private init(store: UbiquitousKeyValueStore, reader: RoleProcess) {
        self.store = store
        self.reader = reader
    }

    private mutating func samples(
        _ number: Int, pauseMicroseconds: UInt32 = 0
    ) throws -> Samples {
        Samples(
            try (0..<number).map { _ in
                if pauseMicroseconds > 0 { usleep(pauseMicroseconds) }
                return try next()
            })
    }

    private mutating func next() throws -> Int64 {
        count += 1
        let start = nanoseconds()
        store.set("value-\(count)", forKey: Self.key)
        while true {
            let words = try reader.lines.next(seconds: 20).split(separator: " ")
            guard words.count == 2, let end = Int64(words[1]) else {
                throw Trouble("the reading device said something else")
            }
            if words[0] == "value-\(count)" { return end - start }
        }
    }

    private static func line(_ name: String, _ samples: Samples) -> Measurement {
        Measurement(
            name: "Change latency, \(name)", result: samples.percentiles,
            target: "p50 ≤ 2 ms, p99 ≤ 10 ms",
            isMet: samples.median <= p50Max && samples.percentile(0.99) <= p99Max)
    }
}
