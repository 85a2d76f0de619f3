// SPDX-License-Identifier: Apache-2.0

/// What a server shows and the device does not take, so that it cannot put an older value in the place of one
/// that the device has agreed on, nor drive the device's clock ahead; see ``SetAside``. The link goes on.
extension SyncEngine {
    /// The changes without what the device does not take, of which it takes note. Of a whole store, it keeps
    /// what it has of these keys instead.
    mutating func sifted(_ changes: ChangeSet, at now: ClockReading) -> ChangeSet {
        var taken = changes
        taken.records = []
        taken.records.reserveCapacity(changes.records.count)
        let isAgreed = mustAgree(changes)
        // Those that are not listed are deleted.
        if changes.isWhole, !meta.setAside.isEmpty { meta.setAside = SetAside() }
        for record in changes.records {
            let own = entries[record.key]?.confirmed
            let reason = objection(to: record, over: isAgreed ? own : nil, at: now)
            guard let reason else {
                noteTaken(record.key)
                // A count is taken whatever its time, because the number of counts decides.
                if !record.key.isCount || !isAhead(record, at: now) {
                    clock.observe(record.stamp.timestamp)
                }
                taken.records.append(record)
                continue
            }
            setAside(record, reason, at: now)
            if changes.isWhole, let own { taken.records.append(own) }
        }
        return taken
    }

    /// Whether the changes may have no older records than those agreed on: of a sealed account, unless
    /// another history begins. Where nothing is sealed, a server could as well make up a later one.
    ///
    /// A server that has dropped a tombstone and then accepted an older write may honestly have one. The
    /// person decides then.
    private func mustAgree(_ changes: ChangeSet) -> Bool {
        isSealed && (!changes.isWhole || (snapshotReason ?? .compacted) == .compacted)
    }

    /// The reason the device does not take a record, which is opened if it could be; nil if it does.
    /// - Parameter agreed: What must not be replaced by an older record; nil for nothing.
    func objection(
        to record: Record, over agreed: Record?, at now: ClockReading
    ) -> SetAside.Reason? {
        if record.content.isSealed { return .unopened }
        // A server can make up all of a count.
        if record.key.isCount { return nil }
        if isAhead(record, at: now) { return .ahead }
        // With another key, a transaction has another digest.
        guard let agreed, record.stamp.withoutDigest < agreed.stamp.withoutDigest,
            record.isOlder(than: agreed)
        else { return nil }
        return .older
    }

    /// Whether no author could have given the record its time yet, which the server can make up: a sealed
    /// account's deletions and counts are clear. O(*n*) for one that is ahead of the clock.
    func isAhead(_ record: Record, at now: ClockReading) -> Bool {
        guard isSealed, !record.hasProvenTime, isAheadOfClock(record, at: now) else { return false }
        let proven = entries.all.lazy.compactMap { $0.entry.confirmed }.filter { $0.hasProvenTime }
        let newest = proven.map { $0.stamp.timestamp.milliseconds }.max() ?? 0
        return record.stamp.timestamp.milliseconds > newest + HybridTimestamp.aheadMax
    }

    /// Whether no server could have accepted the record yet, as far as the device knows the server's time.
    private func isAheadOfClock(_ record: Record, at now: ClockReading) -> Bool {
        let latest = min(clock.milliseconds(at: now), now.wall + Sealer.aheadMax)
        let doubt = clock.correction?.doubt ?? 0
        return record.stamp.timestamp.milliseconds > latest + doubt + HybridTimestamp.aheadMax
    }

    mutating func setAside(_ record: Record, _ reason: SetAside.Reason, at now: ClockReading) {
        meta.setAside.note(reason, record.key)
        unsaved.meta = true
        // A write that replaces it is later.
        if reason == .unopened, !isAheadOfClock(record, at: now) {
            clock.observe(record.stamp.timestamp)
        }
    }

    mutating func noteTaken(_ key: Key) {
        guard meta.setAside.reasons[key] != nil else { return }
        meta.setAside.note(nil, key)
        unsaved.meta = true
    }

    /// Whether a write changes something, here or at the server.
    func isChange(_ key: Key, _ content: Content) -> Bool {
        content.value != entries.content(key)
            || meta.setAside.has(key.whole)
    }
}

extension Record {
    /// Whether a box has its time, once it is opened.
    fileprivate var hasProvenTime: Bool { content != .deleted && !key.isCount }
}
