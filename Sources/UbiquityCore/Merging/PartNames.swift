// SPDX-License-Identifier: Apache-2.0

/// Makes names for new parts that no other run of any app ever uses.
struct PartNames: Sendable {
    /// A part that this run changes in place, and its last content.
    private struct Own: Sendable {
        var id: PartID
        var content: PropertyListValue
    }

    /// The name of this run.
    private let run: String
    private var count = 0
    /// By the names of the keys.
    private var own: [ExactString: Own] = [:]

    /// - Parameter run: A random number.
    init(run: UInt64) { self.run = DeviceID.hexadecimal(run) }

    /// The part that this run continues under a key, and its content; nil if it must begin a new
    /// one.
    ///
    /// A run only continues a part that is as it left it. A removed part stays removed, and a
    /// refused one may come back with an older copy.
    func continued(
        _ policy: MergePolicy, under key: Key, in state: MergeState
    ) -> (id: PartID, content: PropertyListValue)? {
        guard let own = own[key.name], own.id.policy == policy, !state.isRemoved(own.id),
            state.content(of: own.id) == own.content
        else { return nil }
        return (own.id, own.content)
    }

    /// The name for a part that this run is going to change in place.
    mutating func begin(_ policy: MergePolicy, under key: Key) -> PartID {
        own[key.name] == nil ? name(policy) : next(policy)
    }

    /// Takes note of what this run leaves in a part that it changes in place.
    mutating func leave(_ content: PropertyListValue, in id: PartID, of key: Key) {
        own[key.name] = Own(id: id, content: content)
    }

    /// A new name that sorts after those before.
    mutating func next(_ policy: MergePolicy) -> PartID {
        count += 1
        // Counts up to 36 to the seventh power.
        let digits = String(count, radix: 36)
        let zeros = String(repeating: "0", count: max(0, 7 - digits.count))
        return PartID("\(name(policy)).\(zeros)\(digits)")!
    }

    func name(_ policy: MergePolicy) -> PartID { PartID("\(policy.rawValue)\(run)")! }
}
