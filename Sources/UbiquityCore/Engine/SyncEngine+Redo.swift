// SPDX-License-Identifier: Apache-2.0

/// The redo log: the writes of a process that are not in a save yet, for a shell whose process may end at
/// any moment, or whose engine may be started again.
extension SyncEngine {
    /// Returns and clears the entries that the app has written, for a shell that
    /// ``keepsRedoLog``. One without a pending write was taken back.
    package mutating func takeRedoLog() -> [StoredEntry] {
        defer { redoLog = [] }
        return redoLog.map(write(of:))
    }

    /// The writes that wait for the server, for a disk that has lost them.
    package var waitingEntries: [StoredEntry] { waiting.inOrder().map(write(of:)) }

    private func write(of key: Key) -> StoredEntry {
        StoredEntry(
            key: key, pending: entries[key]?.pending, wasUnkept: entries[key]?.wasUnkept ?? false)
    }

    /// Takes the writes of one process that has ended, in their order. They count as made when they
    /// were made: one that a later write has replaced since changes nothing, and neither does one
    /// that is here already.
    ///
    /// A save follows in any case, with which the log is no longer needed.
    package mutating func redo(_ log: [StoredEntry], at now: ClockReading) {
        // The last write of a key is what its author had.
        var writes: [Key: StoredEntry] = [:]
        for write in log { writes[write.key] = write }
        let shown = Set(writes.keys.map { $0.whole }).map { ($0, self[$0]) }
        var joined: [(UInt64, UInt64)] = []
        for write in writes.values.inOrder(by: { $0.key < $1.key }) {
            if let pair = redo(write, at: now) { joined.append(pair) }
        }
        join(joined)
        unsaved.redone = true
        entries.refreshViews()
        if isLeading {
            finalizeStamps(at: now)
            if isReached { renewWaiting() }
        }
        post(Notice(.serverChange, Set(shown.filter { self[$0.0] != $0.1 }.map { $0.0 })))
    }

    /// - Returns: The transactions of this write and of one that it met, which are one from now on.
    private mutating func redo(
        _ write: StoredEntry, at now: ClockReading
    ) -> (UInt64, UInt64)? {
        let other = entries[write.key]?.pending
        guard let mine = write.pending, mine != other, other?.isFinalForm(of: mine) != true
        else { return nil }
        observe(nil, mine, at: now)
        let clock = clock
        entries.update(write.key) { entry in
            let wasAcknowledged = entry.isAcknowledged
            let here = StoredEntry(
                key: write.key, confirmed: entry.confirmed, pending: entry.pending,
                wasUnkept: entry.wasUnkept)
            (entry.pending, entry.wasUnkept) = (mine, write.wasUnkept)
            entry.rebase(onto: here, base: nil, keepConfirmed: true) {
                clock.isEarlier($0, than: $1, at: now)
            }
            entry.isAcknowledged = wasAcknowledged && entry.pending == here.pending
        }
        guard let other, other.transaction != mine.transaction, entries[write.key]?.pending != nil
        else { return nil }
        return (mine.transaction, other.transaction)
    }
}
