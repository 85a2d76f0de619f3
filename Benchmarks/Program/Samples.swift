// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Nanoseconds of a clock that all processes of the machine share.
func nanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Durations in nanoseconds, the shortest first. Never empty.
struct Samples {
    private let sorted: [Int64]

    init(_ durations: [Int64]) {
        precondition(!durations.isEmpty, "There is nothing to sum up.")
        sorted = durations.sorted()
    }

    init(repeating count: Int, _ body: () throws -> Void) rethrows {
        var durations: [Int64] = []
        for _ in 0..<count {
            let start = nanoseconds()
            try body()
            durations.append(nanoseconds() - start)
        }
        self.init(durations)
    }

    /// The nearest rank: 0.5 is the median.
    func percentile(_ fraction: Double) -> Int64 {
        let rank = Int((fraction * Double(sorted.count)).rounded(.up))
        return sorted[Swift.min(Swift.max(rank, 1), sorted.count) - 1]
    }

    var min: Int64 { sorted.first! }
    var max: Int64 { sorted.last! }
    var median: Int64 { percentile(0.5) }

    var percentiles: String {
        let named = [
            ("min", min), ("p50", median), ("p90", percentile(0.9)), ("p99", percentile(0.99)),
            ("max", max),
        ]
        return named.map { "\($0) \(Self.milliseconds($1))" }.joined(separator: ", ") + " ms"
    }

    var span: String {
        [("min", min), ("median", median), ("max", max)]
            .map { "\($0) \(Self.milliseconds($1))" }.joined(separator: ", ") + " ms"
    }

    static func milliseconds(_ nanoseconds: Int64) -> String {
        String(format: "%.2f", Double(nanoseconds) / 1_000_000)
    }
}
