// SPDX-License-Identifier: Apache-2.0

/// An app's write under a policy: a change from one value to another.
///
/// Only the difference counts, because the store may hold neither value by now.
package struct MergeOperation: Hashable, Sendable {
    package var policy: MergePolicy
    /// The value that the app knew; nil if it knew none.
    package var base: PropertyListValue?
    /// The value that the app wants; nil to remove it.
    package var value: PropertyListValue?

    /// The whole count of a run, instead of a difference.
    var count: ExternalCount?

    /// - Parameter count: Changes nothing if the store has a count of this run with at least as many
    ///   increments.
    package init(count: ExternalCount) {
        policy = .counter
        self.count = count
        value = .integer(0)
    }

    package init(_ policy: MergePolicy, from base: PropertyListValue?, to value: PropertyListValue?)
    {
        self.policy = policy
        self.base = base
        self.value = value
    }

    /// Whether the policy can apply it. If not, the value is written without a policy, and the
    /// later write wins.
    package var fits: Bool { value.map(policy.fits) ?? true }
}

/// A run's count that is also kept outside of the store, by someone who can neither write both at
/// once nor be sure that a write succeeded. It holds the run's whole count, so writing it again
/// changes nothing.
package struct ExternalCount: Hashable, Sendable {
    /// The run's name, drawn at random.
    package let run: UInt64
    package private(set) var times: Int64 = 0
    private var total = PropertyListValue.integer(0)

    /// More than any run ever counts. A damaged file with a greater number has no count.
    private static let timesMax: Int64 = 1 << 56

    /// Makes a run that has counted nothing.
    package init(run: UInt64) { self.run = run }

    /// Returns nil if either is not a number. Without an old value, it counts from zero.
    package func adding(from old: PropertyListValue?, to new: PropertyListValue) -> ExternalCount? {
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

    /// Fails for anything that ``propertyList`` does not produce.
    package init?(_ propertyList: PropertyListValue) {
        guard case .array(let fields) = propertyList, fields.count == 3,
            case .data(let run) = fields[0], run.count == 8, case .integer(let times) = fields[1],
            (0..<Self.timesMax).contains(times), Number(fields[2]) != nil
        else { return nil }
        self.run = run.reduce(0) { $0 << 8 | UInt64($1) }
        (self.times, total) = (times, fields[2])
    }
}
