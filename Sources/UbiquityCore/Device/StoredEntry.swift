// SPDX-License-Identifier: Apache-2.0

/// A write of this device that the server has not yet acknowledged.
package struct PendingWrite: Hashable, Sendable {
    package var record: Record
    /// Writes with the same number apply all or not at all.
    package var transaction: UInt64
    /// Set while the stamp may still change. Such a write is not sent.
    package var provisional: ProvisionalStamp?
    /// The timestamp and author of the value that this write replaced, if the server had that value
    /// or may have been sent it. Nil otherwise: then nobody can have deleted it there. It stays the
    /// same for as long as the write waits.
    package var had: Stamp?
    /// Whether its author says that no history must have it, whichever process sends it.
    package var isUnkept: Bool
    /// The number of the account's key that the device had when it made the write, which makes the
    /// digest as soon as the stamp is final; 0 for a digest of the contents alone.
    package var generation: UInt32

    package init(
        record: Record, transaction: UInt64, provisional: ProvisionalStamp? = nil,
        had: Stamp? = nil, isUnkept: Bool = false, generation: UInt32 = 0
    ) {
        self.record = record
        self.transaction = transaction
        self.provisional = provisional
        self.had = had
        self.isUnkept = isUnkept
        self.generation = generation
    }
}

extension PendingWrite {
    /// The ``had`` of a write that replaces this one: only a write with a final stamp can have been
    /// sent.
    var passedOn: Stamp? {
        if let had { return had }
        return provisional == nil && record.content != .deleted ? record.stamp.withoutDigest : nil
    }

    /// Whether this is the other write, with its final stamp.
    func isFinalForm(of other: PendingWrite?) -> Bool {
        guard let other else { return false }
        return provisional == nil && other.provisional != nil && transaction == other.transaction
            && record.content == other.record.content
    }
}

/// The basis of a final stamp, which is made once the clock's error is known.
package struct ProvisionalStamp: Hashable, Sendable {
    package var madeAt: ClockReading
    /// The greatest timestamp of other writes that the author had seen. The final stamp will be
    /// later.
    package var seen: HybridTimestamp

    package init(madeAt: ClockReading, seen: HybridTimestamp) {
        self.madeAt = madeAt
        self.seen = seen
    }
}

/// One key as stored on the device's disk.
package struct StoredEntry: Hashable, Sendable {
    package var key: Key
    /// The record on which server and device last agreed. A tombstone is kept so that a restored
    /// server can be told of it. Nil if the server is not known to have ever had the key.
    package var confirmed: Record?
    package var pending: PendingWrite?
    /// Whether any write of this device to the key was ``PendingWrite/isUnkept``. What is sent again
    /// without being written again is then too.
    package var wasUnkept: Bool

    package init(
        key: Key, confirmed: Record? = nil, pending: PendingWrite? = nil, wasUnkept: Bool = false
    ) {
        self.key = key
        self.confirmed = confirmed
        self.pending = pending
        self.wasUnkept = wasUnkept
    }
}

/// A write that was refused, kept for the app, or one that a later record beat before it was sent,
/// kept for the history.
package struct RefusedWrite: Hashable, Sendable {
    package var record: Record
    package var refusal: Refusal

    /// Whether it was never sent.
    package var isSuperseded: Bool {
        ExactString(refusal.code) == ExactString(Refusal.superseded.code)
    }

    package init(record: Record, refusal: Refusal) {
        self.record = record
        self.refusal = refusal
    }
}

extension [RefusedWrite] {
    /// The refused writes that a disk keeps of this list, which has the newest first; see
    /// ``SaveBatch/refused``.
    var kept: [RefusedWrite] {
        var count = (refused: 0, superseded: 0)
        return filter { write in
            if write.isSuperseded { count.superseded += 1 } else { count.refused += 1 }
            return (write.isSuperseded ? count.superseded : count.refused)
                <= SaveBatch.refusedWritesMax
        }
    }
}

/// The content of one save, which is written all or not at all.
package struct SaveBatch: Hashable, Sendable {
    /// The version of the disk that the save is based on.
    package var expectedVersion: Int64
    package var entries: [StoredEntry]
    /// Nil if unchanged.
    package var meta: StoredMeta?
    /// To be added to the disk's list, which keeps the newest ``refusedWritesMax`` of those that were
    /// refused, and as many of those that were superseded. The disk may
    /// already have some of them: a save reported as failed may have succeeded.
    package var refused: [RefusedWrite]

    package static let refusedWritesMax = 1_024

    package init(
        expectedVersion: Int64, entries: [StoredEntry], meta: StoredMeta?,
        refused: [RefusedWrite]
    ) {
        self.expectedVersion = expectedVersion
        self.entries = entries
        self.meta = meta
        self.refused = refused
    }
}

/// The changes on disk that a process does not know yet; at first, everything.
package struct DiskChanges: Hashable, Sendable {
    /// Counts the saves of all processes.
    package var version: Int64
    /// The keys that changed, in their current state.
    package var entries: [StoredEntry]
    package var meta: StoredMeta

    package init(version: Int64 = 0, entries: [StoredEntry] = [], meta: StoredMeta = StoredMeta()) {
        self.version = version
        self.entries = entries
        self.meta = meta
    }
}

package enum SaveOutcome: Hashable, Sendable {
    /// The save is on disk, which has this version now.
    case saved(version: Int64)
    /// Another process saved first. Nothing was written.
    case conflict(DiskChanges)
}
