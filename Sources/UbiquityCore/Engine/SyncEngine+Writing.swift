// SPDX-License-Identifier: Apache-2.0

/// How this run writes keys with a policy.
struct Policies: Sendable {
    fileprivate var declared: [Key: MergePolicy] = [:]
    /// The names of the parts that this run writes.
    var names: PartNames
    /// The keys that got a value which their policy cannot merge.
    var misfits: Set<Key> = []

    init(names: PartNames) { self.names = names }

    subscript(key: Key) -> MergePolicy? { declared.isEmpty ? nil : declared[key] }
}

extension SyncEngine {
    /// Writes of the app as one transaction: all or nothing, here and everywhere.
    ///
    /// An equal value or the removal of an absent key is not a change. But if anything in a
    /// transaction changes, all of it is written. Otherwise an earlier transaction could win the
    /// omitted keys, and neither would be seen as a whole.
    ///
    /// - Throws: ``LimitViolation`` if the transaction does not fit. Nothing has changed then, and
    ///   a violation of the quota is also posted as a ``Notice``.
    ///
    /// - Parameter operations: Writes of other keys under a policy.
    package mutating func write(
        _ changes: [Key: Content], merging operations: [Key: MergeOperation] = [:],
        at now: ClockReading
    ) throws(LimitViolation) {
        var operations = operations
        for (key, content) in changes {
            guard let policy = policies[key] else { continue }
            operations[key] = MergeOperation(policy, from: self[key], to: content.value)
        }
        let plain = changes.filter { operations[$0.key] == nil }
        var all: [Change] = []
        if plain.contains(where: { $0.value.value != self[$0.key] || isChange($0.key, $0.value) }) {
            for (key, content) in plain { all += replacing(key, by: content) }
        }
        for (key, operation) in operations { all += merging(operation, into: key) }
        try write(all, at: now)
    }

    /// Writes one key as a transaction of its own.
    package mutating func write(
        _ key: Key, _ content: Content, at now: ClockReading
    ) throws(LimitViolation) {
        guard entries.hasParts(key) || policies[key] != nil else {
            return try write(CollectionOfOne(Change(key: key, content: content)), at: now)
        }
        try write([key: content], at: now)
    }

    /// A write without a policy replaces everything that its author saw.
    private func replacing(_ key: Key, by content: Content) -> [Change] {
        let removal = entries.hasParts(key) ? entries.mergeState(key).removal : [:]
        return [Change(key: key, content: content)]
            + removal.map { Change(key: key.part($0.key), content: $0.value) }
    }

    private mutating func merging(_ operation: MergeOperation, into key: Key) -> [Change] {
        guard operation.fits else {
            policies.misfits.insert(key)
            return replacing(key, by: operation.value.map(Content.value) ?? .deleted)
        }
        let changes = PartChanges(
            operation, into: key, of: entries.mergeState(key), visible: self[key],
            shown: entries.shown(of: key), names: &policies.names)
        let parts = changes.parts.map { Change(key: key.part($0.key), content: $0.value) }
        return parts + (changes.base.map { [Change(key: key, content: $0)] } ?? [])
    }

    /// Gives keys the values that they had, as one transaction with a new stamp, which can be undone
    /// like any other. Keys that have their value are not written.
    ///
    /// Under a policy it writes the difference, also for an app that knows nothing of the policy: a
    /// counter goes back by what was counted since, and what others count meanwhile stays. A
    /// maximum or minimum, which no write under its policy could take back, is replaced as far as
    /// this device has seen it; so is an integer if a sum or difference does not fit into an `Int64`.
    /// - Throws: As ``write(_:merging:at:)``.
    package mutating func revert(
        to contents: [Key: Content], at now: ClockReading
    ) throws(LimitViolation) {
        let before = self
        try revert(to: contents, replacing: [], at: now)
        let missed = contents.filter { key, content in
            guard case .integer? = content.value, mergingPolicy(of: key) == .counter else {
                return false
            }
            return self[key] != content.value
        }
        if missed.isEmpty { return }
        self = before
        try revert(to: contents, replacing: Set(missed.keys), at: now)
    }

    private mutating func revert(
        to contents: [Key: Content], replacing replaced: Set<Key>, at now: ClockReading
    ) throws(LimitViolation) {
        var all: [Change] = []
        // What the account's key did not open is nobody's value.
        for (key, content) in contents where content.value != self[key] && !content.isSealed {
            all +=
                replaced.contains(key)
                ? replacing(key, by: content) : reverting(key, to: content)
        }
        try write(all, at: now)
    }

    private mutating func reverting(_ key: Key, to content: Content) -> [Change] {
        if let policy = mergingPolicy(of: key), !policy.isExtremum {
            let operation = MergeOperation(policy, from: self[key], to: content.value)
            if operation.fits { return merging(operation, into: key) }
        }
        return replacing(key, by: content)
    }

    /// The declared policy, or that of the parts.
    private func mergingPolicy(of key: Key) -> MergePolicy? {
        policies[key] ?? (entries.hasParts(key) ? entries.mergeState(key).policy : nil)
    }

    /// Writes as one transaction, or as several if that would be more than one push may carry: all
    /// or nothing on this device.
    /// - Parameter reverts: Whether the keys are given earlier values, see ``revert(to:at:)``.
    /// - Throws: As ``write(_:merging:at:)``.
    package mutating func writeInParts(
        _ contents: [Key: Content], reverts: Bool = false, at now: ClockReading
    ) throws(LimitViolation) {
        let before = self
        do throws(LimitViolation) {
            if reverts { try revert(to: contents, at: now) } else { try write(contents, at: now) }
        } catch {
            guard case .pushBytes = error, contents.count > 1 else { throw error }
            self = before
            let keys = contents.keys.inOrder()
            let halves = [keys.prefix(keys.count / 2), keys.suffix(from: keys.count / 2)]
            do throws(LimitViolation) {
                for half in halves {
                    let half = Set(half)
                    let contents = contents.filter { half.contains($0.key) }
                    try writeInParts(contents, reverts: reverts, at: now)
                }
            } catch {
                self = before
                if case .keyTooLong = error { throw error }
                notices.postRefused(Set(contents.keys.map { $0.whole }))
                throw error
            }
        }
    }

    private struct Change {
        var key: Key
        var content: Content
    }

    private mutating func write(
        _ changes: some Collection<Change>, at now: ClockReading
    ) throws(LimitViolation) {
        guard changes.contains(where: { isChange($0.key, $0.content) }) else { return }
        let changed =
            notifiesOwnWrites ? changes.filter { $0.content.value != entries.content($0.key) } : []
        do throws(LimitViolation) {
            try checkLimits(of: changes)
            try checkPush(of: changes)
        } catch {
            if case .keyTooLong = error { throw error }
            notices.postRefused(Set(changes.map { $0.key.whole }))
            throw error
        }
        let (timestamp, provisional) = clock.issue(at: now)
        let transaction = transaction(for: changes)
        var stamp = Stamp(
            timestamp, device,
            digest: ValueFingerprint.digest(of: changes.lazy.map { ($0.key, $0.content) }))
        if provisional == nil { stamp = sealed(stamp) }
        for change in changes {
            if keepsRedoLog { redoLog.append(change.key) }
            if change.key.isPart, change.content == .deleted, entries.isNew(change.key) {
                entries.update(change.key) { $0.dropPending() }
                continue
            }
            let record = Record(key: change.key, content: change.content, stamp: stamp)
            entries.write(
                PendingWrite(
                    record: record, transaction: transaction, provisional: provisional,
                    had: entries.had(change.key), isUnkept: settings.excludes(change.key),
                    generation: generation))
        }
        let merged = entries.refreshViews(.ownWrite)
        guard notifiesOwnWrites else { return }
        let plain = changed.map { $0.key }.filter { !entries.hasParts($0) }
        post(Notice(.ownWrite, merged.union(plain)))
    }

    private func checkLimits(of changes: some Collection<Change>) throws(LimitViolation) {
        var after = usage
        for change in changes {
            try meta.limits.check(change.key, change.content)
            after.replace(
                entries.content(change.key), by: change.content.value, of: change.key)
        }
        try meta.limits.check(
            from: usage, to: after, by: changes.lazy.map { (key: $0.key, content: $0.content) })
    }

    /// Checks that one push can carry the changes, together with the transactions that they join. What
    /// makes a waiting transaction smaller always passes, and so do deletions, even if the
    /// transaction must be split then.
    private func checkPush(of changes: some Collection<Change>) throws(LimitViolation) {
        let max = meta.limits.pushBytesMax
        let added = changes.reduce(0) { $0 + Record.pushBytes(of: $1.key, $1.content) }
        // The usual cases, without looking at what waits.
        guard waitingBytesBound + added > max else { return }
        let joined = Set(changes.compactMap { entries.transaction(of: $0.key) })
        if joined.isEmpty, added <= max { return }
        let replaced = changes.reduce(0) { sum, change in
            sum + (entries[change.key]?.pending?.record.pushBytes ?? 0)
        }
        if joined.count == 1, added <= replaced { return }
        // Acknowledged writes may have to be sent again.
        let bytes = bytesOfTransactions(writing: waiting.union(outbox.acknowledged.keys))
        let after = joined.reduce(added - replaced) { $0 + (bytes[$1] ?? 0) }
        guard after > max else { return }
        guard added <= max, changes.allSatisfy({ $0.content == .deleted }) else {
            throw .pushBytes(bytes: after, max: max)
        }
    }

    /// An upper bound of the cost of all waiting writes in a push: what they write is visible.
    var waitingBytesBound: Int {
        let count = waiting.count + outbox.acknowledged.count
        return usage.bytes + count * (Record.pushBytesMin + 2 * Key.bytesMax)
    }

    /// The transaction number for new writes.
    ///
    /// A write that replaces one of a waiting transaction joins it: the rest of that transaction
    /// must neither become visible nor be refused without it.
    private mutating func transaction(for changes: some Collection<Change>) -> UInt64 {
        var first: UInt64?
        for change in changes {
            guard let replaced = entries.transaction(of: change.key) else { continue }
            first = min(first ?? replaced, replaced)
        }
        guard let first else { return random.next() }
        for change in changes {
            guard let other = entries.transaction(of: change.key), other != first
            else { continue }
            join(other, into: first)
        }
        return first
    }

    mutating func join(_ pairs: [(UInt64, UInt64)]) {
        var names: [UInt64: UInt64] = [:]
        for (one, other) in pairs {
            var (one, other) = (one, other)
            while let name = names[one] { one = name }
            while let name = names[other] { other = name }
            guard one != other else { continue }
            names[max(one, other)] = min(one, other)
            join(max(one, other), into: min(one, other))
        }
    }

    private mutating func join(_ transaction: UInt64, into other: UInt64) {
        for key in waiting where entries.transaction(of: key) == transaction {
            entries.update(key) { $0.pending?.transaction = other }
        }
    }
}

extension SyncEngine {
    /// Sets how writes of a key merge from now on. With nil the later one wins. Stored values stay.
    ///
    /// - Parameters:
    ///   - resolver: The app's own rule, for ``MergePolicy/register``. The engine does not call it:
    ///     see ``takeConflict()``. The visible value then changes without a notification.
    package mutating func setPolicy(
        _ policy: MergePolicy?, resolver: Resolver? = nil, for key: Key
    ) {
        policies.declared[key] = policy
        entries.setResolver(policy == .register ? resolver : nil, for: key)
    }

    /// Whether values wait for the app's own rule, and nobody calls it yet.
    package var hasConflict: Bool { entries.hasConflict }

    /// The next values that wait for the app's own rule, so that it can be called without a lock.
    /// Until ``decide(_:as:)``, the app sees what it saw before. Nil if there are none.
    package mutating func takeConflict() -> Conflict? { entries.takeConflict() }

    /// Shows the value that the app's own rule has made, and posts the notice that has waited for
    /// it, unless the key has changed since. Then it waits for the rule again.
    package mutating func decide(_ conflict: Conflict, as value: PropertyListValue) {
        guard let reason = entries.decide(conflict, as: value) else { return }
        if reason != .ownWrite || notifiesOwnWrites { post(Notice(reason, [conflict.key])) }
    }

    package func policy(of key: Key) -> MergePolicy? { policies[key] }

    /// Returns and clears the keys that got a value which their policy cannot merge.
    package mutating func takeMisfits() -> Set<Key> {
        guard !policies.misfits.isEmpty else { return [] }
        defer { policies.misfits = [] }
        return policies.misfits
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

    /// Takes over the policies of the engine that this one replaces.
    mutating func adoptPolicies(of other: SyncEngine) {
        for (key, policy) in other.policies.declared {
            policies.declared[key] = policy
            entries.adoptRule(of: key, from: other.entries)
        }
    }
}
