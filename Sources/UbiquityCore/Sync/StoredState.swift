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

    package init(key: Key, confirmed: Record? = nil, pending: PendingWrite? = nil) {
        self.key = key
        self.confirmed = confirmed
        self.pending = pending
    }
}

/// The device's stored state besides the keys.
package struct StoredMeta: Hashable, Sendable {
    /// The account that the cursor belongs to; nil before the first sign-in.
    package var account: String?
    package var cursor: Cursor?
    package var hasCompletedFirstSync = false
    package var correction: ClockCorrection?
    package var limits = StoreLimits()
    package var allowance = Allowance()
    /// A follower asks the leader for a round trip by incrementing the first number. The leader
    /// answers by raising the second to it.
    package var syncsRequested: Int64 = 0
    package var syncsCompleted: Int64 = 0
    /// The last request that the leader has seen; nil if it is of a version that does not say.
    package var syncsTaken: Int64?
    /// The failed round trips that followers asked for: the newest ``SyncFailure/countMax``, in
    /// order.
    package var syncFailures: [SyncFailure] = []
    package var link = LinkStatus()

    package init() {}
}

/// The reason a round trip failed that a follower asked for.
package struct SyncFailure: Hashable, Sendable {
    /// The numbers of the requests, see ``StoredMeta/syncsRequested``.
    package var numbers: ClosedRange<Int64>
    package var detail: String
    /// At most ``keysMax`` of ``LinkFailure/refusedKeys``.
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

/// The state of the connection to the server, for people and for processes that do not hold it.
package struct LinkStatus: Hashable, Sendable {
    package enum State: String, Hashable, Sendable {
        case signedOut, connecting, connected, waiting, unauthorized
        /// There is no stream, but requests are answered: the device polls.
        case polling
    }

    package var state = State.signedOut
    /// Milliseconds since 1970 when device and server last agreed; nil means never.
    package var lastSync: Int64?
    /// A sentence about the last error; nil after a success.
    package var lastError: String?
    /// Milliseconds since 1970, by the device's clock.
    package var nextRetry: Int64?

    package init() {}
}

/// A write that was refused, kept for the app.
package struct RefusedWrite: Hashable, Sendable {
    package var record: Record
    package var refusal: Refusal

    package init(record: Record, refusal: Refusal) {
        self.record = record
        self.refusal = refusal
    }
}

/// The content of one save, which is written all or not at all.
package struct SaveBatch: Hashable, Sendable {
    /// The version of the disk that the save is based on.
    package var expectedVersion: Int64
    package var entries: [StoredEntry]
    /// Nil if unchanged.
    package var meta: StoredMeta?
    /// To be added to the disk's list, which keeps the newest ``refusedWritesMax``. The disk may
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
