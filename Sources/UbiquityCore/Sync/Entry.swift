// SPDX-License-Identifier: Apache-2.0

/// One key as a process has it in memory.
package struct Entry: Hashable, Sendable {
    /// What server and device last agreed on.
    package var confirmed: Record?
    /// The write that waits for the server; it hides the confirmed record.
    package var pending: PendingWrite?
    /// The server has the pending write or a later one, and the stream will bring it, together with
    /// all that was committed with it. Until then the app keeps seeing its own.
    package var isSettled = false

    package init() {}

    /// What the app sees; nil: there never was anything.
    package var visible: Content? { pending?.record.content ?? confirmed?.content }

    var isEmpty: Bool { confirmed == nil && pending == nil }

    /// Whether the pending write is still to be sent.
    var waits: Bool { pending != nil && !isSettled }

    /// Takes a record of the server. What waits is dropped if the record replaces or is it.
    ///
    /// - Parameter isNews: Whether the server committed it after all that this device has. Then it is
    ///   what the server holds, whatever this device had: a deletion may have been forgotten there, and
    ///   something made before have been taken; and records that came in between, which this device
    ///   was not sent, may have replaced what it has.
    package mutating func merge(_ record: Record, isNews: Bool = false) {
        if !isNews, let confirmed, record.isOlder(than: confirmed) { return }
        confirmed = record
        dropPendingIfBeaten()
    }

    /// A stamp that is not final decides nothing yet.
    package mutating func dropPendingIfBeaten() {
        guard let mine = pending?.record, let confirmed else { return }
        if pending?.provisional != nil, mine.isBehind(confirmed) == nil { return }
        // The server has folded the run: it alone knows whether this is in the sum, and says so by
        // a deletion that follows the write.
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
        isSettled = false
    }

    /// Takes what another process saved, knowing what this process last had from or on the disk.
    ///
    /// Who changed the pending write since then, decides; if both did, the later write. That its stamp
    /// became final is no change.
    /// - Parameter isEarlier: Which of two writes was made first, as far as this process can tell.
    package mutating func rebase(
        onto disk: StoredEntry, base: PendingWrite?, keepConfirmed: Bool,
        isEarlier: (PendingWrite, PendingWrite) -> Bool
    ) {
        let mine = pending
        if !keepConfirmed { confirmed = disk.confirmed }
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
        if pending != mine { isSettled = false }
        if pending == mine, mine != base, mine != disk.pending, mine?.had == nil {
            // What another process saved, a process may have sent.
            pending?.had = disk.pending?.passedOn
        }
        dropPendingIfBeaten()
    }

    private func hasOnlyNewStamp(_ write: PendingWrite?, since base: PendingWrite?) -> Bool {
        write?.isFinalForm(of: base) ?? false
    }
}
