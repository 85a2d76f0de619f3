// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// Takes what the stream brought, as one.
    /// - Parameter stamped: The keys of which the app was shown something else by the same event, before.
    mutating func receive(_ changes: ChangeSet, stamped: Shown, at now: ClockReading) {
        let reason: Notice.Reason
        var changed: Set<Key>
        // What was counted may come to be in the sum, and then be no part of its own.
        var shown = stamped
        for key in Set(changes.records.lazy.filter(\.key.isPart).map(\.key.whole))
        where shown.values[key] == nil {
            shown.values[key] = .some(self[key])
        }
        if changes.isWhole {
            reason = meta.hasCompletedFirstSync ? .serverChange : .initialSync
            changed = takeWhole(changes)
        } else {
            reason = .serverChange
            changed = merge(changes.records, areNews: true)
        }
        dropTombstones(before: changes.horizon)
        dropTombstones(beyond: intake.deletionsMax)
        meta.cursor = changes.cursor
        meta.link.lastSync = clock.milliseconds(at: now)
        isMetaUnsaved = true
        changed.formUnion(pass(changes.cursor))
        post(Notice(reason, shown.changed(besides: changed, in: self)))
    }

    /// What the device takes in of its store, see ``IntakeLimits``.
    package var intake: IntakeLimits {
        IntakeLimits(meta.cursor == nil && configuredAt == nil ? nil : meta.limits)
    }

    /// Why the device does not take what a server sends: its store would be more than one may be. Nil:
    /// it does.
    func refusal(of changes: ChangeSet) -> LinkFailure? {
        changes.isWhole
            ? refusal(of: changes.records, from: Usage()) { _ in nil }
            : refusal(of: changes.records, from: entries.agreed) { entries[$0]?.confirmed }
    }

    /// The same of an answer to a push: the records in it are taken later, with those that wait already.
    func refusal(of answer: PushAnswer) -> LinkFailure? {
        let superseding = answer.superseding
        guard !superseding.isEmpty else { return nil }
        return refusal(of: settledWrites.values.map(\.held) + superseding, from: entries.agreed) {
            entries[$0]?.confirmed
        }
    }

    private func refusal(
        of records: [Record], from old: Usage, replacing confirmed: (Key) -> Record?
    ) -> LinkFailure? {
        var new = old
        var latest: [Key: Record] = [:]
        for record in records {
            let before = latest.updateValue(record, forKey: record.key) ?? confirmed(record.key)
            new.replace(before?.content.value, by: record.content.value, of: record.key)
        }
        do { try intake.check(from: old, to: new) } catch {
            return LinkFailure(
                .unreachable, "the server sends more than a store may have: \(error)")
        }
        return nil
    }

    /// What an event showed the app of some keys, before and while it was handled.
    struct Shown {
        /// Before.
        var values: [Key: PropertyListValue?] = [:]
        var changed: Set<Key> = []

        /// Of all keys that changed meanwhile, those that are not again as they were.
        func changed(besides more: Set<Key>, in engine: SyncEngine) -> Set<Key> {
            changed.union(more).filter { key in values[key].map { $0 != engine[key] } ?? true }
        }
    }

    /// Merges records of the server. To take one twice changes nothing.
    /// - Returns: The keys of which the app sees another value now.
    /// - Parameter areNews: See ``Entry/merge(_:isNews:)``: the stream brings them in their order.
    mutating func merge(_ records: [Record], areNews: Bool = false) -> Set<Key> {
        change(records) { entry, record in entry.merge(record, isNews: areNews) }
    }

    /// Takes the whole store of the server.
    private mutating func takeWhole(_ changes: ChangeSet) -> Set<Key> {
        let cause = wholeCause ?? .forgotten
        wholeCause = nil
        unsettle(before: .max)
        switch cause {
        case .firstSync: return takeFirst(changes.records)
        case .forgotten: return takeListedOnly(changes.records)
        case .otherHistory:
            // An answer that is still under way is about the history that is gone.
            pushInFlight = nil
            passedCursors = []
            return takeAndOffer(changes.records)
        }
    }

    /// Of keys with a policy, nothing is discarded: what the device and what the account has merge.
    private mutating func takeFirst(_ records: [Record]) -> Set<Key> {
        meta.hasCompletedFirstSync = true
        let keys = Set(records.map(\.key.whole))
        let merged = keys.filter { policies[$0] != nil || entries.hasParts($0) }
        let discarded = settings.firstSync == .serverWins ? keys.subtracting(merged) : []
        let changed = change(records) { entry, record in
            let key = record.key
            if merged.contains(key), entry.pending?.record.content.isPlaceholder ?? false {
                entry.dropPending()
            }
            if discarded.contains(key.whole) { entry.dropPending() }
            entry.merge(record)
        }
        // A plain write of what the server has only parts of.
        let rest = discarded.filter { entries[$0]?.pending != nil }
        return rest.reduce(into: changed) { changed, key in
            if entries.update(key, { $0.dropPending() }) { changed.insert(key) }
        }.union(entries.refreshViews())
    }

    private mutating func takeListedOnly(_ records: [Record]) -> Set<Key> {
        let listed = Set(records.map(\.key))
        var changed = change(records) { entry, record in
            entry.confirmed = record
            entry.dropPendingIfBeaten()
        }
        for (key, entry) in entries.all where entry.confirmed != nil && !listed.contains(key) {
            if entries.update(key, { $0.confirmed = nil }) { changed.insert(key) }
        }
        return changed.union(entries.refreshViews())
    }

    /// Takes the store of a server with another history, and makes what it lacks wait for it, under
    /// the stamps that it had: what was one transaction has one stamp.
    private mutating func takeAndOffer(_ records: [Record]) -> Set<Key> {
        let listed = Dictionary(records.map { ($0.key, $0) }) { $1 }
        var transactions: [Stamp: UInt64] = [:]
        var changed: Set<Key> = []
        for (key, entry) in entries.all {
            guard let mine = entry.confirmed else { continue }
            let theirs = listed[key]
            let isOffered = !mine.isOfServer && (theirs.map { mine.wins(over: $0) } ?? true)
            let transaction = transactions[mine.stamp] ?? random.next()
            transactions[mine.stamp] = transaction
            let isChanged = entries.update(key) {
                $0.confirmed = theirs
                if isOffered, $0.pending == nil {
                    $0.pending = PendingWrite(record: mine, transaction: transaction)
                }
                $0.dropPendingIfBeaten()
            }
            if isChanged { changed.insert(key) }
        }
        // What the device had is as the server has it by now, and stays so; the rest is new to it.
        return changed.union(merge(records))
    }

    /// Drops the deletions from before the server's tombstone horizon. They were kept so that a restored
    /// server can be told of them.
    private mutating func dropTombstones(before horizon: HybridTimestamp) {
        guard horizon > .zero, horizon != self.horizon else { return }
        self.horizon = horizon
        for (key, entry) in entries.all {
            guard let confirmed = entry.confirmed, confirmed.content == .deleted,
                entry.pending == nil, confirmed.stamp.timestamp < horizon
            else { continue }
            entries.update(key) { $0.confirmed = nil }
        }
        entries.refreshViews()
    }

    /// Drops the oldest of more deletions than a store remembers: a server may not say its horizon.
    private mutating func dropTombstones(beyond max: Int) {
        guard entries.tombstones > max else { return }
        let deletions = entries.all.compactMap { key, entry -> (key: Key, stamp: Stamp)? in
            guard let confirmed = entry.confirmed, confirmed.content == .deleted,
                entry.pending == nil
            else { return nil }
            return (key, confirmed.stamp)
        }
        for (key, _) in deletions.sorted(by: { $0.stamp < $1.stamp })
        where entries.tombstones > max / 2 {
            entries.update(key) { $0.confirmed = nil }
        }
        entries.refreshViews()
    }

    private mutating func change(
        _ records: [Record], _ body: (inout Entry, Record) -> Void
    ) -> Set<Key> {
        var changed: Set<Key> = []
        for record in records {
            clock.observe(record.stamp.timestamp)
            if entries.update(record.key, { body(&$0, record) }) { changed.insert(record.key) }
        }
        return changed.union(entries.refreshViews())
    }
}

extension Record {
    /// Only a server makes it: a counter's fold, and the deletion of what is in there.
    fileprivate var isOfServer: Bool {
        key.part == .fold || key.isCount && content == .deleted
    }
}

extension Content {
    /// What a key with parts has itself, whose writer may not have known what others have there.
    fileprivate var isPlaceholder: Bool {
        switch value {
        case nil: true
        case .array(let elements): elements.isEmpty
        case .dictionary(let entries): entries.isEmpty
        default: false
        }
    }
}
