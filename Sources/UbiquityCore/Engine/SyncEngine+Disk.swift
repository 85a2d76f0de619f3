// SPDX-License-Identifier: Apache-2.0

/// The changes besides entries that no save has begun to write.
struct Unsaved: Hashable, Sendable {
    var meta = false
    var refused: [RefusedWrite] = []
    /// Writes of another process were redone, see ``SyncEngine/redo(_:at:)``.
    var redone = false
}

/// The disk refused the last save.
struct SaveFailure: Hashable, Sendable {
    var reason: String
    /// When the save is repeated, by the uptime; nil if it may be now.
    var retryAt: Int64?
}

/// The leader of the disk when it was last read or written, and how far it had come.
struct DiskPlace: Hashable, Sendable {
    var term: Int64
    var cursor: Cursor?

    init(_ meta: StoredMeta) { (term, cursor) = (meta.term, meta.cursor) }
}

/// The save under way, kept to be repeated if it fails.
struct SaveInFlight: Sendable {
    var entries: [EntryTable.Saving]
    /// Nil if it does not write the meta.
    var receipt: ReceiptRule.Saving?
    /// The part of the meta that says who leads; nil if it does not write the meta.
    var place: DiskPlace?
    var refused: [RefusedWrite]
    var redone: Bool
    /// The number that this save gives to this process's requests to the leader; nil if none.
    var requestNumber: Int64?
    /// The newest request with that number.
    var requestsThrough: Int
}

extension SyncEngine {
    /// The pause after a failed save, in milliseconds.
    private static let saveRetryMilliseconds: Int64 = 1_000

    /// Whether memory and disk agree.
    package var isSaved: Bool {
        saveInFlight == nil && entries.isSaved && unsaved == Unsaved()
    }

    /// The reason the disk refused the last save, until one succeeds.
    package var diskFailure: String? { saveFailure?.reason }

    mutating func nextSave(at now: ClockReading) -> SaveBatch? {
        guard !isSaved else {
            // The failed save is on disk now, or no longer needed.
            saveFailure = nil
            return nil
        }
        guard saveInFlight == nil, now.uptime >= saveFailure?.retryAt ?? .min else { return nil }
        saveFailure?.retryAt = nil
        let requestNumber = numberNewRequests(at: now)
        let (written, saving) = entries.beginSave()
        let batch = SaveBatch(
            expectedVersion: diskVersion, entries: written,
            meta: unsaved.meta ? meta : nil, refused: unsaved.refused)
        saveInFlight = SaveInFlight(
            entries: saving, receipt: unsaved.meta ? receipts.beginSave(of: meta.cursor) : nil,
            place: unsaved.meta ? DiskPlace(meta) : nil,
            refused: unsaved.refused, redone: unsaved.redone, requestNumber: requestNumber,
            requestsThrough: counts.requests)
        unsaved = Unsaved()
        return batch
    }

    mutating func saved(version: Int64, at now: ClockReading) {
        guard let save = saveInFlight else { return }
        saveInFlight = nil
        entries.finishSave(save.entries, emptyMax: settings.emptyMax)
        if let receipt = save.receipt { receipts.finishSave(receipt, at: now.uptime) }
        place = save.place ?? place
        if !isLeading { meta.term = place.term }
        diskVersion = version
        saveFailure = nil
        if let number = save.requestNumber {
            requestsSaved(as: number, through: save.requestsThrough)
        }
    }

    mutating func saveFailed(_ reason: String, at now: ClockReading) {
        putBackSave()
        saveFailure = SaveFailure(
            reason: reason, retryAt: now.uptime + Self.saveRetryMilliseconds)
    }

    mutating func saveConflicted(_ changes: DiskChanges, at now: ClockReading) {
        putBackSave()
        diskChanged(changes, at: now)
    }

    private mutating func putBackSave() {
        guard let save = saveInFlight else { return }
        saveInFlight = nil
        entries.undoSave(save.entries)
        unsaved.meta = unsaved.meta || save.receipt != nil
        if let receipt = save.receipt { receipts.undoSave(receipt) }
        unsaved.refused = save.refused + unsaved.refused
        unsaved.redone = unsaved.redone || save.redone
    }

    /// Merges what other processes saved. Changes that this process made since stay, see
    /// ``Entry/rebase(onto:base:keepConfirmed:)``.
    ///
    /// If each of two leaders took the other's records and kept its own cursor, both could miss what
    /// neither will receive again. So one that finds a later leader on the disk follows, and a new
    /// one begins anew with what the one before has saved late.
    mutating func diskChanged(_ changes: DiskChanges, at now: ClockReading) {
        // The result of our own save under way is newer than these changes.
        guard saveInFlight == nil, changes.version != diskVersion else { return }
        diskVersion = changes.version
        let known = waiting.union(changes.entries.map { $0.key }).union(entries.unsavedKeys)
        let shown = Set(known.map { $0.whole }).map { ($0, self[$0]) }
        let acknowledged = outbox.acknowledged.keys.filter { isAcknowledged($0) }
        for stored in changes.entries { stayLater(than: stored, at: now) }
        let isNew = isLeading && meta.term != place.term
        let found = DiskPlace(changes.meta)
        let beginsAnew = isNew && (found.term >= meta.term || found.cursor != place.cursor)
        place = found
        if beginsAnew || found.term > meta.term { lead(false, at: now) }
        if !isLeading {
            entries.forgetReceived()
            outbox.passedCursors = []
            follow(changes.meta, at: now)
        }
        var joined: [(UInt64, UInt64)] = []
        for stored in changes.entries {
            if let pair = rebase(onto: stored, at: now) { joined.append(pair) }
        }
        join(joined)
        for key in acknowledged where entries[key]?.waits ?? false { awaitAgain(key) }
        let isFirstSync = meta.hasCompletedFirstSync && !hasToldFirstSync
        let reason: Notice.Reason = isFirstSync ? .initialSync : .serverChange
        hasToldFirstSync = hasToldFirstSync || isFirstSync
        entries.refreshViews(reason)
        if beginsAnew { lead(true, at: now) }
        if isLeading {
            takeMark(changes.meta.generation)
            finalizeStamps(at: now)
            if isReached { renewWaiting() }
            takeRequests(from: changes.meta, at: now)
        }
        let changed = Set(shown.filter { self[$0.0] != $0.1 }.map { $0.0 })
        post(Notice(reason, changed))
        requestsAnswered(by: changes.meta, at: now)
    }

    /// Handles a write that got its final stamp from another process after this process replaced
    /// it, unsaved: the replacement's stamp must be later.
    private mutating func stayLater(than stored: StoredEntry, at now: ClockReading) {
        guard let base = entries.base(of: stored.key), let mine = entries[stored.key]?.pending,
            let final = stored.pending, mine != base, !mine.isFinalForm(of: base),
            final.isFinalForm(of: base)
        else { return }
        let seen = final.record.stamp.timestamp
        guard mine.provisional != nil || mine.record.stamp.timestamp <= seen else { return }
        stamp(mine, laterThan: seen, at: now)
    }

    /// Gives a write of this process, with its whole transaction, a stamp later than everything its
    /// author had seen.
    private mutating func stamp(
        _ mine: PendingWrite, laterThan seen: HybridTimestamp, at now: ClockReading
    ) {
        var stamp = mine.provisional ?? ProvisionalStamp(madeAt: now, seen: seen)
        stamp.seen = max(stamp.seen, seen)
        for key in waiting where entries[key]?.pending?.record.stamp == mine.record.stamp {
            entries.update(key) { $0.pending?.provisional = stamp }
        }
    }

    /// - Returns: The transactions of two writes if one replaced the other, and one is not saved. They
    ///   are one from now on. Of what is saved, the disk's are the transactions.
    private mutating func rebase(
        onto stored: StoredEntry, at now: ClockReading
    ) -> (UInt64, UInt64)? {
        observe(stored.confirmed, stored.pending, at: now)
        let base = entries.base(of: stored.key)
        let keepConfirmed = isLeading && base != nil
        let clock = clock
        let before = entries[stored.key]
        entries.update(stored.key, saves: false) { entry in
            let base = base ?? entry.pending
            entry.rebase(onto: stored, base: base, keepConfirmed: keepConfirmed) {
                clock.isEarlier($0, than: $1, at: now)
            }
        }
        entries.compare(stored.key, with: stored)
        if let theirs = stored.pending, let mine = entries[stored.key]?.pending,
            mine.provisional != nil, mine.record != theirs.record
        {
            // Ours replaces theirs, though its author did not know of them.
            let seen = theirs.provisional?.seen ?? theirs.record.stamp.timestamp
            stamp(mine, laterThan: seen, at: now)
        }
        if !isLeading, let mine = before?.pending?.record, let after = entries[stored.key],
            after.pending == nil, after.confirmed == before?.confirmed,
            after.confirmed?.content.value != mine.content.value
        {
            noteWithdrawn(stored.key)
        }
        guard base != nil, let mine = before?.pending, let theirs = stored.pending, theirs != base,
            mine.transaction != theirs.transaction, entries[stored.key]?.pending != nil
        else { return nil }
        return (mine.transaction, theirs.transaction)
    }

    /// Only the leader writes anything there except requests.
    private mutating func follow(_ disk: StoredMeta, at now: ClockReading) {
        meta = Self.meta(disk, settings)
        unsaved.meta = false
        takeMark(knownGeneration)
        // Of what a former leader has received.
        (configuredAt, snapshotReason) = (nil, nil)
        receipts = ReceiptRule(saved: disk.cursor)
        // The stamps of this process's unsaved writes are about to be compared with final ones.
        clock.adopt(disk.correction, at: now)
        finalizeStamps(at: now, onlyUnsaved: true)
    }

    /// Gives waiting writes their final stamps, if the clock's error is known.
    /// - Returns: The keys whose value changed for the app.
    @discardableResult
    mutating func finalizeStamps(at now: ClockReading, onlyUnsaved: Bool = false) -> Set<Key> {
        let keys = waiting.filter {
            entries[$0]?.pending?.provisional != nil
                && (!onlyUnsaved || entries.base(of: $0) != nil)
        }
        guard !keys.isEmpty else { return [] }
        var provisional: [Stamp: ProvisionalStamp] = [:]
        for key in keys {
            guard let pending = entries[key]?.pending else { continue }
            provisional[pending.record.stamp] = pending.provisional
        }
        return stamp(keys, by: clock.finalize(provisional, at: now))
    }

    /// Replaces the stamps of waiting writes by final ones. Writes without a final stamp stay
    /// unchanged. A write that turns out older than the server's record is dropped.
    /// - Returns: The keys whose value changed for the app.
    mutating func stamp(
        _ keys: Set<Key>, by final: [Stamp: HybridTimestamp]
    ) -> Set<Key> {
        var changed: Set<Key> = []
        for key in keys {
            guard let pending = entries[key]?.pending,
                let timestamp = final[pending.record.stamp]
            else { continue }
            var stamp = Stamp(timestamp, device, digest: pending.record.stamp.digest)
            // Of another key, or none: see renewWaiting().
            if pending.generation == generation { stamp = sealed(stamp) }
            let isChanged = entries.update(key) {
                $0.pending?.record.stamp = stamp
                $0.pending?.provisional = nil
                $0.dropPendingIfBeaten()
            }
            if isChanged { changed.insert(key) }
        }
        return changed.union(entries.refreshViews())
    }
}
