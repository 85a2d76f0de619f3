// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// Writes of the app, as one transaction: all of it or nothing, here and everywhere.
    ///
    /// What is already so is passed over: an equal value, the removal of an absent key.
    ///
    /// - Throws: ``LimitViolation`` if the transaction does not fit; then nothing changed, and a
    ///   refusal for a quota is told as a ``Notice`` too.
    package mutating func write(
        _ changes: [Key: Content], at now: ClockReading
    ) throws(LimitViolation) {
        let changes = changes.filter { $0.value.value != self[$0.key] }
        guard !changes.isEmpty else { return }
        do throws(LimitViolation) {
            try checkLimits(of: changes)
        } catch {
            if case .keyTooLong = error { throw error }
            post(Notice(.quotaViolation, Set(changes.keys)))
            throw error
        }
        let (timestamp, provisional) = clock.issue(at: now)
        let transaction = transaction(for: changes.keys)
        for (key, content) in changes {
            let record = Record(key: key, content: content, stamp: Stamp(timestamp, device))
            update(key) {
                $0.pending = PendingWrite(
                    record: record, transaction: transaction, provisional: provisional)
                $0.isSettled = false
            }
        }
        if tellsOwnWrites { post(Notice(.ownWrite, Set(changes.keys))) }
    }

    private func checkLimits(of changes: [Key: Content]) throws(LimitViolation) {
        var after = usage
        for (key, content) in changes {
            try meta.limits.check(key, content)
            after.replace(entries[key]?.visible, by: content)
        }
        try meta.limits.check(from: usage, to: after)
    }

    /// The number of the transaction for new writes of these keys.
    ///
    /// A write that replaces one of a waiting transaction joins it: the rest of that transaction
    /// must not become visible, nor be refused, without it.
    private mutating func transaction(for keys: some Sequence<Key>) -> UInt64 {
        let joined = Set(keys.compactMap { entries[$0]?.pending?.transaction })
        guard let transaction = joined.min() else { return random.next() }
        if joined.count > 1 {
            for key in waiting where joined.contains(entries[key]?.pending?.transaction ?? 0) {
                update(key) { $0.pending?.transaction = transaction }
            }
        }
        return transaction
    }
}
