// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Declares what becomes of conflicting writes of a key. To be called when the app starts, before
    /// the key is used: it holds for what this process writes from now on.
    ///
    /// A value that the policy cannot merge, such as a dictionary under ``ConflictPolicy/maximum``, is
    /// written as without a policy, and the log and ``UbiquityAdditions/errors`` say so. A value from
    /// before the policy counts as the first one. A name that cannot be a key is ignored.
    public func setConflictPolicy(_ policy: ConflictPolicy, forKey aKey: String) {
        guard let key = try? Key(aKey) else { return }
        backing.driver.change { engine in
            engine.setPolicy(policy.merging, resolver: policy.resolver, for: key)
        }
    }

    /// As ``setConflictPolicy(_:forKey:)``, for a typed key.
    public func setConflictPolicy(
        _ policy: ConflictPolicy, for key: UbiquityKey<some Codable & Sendable>
    ) {
        setConflictPolicy(policy, forKey: key.name)
    }

    /// Changes a value, and writes what the change was, not only its outcome.
    ///
    /// Under a conflict policy, `set` says what is different from what the store has at that moment. What
    /// another device added between an app's reading and its writing would count as removed by it; with
    /// this it stays. Without a policy it is a reading and then a writing.
    ///
    /// - Parameters:
    ///   - key: Under which the value is.
    ///   - body: Is given the value, or the key's default where there is none or it cannot be read, and
    ///     changes it. It may use the store.
    /// - Throws: What the body throws, and ``UbiquityError`` as ``UbiquitousKeyValueStore/set(_:for:)``.
    ///   Then nothing was written.
    public func update<Value>(
        _ key: UbiquityKey<Value>, _ body: (inout Value) throws -> Void
    ) throws {
        let stored = value(key.name)
        var value =
            stored.flatMap { try? TypedValue.decode($0, as: Value.self) } ?? key.defaultValue
        try body(&value)
        let changed: PropertyListValue?
        do { changed = try TypedValue.encode(value) } catch {
            throw UbiquityError(refused: key.name, error)
        }
        try propose(changed, over: stored, forKey: key.name)
    }

    /// Adds to a key as ``ConflictPolicy/counter`` does, whether that was declared for it or not.
    ///
    /// A value that is no number is replaced. Refused as ``UbiquitousKeyValueStore/set(_:forKey:)-(Any?,_)``
    /// refuses, if it does not fit into the store.
    public func increment(forKey aKey: String, by amount: Int64 = 1) {
        do {
            try propose(
                Proposal(.counter, from: .integer(0), to: .integer(amount)), forKey: aKey)
        } catch { refuse(aKey, error) }
    }
}

extension UbiquitousKeyValueStore {
    /// What the app has made of one value, under the key's policy, or as any other write.
    ///
    /// - Parameter base: What the app went on from, which may not be what the store has by now.
    /// - Throws: ``UbiquityError`` if it is refused.
    package func propose(
        _ value: PropertyListValue?, over base: PropertyListValue?, forKey aKey: String
    ) throws {
        do {
            let key = try Key(aKey)
            guard let policy = backing.driver.read({ $0.policy(of: key) }) else {
                return try write([key: value.map(Content.value) ?? .deleted])
            }
            try propose(Proposal(policy, from: base, to: value), forKey: aKey)
        } catch { throw UbiquityError(refused: aKey, error) }
    }

    /// Whether the store knows of a later count of a run than who keeps it.
    package func hasCounted(moreThan count: KeptCount, forKey aKey: String) -> Bool {
        guard let key = try? Key(aKey) else { return false }
        return backing.driver.read { $0.hasCounted(moreThan: count, under: key) }
    }

    /// Sees to it that the store has what a run has counted under a key.
    ///
    /// - Returns: False if it knows of a later count of that run; then nothing was done.
    /// - Throws: ``UbiquityError`` if it is refused.
    package func keep(_ count: KeptCount, forKey aKey: String) throws -> Bool {
        do {
            if hasCounted(moreThan: count, forKey: aKey) { return false }
            try propose(Proposal(count: count), forKey: aKey)
            return true
        } catch { throw UbiquityError(refused: aKey, error) }
    }

    fileprivate func propose(_ proposal: Proposal, forKey aKey: String) throws {
        let key = try Key(aKey)
        try backing.write { engine, now throws(LimitViolation) in
            try engine.write([:], merging: [key: proposal], at: now)
        }
    }
}

extension StoreBacking {
    func reportMisfits(_ keys: Set<Key>) {
        for key in keys.sorted() {
            report(
                UbiquityError(
                    .invalid,
                    "the conflict policy of the key \"\(key)\" cannot merge the value that was "
                        + "written: the later write wins"))
        }
    }
}
