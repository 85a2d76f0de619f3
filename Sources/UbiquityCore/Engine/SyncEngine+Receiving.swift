// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// Applies what the stream or a poll brought, as one.
    /// - Parameters:
    ///   - poll: The poll, which brings all that the server has; nil for the stream.
    ///   - stamped: The keys whose visible value this event has already changed, with their values
    ///     before.
    mutating func receive(
        _ all: ChangeSet, of poll: Int? = nil, stamped: Shown, at now: ClockReading
    ) {
        let changes = sifted(all, at: now)
        let reason: Notice.Reason
        var changed: Set<Key>
        // A count may have moved into the sum, and is no part of its own then.
        var shown = stamped
        for key in Set(changes.records.lazy.filter({ $0.key.isPart }).map({ $0.key.whole }))
        where shown.values[key] == nil {
            shown.values[key] = .some(self[key])
        }
        if changes.isWhole {
            reason = hasToldFirstSync ? .serverChange : .initialSync
            changed = takeSnapshot(changes)
            meta.hasCompletedFirstSync = true
            hasToldFirstSync = true
        } else {
            reason = .serverChange
            changed = merge(changes.records, areNews: true)
        }
        dropTombstones(before: changes.horizon)
        dropTombstones(beyond: IntakeLimits.tombstonesMax)
        meta.cursor = changes.cursor
        receipts.received(changes, by: device)
        meta.link.lastSync = clock.milliseconds(at: now)
        unsaved.meta = true
        changed.formUnion(pass(changes.cursor))
        if let poll { unacknowledge(before: poll) }
        if poll != nil || changes.isWhole { changed.formUnion(renewWaiting()) }
        post(Notice(reason, shown.changed(besides: changed, in: self)))
    }

    /// The limits on the data that the device accepts for its store, see ``IntakeLimits``.
    package var intake: IntakeLimits {
        IntakeLimits(meta.cursor == nil && configuredAt == nil ? nil : meta.limits)
    }

    /// The reason the device rejects the changes: its store would exceed the ``intake``. Nil if it
    /// accepts them.
    func refusal(of changes: ChangeSet) -> LinkFailure? {
        changes.isWhole
            ? refusal(of: changes.records, from: Usage()) { _ in nil }
            : refusal(of: changes.records, from: entries.agreed) { entries[$0]?.confirmed }
    }

    /// The same for an answer to a push. Its records are applied later, together with those already
    /// waiting.
    func refusal(of answer: PushAnswer) -> LinkFailure? {
        guard !answer.superseding.isEmpty else { return nil }
        return refusal(
            of: outbox.acknowledged.values.map { $0.held } + answer.superseding,
            from: entries.agreed
        ) {
            entries[$0]?.confirmed
        }
    }

    private func refusal(
        of records: [Record], from old: Usage, replacing confirmed: (Key) -> Record?
    ) -> LinkFailure? {
        var new = old
        var latest: [Key: Record] = [:]
        for record in records {
            guard !record.content.isSealed else {
                // It is set aside.
                if sealer != nil { continue }
                return LinkFailure(.unreachable, "the server sent a sealed value of a clear store")
            }
            let before = latest.updateValue(record, forKey: record.key) ?? confirmed(record.key)
            new.replace(before?.content.value, by: record.content.value, of: record.key)
        }
        do { try intake.check(from: old, to: new) } catch {
            return LinkFailure(
                .unreachable, "the server sent more than a store may have: \(error)")
        }
        return nil
    }

    /// The visible values of some keys before an event, and the keys that it has changed so far.
    struct Shown {
        /// The values before the event.
        var values: [Key: PropertyListValue?] = [:]
        var changed: Set<Key> = []

        /// The changed keys whose value differs from before.
        func changed(besides more: Set<Key> = [], in engine: SyncEngine) -> Set<Key> {
            changed.union(more).filter { key in values[key].map { $0 != engine[key] } ?? true }
        }
    }

    /// Merges records of the server. Merging one twice changes nothing.
    /// - Returns: The keys whose value changed for the app.
    /// - Parameter areNews: Whether the stream brings them in order, see
    ///   ``Entry/merge(_:isNews:)``.
    mutating func merge(_ records: [Record], areNews: Bool = false) -> Set<Key> {
        change(records) { entry, record in entry.merge(record, isNews: areNews) }
    }

    /// Takes over the server's whole store.
    private mutating func takeSnapshot(_ changes: ChangeSet) -> Set<Key> {
        let cause = snapshotReason ?? .compacted
        snapshotReason = nil
        unacknowledge(before: .max)
        switch cause {
        case .firstSync: return takeFirst(changes.records)
        case .compacted: return takeListedOnly(changes.records)
        case .otherHistory:
            // An answer still under way belongs to the old history.
            if pushInFlight != nil { outbox.state = .ready }
            outbox.passedCursors = []
            return takeAndOffer(changes.records)
        }
    }

    /// Keys with a policy lose nothing: the device's and the account's values merge.
    private mutating func takeFirst(_ records: [Record]) -> Set<Key> {
        let keys = Set(records.map { $0.key.whole })
        let merged = keys.filter { policies[$0] != nil || entries.hasParts($0) }
        let discarded = settings.firstSync == .serverWins ? keys.subtracting(merged) : []
        let changed = change(records, .initialSync) { entry, record in
            let key = record.key
            if merged.contains(key), entry.pending?.record.content.isPlaceholder ?? false {
                entry.dropPending()
            }
            if discarded.contains(key.whole) { entry.dropPending() }
            entry.merge(record)
        }
        // A plain write of a key of which the server has only parts.
        let rest = discarded.filter { entries[$0]?.pending != nil }
        return rest.reduce(into: changed) { changed, key in
            if entries.update(key, { $0.dropPending() }) { changed.insert(key) }
        }.union(entries.refreshViews(.initialSync))
    }

    private mutating func takeListedOnly(_ records: [Record]) -> Set<Key> {
        let listed = Set(records.map { $0.key })
        var changed = change(records) { entry, record in
            entry.confirmed = record
            entry.dropPendingIfBeaten()
        }
        for (key, entry) in entries.all where entry.confirmed != nil && !listed.contains(key) {
            if entries.update(key, { $0.confirmed = nil }) { changed.insert(key) }
        }
        return changed.union(entries.refreshViews())
    }

    /// Takes over the store of a server with another history, and queues everything that it lacks,
    /// with the original stamps. Records with the same stamp were one transaction.
    private mutating func takeAndOffer(_ records: [Record]) -> Set<Key> {
        let listed = Dictionary(last: records.lazy.map { ($0.key, $0) })
        let generation = meta.agreedGeneration
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
                    $0.pending = PendingWrite(
                        record: mine, transaction: transaction, isUnkept: $0.wasUnkept,
                        generation: generation)
                }
                $0.dropPendingIfBeaten()
            }
            if isChanged { changed.insert(key) }
        }
        // Records that the server has as well stay as they are; the rest is new to it.
        return changed.union(merge(records))
    }

    /// Drops tombstones from before the server's horizon. They were kept so that a restored server
    /// can be told of them. Of a sealed account they stay: a server that says so could undo deletions.
    private mutating func dropTombstones(before horizon: HybridTimestamp) {
        guard horizon > .zero, horizon != self.horizon, !isSealed else { return }
        self.horizon = horizon
        for (key, stamp) in agreedTombstones where stamp.timestamp < horizon {
            entries.update(key) { $0.confirmed = nil }
        }
        entries.refreshViews()
    }

    /// Drops the oldest tombstones in excess of the maximum, because a server may not announce its
    /// tombstone horizon.
    private mutating func dropTombstones(beyond max: Int) {
        guard entries.tombstones > max else { return }
        for (key, _) in agreedTombstones.inOrder(by: { $0.stamp < $1.stamp })
        where entries.tombstones > max / 2 {
            entries.update(key) { $0.confirmed = nil }
        }
        entries.refreshViews()
    }

    /// The tombstones that no waiting write hides.
    private var agreedTombstones: [(key: Key, stamp: Stamp)] {
        entries.all.compactMap { key, entry in
            guard let confirmed = entry.confirmed, confirmed.content == .deleted,
                entry.pending == nil
            else { return nil }
            return (key, confirmed.stamp)
        }
    }

    private mutating func change(
        _ records: [Record], _ reason: Notice.Reason = .serverChange,
        _ body: (inout Entry, Record) -> Void
    ) -> Set<Key> {
        var changed: Set<Key> = []
        for record in records {
            clock.observe(record.stamp.timestamp)
            let write = waiting.contains(record.key) ? entries[record.key]?.pending : nil
            if entries.update(record.key, { body(&$0, record) }) { changed.insert(record.key) }
            if let write { noteSuperseded(write) }
        }
        return changed.union(entries.refreshViews(reason))
    }

    /// Keeps a write that nobody will send any more, because a later one has come before. Otherwise
    /// the server's history would not have it, and neither would this device.
    private mutating func noteSuperseded(_ pending: PendingWrite) {
        let write = pending.record
        guard !waiting.contains(write.key), !write.key.isPart, !entries.hasParts(write.key),
            !isUnkept(pending), let confirmed = entries[write.key]?.confirmed,
            confirmed.content != write.content
        else { return }
        unsaved.refused.append(RefusedWrite(record: write, refusal: .superseded))
    }
}

extension Record {
    /// Only a server makes these: a counter's fold, and the deletions of the runs in it.
    var isOfServer: Bool {
        key.part == .fold || key.isCount && content == .deleted
    }
}

extension Content {
    /// The own value of a key with parts. Its writer may not have known the parts of others.
    fileprivate var isPlaceholder: Bool {
        switch value {
        case nil: true
        case .array(let elements): elements.isEmpty
        case .dictionary(let entries): entries.isEmpty
        default: false
        }
    }
}
