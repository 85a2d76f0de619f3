// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Sets the policy for conflicting writes of a key. Call it when the app starts, before the key
    /// is used. It applies to all further writes of this process.
    ///
    /// A value that the policy cannot merge, such as a dictionary under ``ConflictPolicy/maximum``,
    /// is written without a policy, which is reported in the log and ``UbiquityAdditions/errors``.
    /// A value from before the policy counts as the first one. An invalid key is ignored.
    /// <!-- Snippets/Conflicts.swift: policies -->
    /// ```swift
    /// func declarePolicies(for store: UbiquitousKeyValueStore) {
    ///     store.setConflictPolicy(.maximum, forKey: "level")
    ///     store.setConflictPolicy(.unionOfArrays, forKey: "badges")
    ///     store.setConflictPolicy(.unionOfDictionaries, forKey: "note")
    ///     store.setConflictPolicy(
    ///         .custom { earlier, later in "\(earlier.value)\n\(later.value)" }, forKey: "draft")
    /// }
    ///
    /// func countStart(in store: UbiquitousKeyValueStore) { store.increment(forKey: "starts") }
    /// ```
    public func setConflictPolicy(_ policy: ConflictPolicy, forKey aKey: String) {
        backing.set(policy, forKey: aKey)
    }

    /// Does the same as ``setConflictPolicy(_:forKey:)`` for a typed key, instead of the policy that
    /// the key declares.
    public func setConflictPolicy(
        _ policy: ConflictPolicy, for key: UbiquityKey<some Codable & Sendable>
    ) {
        declare(key)
        setConflictPolicy(policy, forKey: key.name)
    }

    /// Changes a value and writes the change, not only its result.
    ///
    /// Under a conflict policy, `set` writes the difference from the store's current value. A
    /// change that arrived from another device after the app's read would be undone; with this
    /// method it stays. Without a policy, this is a read followed by a write.
    ///
    /// - Parameters:
    ///   - key: The key of the value.
    ///   - body: Gets the value as ``UbiquitousKeyValueStore/subscript(_:)`` gives it, and changes
    ///     it. Under ``ConflictPolicy/counter`` it gets 0 where no number is stored, whatever the
    ///     default, which every device would count once more. It may use the store.
    /// - Throws: The body's error, or ``UbiquityError`` as ``UbiquitousKeyValueStore/set(_:for:)``.
    ///   Nothing is written then.
    public func update<Value>(
        _ key: UbiquityKey<Value>, _ body: (inout Value) throws -> Void
    ) throws {
        declare(key)
        let stored = value(key.name)
        let policy = (try? Key(key.name)).flatMap { key in
            backing.driver.read { $0.policy(of: key) }
        }
        let standard =
            policy == .counter ? .integer(0) : stored == nil ? registered(key.name) : nil
        var value =
            [stored, standard].lazy.compactMap(\.self)
            .compactMap { try? TypedValue.decode($0, as: Value.self) }.first ?? key.defaultValue
        try body(&value)
        let changed: PropertyListValue?
        do { changed = try TypedValue.encode(value) } catch {
            throw UbiquityError(refused: key.name, error)
        }
        try apply(changed, over: stored, forKey: key.name)
    }

    /// Adds to a number as under ``ConflictPolicy/counter``, even if the key has no such policy.
    ///
    /// Replaces a value that is not a number, and begins with 0 where none is stored, whatever is
    /// registered. If the result does not fit into the store, it is
    /// refused as by ``UbiquitousKeyValueStore/set(_:forKey:)-(Any?,_)``.
    public func increment(forKey aKey: String, by amount: Int64 = 1) {
        do {
            try apply(
                MergeOperation(.counter, from: .integer(0), to: .integer(amount)), forKey: aKey)
        } catch { refuse(aKey, error) }
    }
}

extension UbiquitousKeyValueStore {
    /// Writes the app's change of one value, under the key's policy if it has one.
    ///
    /// - Parameter base: The value that the app started from, which may differ from the current
    ///   one.
    /// - Throws: ``UbiquityError`` if it is refused.
    package func apply(
        _ value: PropertyListValue?, over base: PropertyListValue?, forKey aKey: String
    ) throws {
        do {
            let key = try Key(aKey)
            guard let policy = backing.driver.read({ $0.policy(of: key) }) else {
                return try write([key: value.map(Content.value) ?? .deleted])
            }
            try apply(MergeOperation(policy, from: base, to: value), forKey: aKey)
        } catch { throw UbiquityError(refused: aKey, error) }
    }

    /// Whether the store has a later count of a run than `count`.
    package func hasCounted(moreThan count: ExternalCount, forKey aKey: String) -> Bool {
        guard let key = try? Key(aKey) else { return false }
        return backing.driver.read { $0.hasCounted(moreThan: count, under: key) }
    }

    /// Makes sure that the store has a run's count under a key.
    ///
    /// - Returns: False if the store has a later count of that run. Nothing is done then.
    /// - Throws: ``UbiquityError`` if it is refused.
    package func keep(_ count: ExternalCount, forKey aKey: String) throws -> Bool {
        do {
            if hasCounted(moreThan: count, forKey: aKey) { return false }
            try apply(MergeOperation(count: count), forKey: aKey)
            return true
        } catch { throw UbiquityError(refused: aKey, error) }
    }

    fileprivate func apply(_ operation: MergeOperation, forKey aKey: String) throws {
        let key = try Key(aKey)
        try backing.write { engine, now throws(LimitViolation) in
            try engine.write([:], merging: [key: operation], at: now)
        }
    }
}
