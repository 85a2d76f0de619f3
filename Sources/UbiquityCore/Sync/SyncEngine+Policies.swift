// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// Declares how writes of a key merge from now on; nil: the later one wins, as without a policy.
    /// What the key has stays.
    ///
    /// - Parameter resolver: The app's own rule, for ``MergePolicy/register``. What is seen of the key
    ///   changes at once, and nobody is told.
    package mutating func setPolicy(
        _ policy: MergePolicy?, resolver: Resolver? = nil, for key: Key
    ) {
        policies[key] = policy
        entries.setResolver(policy == .register ? resolver : nil, for: key)
    }

    package func policy(of key: Key) -> MergePolicy? { policies[key] }

    /// The keys under which a value was written since that their policy cannot merge.
    package mutating func takeMisfits() -> Set<Key> {
        guard !misfits.isEmpty else { return [] }
        defer { misfits = [] }
        return misfits
    }

    /// Whether a run must count on as another one: it has counted more often under a key than who kept its
    /// count knows, which is an older copy then; or what it had counted was deleted.
    package func hasCounted(moreThan count: KeptCount, under key: Key) -> Bool {
        let entry = entries[key.part(count.part)]
        if case .deleted? = entry?.visible { return true }
        let known = entry?.visible?.value.flatMap { Count($0) }
        return known.map {
            $0.times > count.times || $0.times == count.times && $0.value != count.content.value
        } ?? false
    }

    /// What writes of keys with a policy mean: the app goes on from what it sees.
    func proposals(for changes: [Key: Content]) -> [Key: Proposal] {
        guard !policies.isEmpty else { return [:] }
        var proposals: [Key: Proposal] = [:]
        for (key, content) in changes {
            guard let policy = policies[key] else { continue }
            proposals[key] = Proposal(policy, from: self[key], to: content.value)
        }
        return proposals
    }

    /// Those of the engine that this one replaces.
    mutating func adoptPolicies(of other: SyncEngine) {
        for (key, policy) in other.policies {
            setPolicy(policy, resolver: other.entries.resolver(of: key), for: key)
        }
    }
}
