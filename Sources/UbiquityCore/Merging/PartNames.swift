// SPDX-License-Identifier: Apache-2.0

/// Names for new parts, which no other run of any app ever gives.
struct PartNames: Sendable {
    /// A part that this run changes in place, and what it left there.
    private struct Own: Sendable {
        var id: PartID
        var content: PropertyListValue
    }

    /// Of this run.
    private let run: String
    private var count = 0
    /// By the names of the keys.
    private var own: [ExactString: Own] = [:]

    /// - Parameter run: Drawn by chance.
    init(run: UInt64) { self.run = DeviceID.hexadecimal(run) }

    /// The part in which this run goes on under a key, and what that has; nil: in a new one.
    ///
    /// It goes on only in a part that it finds as it left it: what was removed stays so, and what was
    /// refused may come back by an older copy.
    func continued(
        _ policy: MergePolicy, under key: Key, in family: Family
    ) -> (id: PartID, content: PropertyListValue)? {
        guard let own = own[key.name], own.id.policy == policy, !family.isRemoved(own.id),
            family.content(of: own.id) == own.content
        else { return nil }
        return (own.id, own.content)
    }

    /// The name of a part that this run is going to change in place.
    mutating func begin(_ policy: MergePolicy, under key: Key) -> PartID {
        own[key.name] == nil ? name(policy) : next(policy)
    }

    /// Takes note of what this run leaves in a part that it changes in place.
    mutating func leave(_ content: PropertyListValue, in id: PartID, of key: Key) {
        own[key.name] = Own(id: id, content: content)
    }

    /// A new name, later in order than those before.
    mutating func next(_ policy: MergePolicy) -> PartID {
        count += 1
        // Up to 36 to the seventh.
        let digits = String(count, radix: 36)
        let zeros = String(repeating: "0", count: max(0, 7 - digits.count))
        return PartID("\(name(policy)).\(zeros)\(digits)")!
    }

    func name(_ policy: MergePolicy) -> PartID { PartID("\(policy.rawValue)\(run)")! }
}
