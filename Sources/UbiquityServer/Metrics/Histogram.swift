// SPDX-License-Identifier: Apache-2.0

/// Counts values by size in steps.
struct Histogram: Hashable, Sendable {
    /// The upper bounds of the steps, ascending. One more step is above the last bound.
    let bounds: [Double]
    private(set) var counts: [Int]
    private(set) var sum = 0.0

    init(_ bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    mutating func record(_ value: Double) {
        counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
        sum += value
    }

    var count: Int { counts.reduce(0, +) }

    /// From a tenth of a millisecond to ten seconds.
    static let seconds = Histogram([
        0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
        2.5, 5, 10,
    ])
    /// From one to 512.
    static let group = Histogram([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
}
