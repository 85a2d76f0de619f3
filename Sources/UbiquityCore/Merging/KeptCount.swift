// SPDX-License-Identifier: Apache-2.0

/// A run's count that is kept outside of the store as well, by who can neither write both at once nor
/// be sure what became of a write: it says what the run has counted in all, and saying that again
/// changes nothing.
package struct KeptCount: Hashable, Sendable {
    /// Names the run, drawn by chance.
    package let run: UInt64
    package private(set) var times: Int64 = 0
    private var total = PropertyListValue.integer(0)

    /// More often than anything counts: what a damaged file says beyond it is no count.
    private static let timesMax: Int64 = 1 << 56

    /// A run that has counted nothing.
    package init(run: UInt64) { self.run = run }

    /// Nil where either is no number. Nothing counts as zero.
    package func adding(from old: PropertyListValue?, to new: PropertyListValue) -> KeptCount? {
        guard let new = Number(new), let old = old.map(Number.init) ?? .zero else { return nil }
        var count = self
        count.times += 1
        count.total = ((Number(total) ?? .zero) + (new - old)).value
        return count
    }

    var part: PartID { PartNames(run: run).name(.counter) }

    var content: Count { Count(times: times, total: Number(total) ?? .zero) }

    package var propertyList: PropertyListValue {
        .array([.data(withUnsafeBytes(of: run.bigEndian, Array.init)), .integer(times), total])
    }

    /// Nil for anything else than ``propertyList`` gives.
    package init?(_ propertyList: PropertyListValue) {
        guard case .array(let fields) = propertyList, fields.count == 3,
            case .data(let run) = fields[0], run.count == 8, case .integer(let times) = fields[1],
            (0..<Self.timesMax).contains(times), Number(fields[2]) != nil
        else { return nil }
        self.run = run.reduce(0) { $0 << 8 | UInt64($1) }
        (self.times, total) = (times, fields[2])
    }
}
