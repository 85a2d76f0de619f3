// SPDX-License-Identifier: Apache-2.0

/// One key as a process has it in memory.
package struct Entry: Hashable, Sendable {
    /// What server and device last agreed on.
    package var confirmed: Record?
    /// The write that waits for the server; it hides the confirmed record.
    package var pending: PendingWrite?
    /// The server has a later write than the pending one, and the stream will bring it, together
    /// with all that was committed with it. Until then the app keeps seeing its own.
    package var isSettled = false

    package init() {}

    /// What the app sees; nil: there never was anything.
    package var visible: Content? { pending?.record.content ?? confirmed?.content }

    /// Whether the pending write is still to be sent.
    var waits: Bool { pending != nil && !isSettled }

    /// Takes a record of the server. What waits is dropped if the record replaces or is it.
    package mutating func merge(_ record: Record) {
        confirmed = confirmed.map { $0.merged(with: record) } ?? record
        dropPendingIfBeaten()
    }

    package mutating func dropPendingIfBeaten() {
        guard let mine = pending?.record, let confirmed else { return }
        if mine == confirmed || confirmed.wins(over: mine) { dropPending() }
    }

    package mutating func dropPending() {
        pending = nil
        isSettled = false
    }

    /// Takes what another process saved, knowing what this process last had from or on the disk.
    ///
    /// Who changed the pending write since then, decides; if both did, the later write.
    package mutating func rebase(onto disk: StoredEntry, base: PendingWrite?, keepConfirmed: Bool) {
        let mine = pending
        if !keepConfirmed { confirmed = disk.confirmed }
        if mine == base {
            pending = disk.pending
        } else if disk.pending != base {
            pending = Self.later(mine, disk.pending)
        }
        if pending != mine { isSettled = false }
        dropPendingIfBeaten()
    }

    private static func later(_ a: PendingWrite?, _ b: PendingWrite?) -> PendingWrite? {
        guard let a, let b else { return a ?? b }
        return b.record.wins(over: a.record) ? b : a
    }
}
