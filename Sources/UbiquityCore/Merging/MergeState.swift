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
    }

    /// The key's own value; nil if there is none.
    let base: ConcurrentValue?
    /// In the order in which they were written, without deletions.
    let all: [Part]
    /// The parts that are not removed, in the same order.
    let parts: [Part]
    /// The extent to which each run's count is removed.
    private let removals: [PartID: Count]

    init(base: ConcurrentValue?, parts: [Part]) {
        self.base = base
        all = parts.sorted { ($0.stamp, $0.id) < ($1.stamp, $1.id) }
        var removals: [PartID: Count] = [:]
        for part in all where part.id.isRemoval { removals[part.id] = Count(part.value) }
        self.removals = removals
        self.parts = all.filter { part in
            switch part.id.policy {
            case .counter:
                guard !part.id.isRemoval, let count = Count(part.value) else { return false }
                return count.times > removals[part.id.removal]?.times ?? .min
            case .maximum, .minimum: return ComparableValue(removed: part.value) == nil
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
        Dictionary(parts.map(Self.removal(of:))) { $1 }
    }

    private static func removal(of part: Part) -> (PartID, Content) {
        switch part.id.policy {
        case .counter:
            if let count = Count(part.value) {
                return (part.id.removal, .value(count.removal.value))
            }
        case .maximum, .minimum:
            if ComparableValue(part.value) != nil {
                return (part.id, .value(ComparableValue.removal(of: part.value)))
            }
        default: break
        }
        return (part.id, .deleted)
    }

    /// The write that removes one of them.
    func removal(of part: Part) -> (PartID, Content) { Self.removal(of: part) }
}
