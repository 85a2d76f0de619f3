// SPDX-License-Identifier: Apache-2.0

/// The durations of something that was done many times.
struct Delays: CustomStringConvertible {
    private var milliseconds: [Double] = []

    /// From one ``MonotonicTime`` to another, which may have come first.
    mutating func add(from start: UInt64, to end: UInt64) {
        milliseconds.append((Double(end) - Double(start)) / 1_000_000)
    }

    /// Of machines that do other things too, one long delay says nothing.
    var median: Double { at(0.5) }

    private func at(_ part: Double) -> Double {
        let sorted = milliseconds.sorted()
        return sorted.isEmpty ? .infinity : sorted[Int(Double(sorted.count - 1) * part)]
    }

    var description: String {
        "\(milliseconds.count) delays, in ms: least \(at(0)), median \(median), "
            + "90 of 100 within \(at(0.9)), longest \(at(1))"
    }
}
