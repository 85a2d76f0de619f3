// SPDX-License-Identifier: Apache-2.0

/// Numbers in the Prometheus text format, version 0.0.4.
struct PrometheusText {
    private(set) var text = ""

    typealias Labels = KeyValuePairs<String, String>

    enum Kind: String {
        case counter, gauge, histogram
    }

    /// Begins a metric; the following samples belong to it.
    mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    mutating func value(_ name: String, _ value: Int, _ labels: Labels = [:]) {
        text += "\(name)\(Self.list(labels.map { ($0, $1) })) \(value)\n"
    }

    mutating func histogram(_ name: String, _ histogram: Histogram, _ labels: Labels = [:]) {
        let labels = labels.map { ($0, $1) }
        var count = 0
        for (index, bound) in histogram.bounds.enumerated() {
            count += histogram.counts[index]
            text += "\(name)_bucket\(Self.list(labels + [("le", "\(bound)")])) \(count)\n"
        }
        text += "\(name)_bucket\(Self.list(labels + [("le", "+Inf")])) \(histogram.count)\n"
        text += "\(name)_sum\(Self.list(labels)) \(histogram.sum)\n"
        text += "\(name)_count\(Self.list(labels)) \(histogram.count)\n"
    }

    private static func list(_ labels: [(String, String)]) -> String {
        labels.isEmpty
            ? "" : "{" + labels.map { "\($0)=\"\(escaped($1))\"" }.joined(separator: ",") + "}"
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}

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
