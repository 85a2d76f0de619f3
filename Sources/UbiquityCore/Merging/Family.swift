// SPDX-License-Identifier: Apache-2.0

/// All that one key has: its own value, which a write without a policy put there, and its parts.
struct Family: Sendable {
    struct Part: Sendable {
        var id: PartID
        var value: PropertyListValue
        var stamp: Stamp

        init(id: PartID, _ sibling: Sibling) {
            (self.id, value, stamp) = (id, sibling.value, sibling.stamp)
        }
    }

    /// What the key itself has; nil: nothing.
    let base: Sibling?
    /// In the order in which they were written; deletions are not among them.
    let all: [Part]
    /// Those that are not removed, likewise.
    let parts: [Part]
    /// How far each run's count is removed.
    private let removals: [PartID: Count]

    init(base: Sibling?, parts: [Part]) {
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
            case .maximum, .minimum: return Magnitude(removed: part.value) == nil
            default: return true
            }
        }
    }

    /// The kind of the parts; of several, which two versions of an app wrote, that of the last.
    var policy: MergePolicy? { parts.last.flatMap { $0.id.policy } }

    /// Those of one kind that are not removed.
    func parts(of policy: MergePolicy) -> [Part] { parts.filter { $0.id.policy == policy } }

    /// What a part has, removed or not; nil: nothing, or it was deleted.
    func content(of id: PartID) -> PropertyListValue? { all.first { $0.id == id }?.value }

    /// What a run has counted that is not removed.
    func counted(by part: Part) -> Number? {
        Count(part.value).map { $0.total + (removals[part.id.removal]?.total ?? .zero) }
    }

    func isRemoved(_ id: PartID) -> Bool { removals[id.removal] != nil }

    /// What removes all that is seen of the parts, and nothing that comes to them later.
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
            if Magnitude(part.value) != nil {
                return (part.id, .value(Magnitude.removal(of: part.value)))
            }
        default: break
        }
        return (part.id, .deleted)
    }

    /// The same for one of them.
    func removal(of part: Part) -> (PartID, Content) { Self.removal(of: part) }
}
