// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// Sets how writes of a key merge from now on. With nil the later one wins. Stored values stay.
    ///
    /// - Parameter resolver: The app's own rule, for ``MergePolicy/register``. The visible value
    ///   changes at once, without a notification.
    package mutating func setPolicy(
        _ policy: MergePolicy?, resolver: Resolver? = nil, for key: Key
    ) {
        policies[key] = policy
        entries.setResolver(policy == .register ? resolver : nil, for: key)
    }

    package func policy(of key: Key) -> MergePolicy? { policies[key] }

    /// Returns and clears the keys that got a value which their policy cannot merge.
    package mutating func takeMisfits() -> Set<Key> {
        guard !misfits.isEmpty else { return [] }
        defer { misfits = [] }
        return misfits
    }

    /// Whether a run must continue under another name: either it has counted more often under the
    /// key than its keeper knows, who then has an older copy, or its count was deleted.
    package func hasCounted(moreThan count: ExternalCount, under key: Key) -> Bool {
        let entry = entries[key.part(count.part)]
        if case .deleted? = entry?.visible { return true }
        let known = entry?.visible?.value.flatMap { Count($0) }
        return known.map {
            $0.times > count.times || $0.times == count.times && $0.value != count.content.value
        } ?? false
    }

    /// The operations for writes of keys with a policy. The app's base is the value that it sees.
    func operations(for changes: [Key: Content]) -> [Key: MergeOperation] {
        guard !policies.isEmpty else { return [:] }
        var operations: [Key: MergeOperation] = [:]
        for (key, content) in changes {
            guard let policy = policies[key] else { continue }
            operations[key] = MergeOperation(policy, from: self[key], to: content.value)
        }
        return operations
    }

    /// Takes over the policies of the engine that this one replaces.
    mutating func adoptPolicies(of other: SyncEngine) {
        for (key, policy) in other.policies {
            setPolicy(policy, resolver: other.entries.resolver(of: key), for: key)
        }
    }
}
