// SPDX-License-Identifier: Apache-2.0

/// Everything stored for one key: its own value, written without a policy, and its parts.
struct MergeState: Sendable {
    struct Part: Sendable {
        var id: PartID
        var value: PropertyListValue
        var stamp: Stamp

        init(id: PartID, _ concurrent: ConcurrentValue) {
            (self.id, value, stamp) = (id, concurrent.value, concurrent.stamp)
        }

        var concurrent: ConcurrentValue { ConcurrentValue(value: value, stamp: stamp) }

        /// The inner key and the value of a dictionary's entry; nil for a value that no device
        /// wrote.
        var entry: (key: ExactString, value: PropertyListValue)? {
            guard id.isHiddenEntry else { return (ExactString(id.name), value) }
            guard case .array(let pair) = value, pair.count == 2, case .string(let key) = pair[0]
            else { return nil }
            return (key, pair[1])
        }
    }

    /// The value of a hidden entry, see ``PartID/isHiddenEntry``.
    static func hidden(
        _ key: ExactString, _ value: PropertyListValue
    ) -> PropertyListValue { .array([.string(key), value]) }

    /// The key's own value; nil if there is none.
    let base: ConcurrentValue?
    /// In the order in which they were written, without deletions.
    let all: [Part]
    /// The parts that are not removed, in the same order.
    let parts: [Part]
    /// The extent to which each run's count is removed.
    private let removals: [PartID: Count]
    /// Whether the account is sealed: its server can compare no values and read no names.
    let isSealed: Bool

    init(base: ConcurrentValue?, parts: [Part], isSealed: Bool = false) {
        self.base = base
        self.isSealed = isSealed
        all = parts.inOrder { ($0.stamp, $0.id) < ($1.stamp, $1.id) }
        var removals: [PartID: Count] = [:]
        for part in all where part.id.isRemoval { removals[part.id] = Count(part.value) }
        self.removals = removals
        self.parts = all.filter { part in
            switch part.id.policy {
            case .counter:
                guard !part.id.isRemoval, let count = Count(part.value) else { return false }
                return count.times > removals[part.id.removal]?.times ?? .min
            case let policy? where policy.isExtremum:
                return ComparableValue(removed: part.value) == nil
            default: return true
            }
        }
    }

    /// The policy of the parts. If two versions of an app wrote several kinds, that of the last
    /// part.
    var policy: MergePolicy? { parts.last.flatMap { $0.id.policy } }

    /// The parts of one kind that are not removed.
    func parts(of policy: MergePolicy) -> [Part] { parts.filter { $0.id.policy == policy } }

    /// The value of a part, removed or not; nil if there is none or it was deleted.
    func content(of id: PartID) -> PropertyListValue? { all.first { $0.id == id }?.value }

    /// The part of a run's count that is not removed.
    func counted(by part: Part) -> Number? {
        Count(part.value).map { $0.total + (removals[part.id.removal]?.total ?? .zero) }
    }

    func isRemoved(_ id: PartID) -> Bool { removals[id.removal] != nil }

    /// The writes that remove everything visible of the parts, and nothing added to them later.
    var removal: [PartID: Content] {
        Dictionary(last: parts.lazy.map(removal(of:)))
    }

    /// The write that removes one of them.
    func removal(of part: Part) -> (PartID, Content) {
        switch part.id.policy {
        case .counter:
            if let count = Count(part.value) {
                return (part.id.removal, .value(count.removal.value))
            }
        // Of a sealed value, the server would take the removal for later than any progress.
        case let policy? where policy.isExtremum && !isSealed:
            if ComparableValue(part.value) != nil {
                return (part.id, .value(ComparableValue.removal(of: part.value)))
            }
        default: break
        }
        return (part.id, .deleted)
    }
}

extension MergeState {
    /// The value that the app sees; nil if there is none.
    ///
    /// The same on every device that has the same parts, in whatever order they arrived.
    /// - Complexity: O(*n* log *n*) in the number of parts.
    func value(_ resolver: Resolver?) -> PropertyListValue? {
        guard let policy else { return parts.last?.value ?? base?.value }
        let parts = parts(of: policy)
        return switch policy {
        case .counter: sum(of: parts)
        case .maximum, .minimum: extremum(of: parts, policy)
        case .array: array(of: parts)
        case .dictionary: dictionary(of: parts)
        case .register: resolved(parts, resolver)
        }
    }

    /// Adds numbers in the order of the parts' names, because the order matters for real numbers.
    private func sum(of parts: [Part]) -> PropertyListValue {
        let numbers = parts.inOrder { $0.id < $1.id }.compactMap(counted(by:))
        return numbers.reduce(base.flatMap { Number($0.value) } ?? .zero, +).value
    }

    /// The greatest or least among the values of the class written last. Values of other classes
    /// come from another version of the app.
    private func extremum(of parts: [Part], _ policy: MergePolicy) -> PropertyListValue? {
        let all = ([base?.value] + parts.map { $0.value }).compactMap {
            $0.flatMap { ComparableValue($0) }
        }
        guard let last = all.last?.class else { return parts.last?.value }
        return all.filter { $0.class == last }
            .max { policy.prefers($1, to: $0) }?.value
    }

    private func array(of parts: [Part]) -> PropertyListValue {
        var elements: [PropertyListValue] = []
        var seen: Set<PropertyListValue> = []
        if case .array(let base)? = base?.value {
            elements = base.filter { seen.insert($0).inserted }
        }
        return .array(elements + parts.map { $0.value }.filter { seen.insert($0).inserted })
    }

    private func dictionary(of parts: [Part]) -> PropertyListValue {
        var entries: [ExactString: PropertyListValue] = [:]
        if case .dictionary(let base)? = base?.value { entries = base }
        for part in parts {
            if let entry = part.entry { entries[entry.key] = entry.value }
        }
        return .dictionary(entries)
    }

    /// The value that the rule makes of all siblings, equal ones counted once; the last one without
    /// a rule.
    private func resolved(_ parts: [Part], _ resolver: Resolver?) -> PropertyListValue? {
        let values = concurrentValues(parts)
        guard let resolver else { return values.last?.value }
        return values.merged(by: resolver)
    }

    private func concurrentValues(_ parts: [Part]) -> [ConcurrentValue] {
        var values = parts.map { $0.concurrent }
        if let base { values.append(base) }
        return values.inOrder { ($0.stamp, $0.value) < ($1.stamp, $1.value) }
    }

    /// The values that only the app's own rule can merge, the earliest first; empty if there is
    /// nothing to merge.
    var conflict: [ConcurrentValue] {
        guard policy == .register else { return [] }
        let values = concurrentValues(parts(of: .register))
        return values.contains { $0.value != values[0].value } ? values : []
    }
}

/// One of several values written without knowledge of one another.
package struct ConcurrentValue: Hashable, Sendable {
    package var value: PropertyListValue
    package var stamp: Stamp

    package init(value: PropertyListValue, stamp: Stamp) {
        self.value = value
        self.stamp = stamp
    }
}

extension [ConcurrentValue] {
    /// The value that a rule makes of all, one after the other; nil if there is none.
    package func merged(by rule: Resolver) -> PropertyListValue? {
        guard let first else { return nil }
        return dropFirst().reduce(first) { earlier, later in
            guard earlier.value != later.value else { return later }
            return ConcurrentValue(value: rule(earlier, later), stamp: later.stamp)
        }.value
    }
}

/// Values of a key that wait for the app's own rule.
package struct Conflict: Sendable {
    package var key: Key
    /// The earliest first.
    package var values: [ConcurrentValue]
    package var rule: Resolver

    /// The value that the rule makes of them. Calls it.
    package var result: PropertyListValue {
        guard let result = values.merged(by: rule) else {
            preconditionFailure("A conflict has no values.")
        }
        return result
    }
}

/// An app's own rule: merges the earlier and the later of two values. It must give the same result
/// for the same values on every device.
package typealias Resolver =
    @Sendable (_ earlier: ConcurrentValue, _ later: ConcurrentValue) -> PropertyListValue
