// SPDX-License-Identifier: Apache-2.0

/// A write of this device that the server has not yet acknowledged.
package struct PendingWrite: Hashable, Sendable {
    package var record: Record
    /// Writes with the same number apply wholly or not at all.
    package var transaction: UInt64
    /// Set while the stamp may still change; such a write is not sent.
    package var provisional: ProvisionalStamp?
    /// The timestamp and author of the value that this write replaced, where the server had that or
    /// may have been sent it. Nil: it was not, so that nobody can have deleted it there. It stays as
    /// it is for as long as the write waits.
    package var had: Stamp?

    package init(
        record: Record, transaction: UInt64, provisional: ProvisionalStamp? = nil,
        had: Stamp? = nil
    ) {
        self.record = record
        self.transaction = transaction
        self.provisional = provisional
        self.had = had
    }
}

extension PendingWrite {
    /// The ``had`` of a write that replaces this one: only what had its final stamp was ever sent.
    var passedOn: Stamp? {
        if let had { return had }
        return provisional == nil && record.content != .deleted ? record.stamp.withoutDigest : nil
    }

    /// Whether this is the other write with its final stamp.
    func isFinalForm(of other: PendingWrite?) -> Bool {
        guard let other else { return false }
        return provisional == nil && other.provisional != nil && transaction == other.transaction
            && record.content == other.record.content
    }
}

/// From what a final stamp is made, once the clock's error is known.
package struct ProvisionalStamp: Hashable, Sendable {
    package var madeAt: ClockReading
    /// The greatest timestamp of others that the author had seen; the stamp will be later.
    package var seen: HybridTimestamp

    package init(madeAt: ClockReading, seen: HybridTimestamp) {
        self.madeAt = madeAt
        self.seen = seen
    }
}

/// One key as the device's disk has it.
package struct StoredEntry: Hashable, Sendable {
    package var key: Key
    /// What server and device last agreed on; a deletion is kept so that a restored server can be
    /// told of it. Nil: the server is not known to have ever had the key.
    package var confirmed: Record?
    package var pending: PendingWrite?

    package init(key: Key, confirmed: Record? = nil, pending: PendingWrite? = nil) {
        self.key = key
        self.confirmed = confirmed
        self.pending = pending
    }
}

/// What the device's disk has besides the keys.
package struct StoredMeta: Hashable, Sendable {
    /// The account that the cursor belongs to; nil before the first sign-in.
    package var account: String?
    package var cursor: Cursor?
    package var hasCompletedFirstSync = false
    package var correction: ClockCorrection?
    package var limits = StoreLimits()
    package var allowance = Allowance()
    /// A process that does not lead asks the one that does for a round trip by raising the first;
    /// the leader answers by raising the second to it.
    package var syncsRequested: Int64 = 0
    package var syncsCompleted: Int64 = 0
    /// Up to where the leader has seen them; nil where it is of a version that does not say.
    package var syncsTaken: Int64?
    /// Round trips that failed, asked for by processes that do not lead: the newest
    /// ``SyncFailure/countMax``, in their order.
    package var syncFailures: [SyncFailure] = []
    package var link = LinkStatus()

    package init() {}
}

/// Why a round trip failed that a process asked for which does not lead.
package struct SyncFailure: Hashable, Sendable {
    /// The numbers under which it was asked for, see ``StoredMeta/syncsRequested``.
    package var numbers: ClosedRange<Int64>
    package var detail: String
    /// Those of ``LinkFailure/refusedKeys``; at most ``keysMax``.
    package var refusedKeys: Set<Key>

    package static let countMax = 8
    package static let keysMax = 100

    package init(_ numbers: ClosedRange<Int64>, _ failure: LinkFailure) {
        self.numbers = numbers
        detail = failure.detail
        refusedKeys = Set(failure.refusedKeys.sorted().prefix(Self.keysMax))
    }

    var failure: LinkFailure {
        LinkFailure(refusedKeys.isEmpty ? .unreachable : .refused, detail, refusedKeys: refusedKeys)
    }
}

/// How the connection to the server is, for people and for processes that do not hold it.
package struct LinkStatus: Hashable, Sendable {
    package enum State: String, Hashable, Sendable {
        case signedOut, connecting, connected, waiting, unauthorized
        /// There is no stream, and requests are answered: the device asks from time to time.
        case polling
    }

    package var state = State.signedOut
    /// Milliseconds since 1970 when device and server last agreed; nil: never.
    package var lastSync: Int64?
    /// What went wrong last, a sentence; nil after a success.
    package var lastError: String?
    /// Milliseconds since 1970, by the device's clock.
    package var nextRetry: Int64?

    package init() {}
}

/// A write that did not come to pass, kept for the app.
package struct RefusedWrite: Hashable, Sendable {
    package var record: Record
    package var refusal: Refusal

    package init(record: Record, refusal: Refusal) {
        self.record = record
        self.refusal = refusal
    }
}

/// What one save writes; all of it or nothing.
package struct SaveBatch: Hashable, Sendable {
    /// The version of the disk that this save is based on.
    package var expectedVersion: Int64
    package var entries: [StoredEntry]
    /// Nil: unchanged.
    package var meta: StoredMeta?
    /// To be added to those that the disk has, which keeps the newest ``refusedWritesMax``. It may have
    /// some of them: a save that was reported as failed may be there all the same.
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

/// What the disk has that a process does not know yet; to begin with, everything.
package struct DiskChanges: Hashable, Sendable {
    /// Counts the saves of all processes.
    package var version: Int64
    /// The keys that changed, each as it is now.
    package var entries: [StoredEntry]
    package var meta: StoredMeta

    package init(version: Int64 = 0, entries: [StoredEntry] = [], meta: StoredMeta = StoredMeta()) {
        self.version = version
        self.entries = entries
        self.meta = meta
    }
}

package enum SaveOutcome: Hashable, Sendable {
    /// It is on the disk, which has this version now.
    case saved(version: Int64)
    /// Another process was first. Nothing was written.
    case conflict(DiskChanges)
}
