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
    var base: Sibling?
    /// In the order in which they were written; deletions are not among them.
    private(set) var parts: [Part]

    init(base: Sibling?, parts: [Part]) {
        self.base = base
        self.parts = parts.sorted { ($0.stamp, $0.id) < ($1.stamp, $1.id) }
    }

    /// The kind of the parts; of several, which two versions of an app wrote, that of the last.
    var policy: MergePolicy? { parts.last.flatMap { $0.id.policy } }

    /// Those of one kind.
    func parts(of policy: MergePolicy) -> [Part] { parts.filter { $0.id.policy == policy } }

    /// The time at which the last of it was written.
    var stamp: Stamp? { [base?.stamp, parts.last?.stamp].compactMap(\.self).max() }
}
