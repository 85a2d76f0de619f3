// SPDX-License-Identifier: Apache-2.0

/// One key in a process's memory.
package struct Entry: Hashable, Sendable {
    /// The record on which server and device last agreed.
    package var confirmed: Record?
    /// The write that waits for the server. It hides the confirmed record.
    package var pending: PendingWrite?
    /// The pending write is acknowledged: the server has it or a later one, and the stream will
    /// bring that with everything committed together. Until then the app keeps seeing its own
    /// write.
    package var isAcknowledged = false
    /// See ``StoredEntry/wasUnkept``.
    package var wasUnkept = false

    package init() {}

    /// The content that the app sees; nil if the key never had any.
    package var visible: Content? { pending?.record.content ?? confirmed?.content }

    var isEmpty: Bool { confirmed == nil && pending == nil }

    /// Whether the pending write still has to be sent.
    var waits: Bool { pending != nil && !isAcknowledged }

    /// Merges a record of the server. Drops the pending write if the record is it or replaces it.
    ///
    /// - Parameter isNews: Whether the server committed the record after everything that this
    ///   device has. Then it is the server's current record, whatever this device had: the server
    ///   may have dropped a tombstone and accepted an older write since, or this device may have
    ///   missed records in between.
    package mutating func merge(_ record: Record, isNews: Bool = false) {
        if !isNews, let confirmed, record.isOlder(than: confirmed) { return }
        confirmed = record
        dropPendingIfBeaten()
    }

    /// A provisional stamp decides nothing yet.
    package mutating func dropPendingIfBeaten() {
        guard let mine = pending?.record, let confirmed else { return }
        if pending?.provisional != nil, mine.isBehind(confirmed) == nil { return }
        // The server has folded the run. Only the server knows whether this write is in the sum,
        // and it answers with a deletion that directly follows the write.
        if mine.key.isCount, confirmed.content == .deleted, mine.content != .deleted,
            confirmed.stamp != mine.stamp.following
        {
            return
        }
        if mine.isOlder(than: confirmed) || mine == confirmed || mine.isWithoutDigest(confirmed) {
            dropPending()
        }
    }

    package mutating func dropPending() {
        pending = nil
        isAcknowledged = false
    }

    /// Merges what another process saved. `base` is what this process last read from or wrote to
    /// the disk.
    ///
    /// If one of the two changed the pending write since then, that change wins; if both did, the
    /// later write wins. A stamp that became final is not a change.
    /// - Parameter isEarlier: Decides which of two writes was made first, as far as this process
    ///   can tell.
    package mutating func rebase(
        onto disk: StoredEntry, base: PendingWrite?, keepConfirmed: Bool,
        isEarlier: (PendingWrite, PendingWrite) -> Bool
    ) {
        let mine = pending
        if !keepConfirmed { confirmed = disk.confirmed }
        wasUnkept = wasUnkept || disk.wasUnkept
        if mine == base || disk.pending != base && hasOnlyNewStamp(mine, since: base) {
            pending = disk.pending
        } else if disk.pending == base || hasOnlyNewStamp(disk.pending, since: base) {
            // Only this process changed it.
        } else if let own = mine, let other = disk.pending {
            let isBehind = own.record.isBehind(other.record) ?? isEarlier(own, other)
            pending = isBehind ? other : own
        } else {
            pending = mine ?? disk.pending
        }
        if pending != mine { isAcknowledged = false }
        if pending == mine, mine != base, mine != disk.pending, mine?.had == nil {
            // A process may have sent what another one saved.
            pending?.had = disk.pending?.passedOn
        }
        dropPendingIfBeaten()
    }

    private func hasOnlyNewStamp(_ write: PendingWrite?, since base: PendingWrite?) -> Bool {
        write?.isFinalForm(of: base) ?? false
    }
}
