// SPDX-License-Identifier: Apache-2.0

/// The rules of a device: what an app writes, what disk and server say, and what to do next.
///
/// A value without a clock, a disk or a network. Tell it what happened with ``handle(_:at:)`` and
/// ``write(_:at:)``; then ask ``nextEffect(at:)`` what to do until it says nil. Effects are derived
/// from the state at the moment of asking, so a hundred writes are one save and one push. At most
/// one save, one push, one pull and one stream are under way. Only what is on disk is pushed, under
/// the stamp that is on disk: a device that crashes must not send a write again under another one.
///
/// One process of a device *leads*: it holds the connection. The others *follow*: they write to the
/// disk, and take from it what the leader received. Both are this engine.
package struct SyncEngine: Sendable {
    // The parts of the state, each with the file that changes it.

    /// Every key, what waits for the server, and what the disk does not have.
    var entries: EntryTable

    // Disk: SyncEngine+Disk.swift
    package internal(set) var diskVersion: Int64
    var isMetaUnsaved = false
    var refusedUnsaved: [RefusedWrite] = []
    var saveInFlight: SaveInFlight?
    /// Why the disk refused the last save, until one succeeds.
    package internal(set) var diskFailure: String?
    var saveRetryAt: Int64?

    // Time
    var clock: DeviceClock
    var random: RandomSource
    // Policies: SyncEngine+Policies.swift
    var policies: [Key: MergePolicy] = [:]
    /// For parts that this run writes.
    var partNames: PartNames
    var misfits: Set<Key> = []

    // Link: SyncEngine+Link.swift
    package internal(set) var meta: StoredMeta
    package internal(set) var device = DeviceID.unassigned
    package internal(set) var isSignedIn = false
    package internal(set) var isLeading = false
    var link = Link.idle
    var streamsOpened = 0
    /// A stream to be ended.
    var hangUp: Int?
    var backoff = Backoff()
    /// Attempts since one was live.
    var streamsFailed = 0
    /// When the newest stream was asked for, when it was first heard, and when it last gave a sign
    /// of life, by the uptime.
    var streamSentAt: ClockReading?
    var streamHeardAt: ClockReading?
    var streamSignAt: Int64 = 0
    /// Why the next stream or poll takes the whole store.
    var wholeCause: WholeCause?
    // Polling: SyncEngine+Polling.swift
    var polling: Polling?
    var pullInFlight: PullInFlight?
    var streamLag: StreamLag?
    /// When the server last told its configuration, by the uptime; nil: not to this process.
    var configuredAt: Int64?
    /// Polls have overtaken the stream that is being opened.
    var isStreamStale = false
    /// Up to where tombstones were dropped last.
    var horizon = HybridTimestamp.zero

    // Pushing: SyncEngine+Pushing.swift
    var pushInFlight: PushInFlight?
    var pushesSent = 0
    /// A push was not answered; the last fetch that was begun until then. The server may have taken it,
    /// and what replaced it here must not get an earlier timestamp before a later fetch has told.
    var unknownPush: Int?
    var settledWrites: [Key: SettledWrite] = [:]
    /// Where the stream has been since a request was sent.
    var passedCursors: Set<Cursor> = []
    var pushBackoff = Backoff()
    var pushRetry: Retry?
    /// What the way to the server bears at once.
    var pushBytesMax = Int.max
    var tooLarge: TooLarge?
    var bucket: TokenBucket

    // Requests for a round trip: SyncEngine+Requests.swift
    var requests: [SyncRequest] = []
    var requestsMade = 0
    var fetchesStarted = 0
    var fetchesFinished = 0
    var finished: [(id: Int, failure: LinkFailure?)] = []
    /// As follower.
    var leaderWatch = LeaderWatch()
    var asksAgain = false

    package internal(set) var notices: NoticeQueue
    /// Whether the app's own writes are told of as well.
    package var tellsOwnWrites = false
    package let settings: Settings

    package struct Settings: Hashable, Sendable {
        package var firstSync = FirstSyncPolicy.serverWins
        /// How long a key may be as long as no server has said.
        package var key = StoreLimits().key

        package init() {}
    }

    /// - Parameters:
    ///   - seed: Any number that no other process of this device has.
    package init(
        disk: DiskChanges, settings: Settings = Settings(), seed: UInt64, at now: ClockReading
    ) {
        self.settings = settings
        diskVersion = disk.version
        meta = Self.meta(disk.meta, settings)
        clock = DeviceClock(correction: disk.meta.correction)
        random = RandomSource(seed: seed)
        var names = RandomSource(seed: ~seed)
        partNames = PartNames(run: names.next())
        bucket = TokenBucket(disk.meta.allowance, now: now.uptime)
        notices = NoticeQueue(now: now.uptime)
        entries = EntryTable(disk: disk.entries)
        for stored in disk.entries { observe(stored.confirmed, stored.pending, at: now) }
    }

    /// Takes note of the stamps, so that later writes are later.
    mutating func observe(
        _ confirmed: Record?, _ pending: PendingWrite?, at now: ClockReading
    ) {
        if let confirmed { clock.observe(confirmed.stamp.timestamp) }
        if let pending {
            // Who writes over it has seen what its author had seen.
            if let stamp = pending.provisional { clock.observe(stamp.seen) }
            // A clock that knows its error must not follow a stamp of one that did not.
            clock.observe(
                clock.time(of: pending, at: now), isFinal: pending.provisional == nil)
        }
    }

    /// What a server said, or what holds until one does.
    static func meta(_ disk: StoredMeta, _ settings: Settings) -> StoredMeta {
        var meta = disk
        meta.limits = disk.limits.believed
        if disk.cursor == nil { meta.limits.key = settings.key }
        return meta
    }

    /// The value that the app sees. O(1).
    package subscript(key: Key) -> PropertyListValue? { entries.value(key) }

    /// The same, changing nothing: `mutating` has the engine passed where it is, and an app's read
    /// does not wait for a copy of its 700 bytes.
    package mutating func value(_ key: Key) -> PropertyListValue? { entries.value(key) }

    /// Every value that the app sees. O(*n*).
    package var values: [Key: PropertyListValue] { entries.values }

    /// What each record has that is not deleted: of a key with parts, each part by its own.
    package var contents: [Key: PropertyListValue] { entries.contents }

    package var usage: Usage { entries.usage }

    /// The keys whose write waits for the server.
    var waiting: Set<Key> { entries.waiting }

    /// Tells the app once more; what it was not told yet is told together.
    mutating func post(_ notice: Notice) {
        var notice = notice
        if notice.keys.contains(where: \.isPart) { notice.keys = Set(notice.keys.map(\.whole)) }
        if notice.keys.isEmpty, notice.reason != .accountChange { return }
        notices.post(notice)
    }
}

/// What a device does with values of its own when it first meets the account's.
package enum FirstSyncPolicy: String, Hashable, Sendable {
    /// A key that the server has takes the server's value: a fresh install overwrites nothing.
    case serverWins
    /// The later write wins, as at any other time.
    case timestamps
}
