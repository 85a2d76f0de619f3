// SPDX-License-Identifier: Apache-2.0

/// The sync rules of a device: takes writes of the app and news of disk and server, and decides
/// what to do.
///
/// A value without a clock, a disk or a network. Report what happened with ``handle(_:at:)`` and
/// ``write(_:at:)``, then ask ``nextEffect(at:)`` for actions until it returns nil. Effects are
/// derived from the state at the moment of asking, so a hundred writes are one save and one push.
/// At most one save, one push, one pull and one stream are under way. A write is pushed only when
/// it is on disk, with the stamp that is on disk: after a crash a device must not send it again
/// with another one.
///
/// One process of a device *leads*: it holds the connection. The others *follow*: they write to the
/// disk, and read from it what the leader received. Both use this engine.
package struct SyncEngine: Sendable {
    // The parts of the state, each with the file that changes it.

    /// All keys, with the writes that wait for the server and those that are not on disk yet.
    var entries: EntryTable
    /// The keys with a policy: SyncEngine+Writing.swift
    var policies: Policies

    // Disk: SyncEngine+Disk.swift
    package internal(set) var diskVersion: Int64
    var unsaved = Unsaved()
    var saveInFlight: SaveInFlight?
    var saveFailure: SaveFailure?
    /// The disk's leader, as far as this process knows. A leader's own ``StoredMeta/term`` is later
    /// until it has saved once.
    var place: DiskPlace
    /// The receipts: what is on disk, and what the server knows of it.
    var receipts: ReceiptRule

    // Time
    var clock: DeviceClock
    var random: RandomSource

    // Link: SyncEngine+Link.swift and SyncEngine+Polling.swift
    package internal(set) var meta: StoredMeta
    package internal(set) var device = DeviceID.unassigned
    package internal(set) var isSignedIn = false
    /// The process that leads, as this one sees it; nil if this process leads.
    var leader: LeaderMonitor? = LeaderMonitor()
    var link = Link()
    /// The reason the next stream or poll downloads the whole store.
    var snapshotReason: SnapshotReason?
    /// Whether this process's app was told of its first sync, which happens once, though the process
    /// may receive it anew.
    package internal(set) var hasToldFirstSync: Bool
    /// When the server last sent its configuration to this process, by the uptime; nil means never.
    var configuredAt: Int64?
    /// The horizon up to which tombstones were last dropped.
    var horizon = HybridTimestamp.zero

    // The account's keys: SyncEngine+Sealing.swift
    /// Nil if the account is not sealed, or this device does not have the newest key of the store.
    package internal(set) var sealer: Sealer?
    /// The number of the newest key that the device has, of any store; 1 if it only knows that the account
    /// is sealed, and 0 if it does not.
    var knownGeneration: UInt32 = 0
    /// Whether the server has refused a request because the account is sealed, of which the device's state
    /// does not know yet.
    package internal(set) var hasHeardSealed = false
    /// The names of raises that this process has given another one, and that.
    var renamedRaises: [Key: PartID] = [:]

    /// SyncEngine+Pushing.swift and SyncEngine+Acknowledging.swift
    var outbox: Outbox

    // Requests for a round trip: SyncEngine+Requests.swift
    var requests: [SyncRequest] = []
    var finished: [(id: Int, failure: LinkFailure?)] = []
    var counts = Counts()

    package internal(set) var notices: NoticeQueue
    /// Whether the app's own writes are posted as well.
    package var notifiesOwnWrites = false
    /// Whether ``takeRedoLog()`` is called after each write.
    package var keepsRedoLog = false
    /// The keys written since.
    var redoLog: [Key] = []
    package let settings: Settings

    /// The numbers given so far, for all accounts, so that a late answer is recognised.
    struct Counts: Hashable, Sendable {
        var streams = 0
        var pushes = 0
        /// Streams and pulls.
        var fetches = 0
        /// The newest fetch since whose beginning everything is here.
        var fetchesFinished = 0
        /// Requests for a round trip.
        var requests = 0
    }

    package struct Settings: Hashable, Sendable {
        package var firstSync = FirstSyncPolicy.serverWins
        /// The store's name at the server, by which it has a key; nil if it is not synced.
        package var store: StoreIdentifier?
        /// The limit for keys until a server has announced one.
        package var key = StoreLimits().key
        /// The limit for a push until a server has announced one.
        package var pushBytesMax = StoreLimits().pushBytesMax
        /// The names of keys that no history must have.
        package var unkept: Set<ExactString> = []
        /// The number of entries without content that are kept in memory in any case.
        package var emptyMax = 1_024

        package init() {}

        func excludes(_ key: Key) -> Bool { !unkept.isEmpty && unkept.contains(key.name) }
    }

    /// - Parameters:
    ///   - seed: A number that no other process of this device has.
    package init(
        disk: DiskChanges, settings: Settings = Settings(), seed: UInt64, at now: ClockReading
    ) {
        self.settings = settings
        diskVersion = disk.version
        meta = Self.meta(disk.meta, settings)
        place = DiskPlace(disk.meta)
        hasToldFirstSync = disk.meta.hasCompletedFirstSync
        receipts = ReceiptRule(saved: disk.meta.cursor)
        clock = DeviceClock(correction: disk.meta.correction)
        random = RandomSource(seed: seed)
        var names = RandomSource(seed: ~seed)
        policies = Policies(names: PartNames(run: names.next()))
        outbox = Outbox(bucket: TokenBucket(disk.meta.allowance, now: now.uptime))
        notices = NoticeQueue(now: now.uptime)
        entries = EntryTable(disk: disk.entries)
        entries.isSealed = meta.generation > 0
        for stored in disk.entries { observe(stored.confirmed, stored.pending, at: now) }
    }

    /// Observes the stamps, so that later writes get later ones.
    mutating func observe(
        _ confirmed: Record?, _ pending: PendingWrite?, at now: ClockReading
    ) {
        if let confirmed { clock.observe(confirmed.stamp.timestamp) }
        if let pending {
            // An author who overwrites a write has seen everything that its author had seen.
            if let stamp = pending.provisional { clock.observe(stamp.seen) }
            // A clock that knows its error must not follow a stamp of one that did not.
            clock.observe(
                clock.time(of: pending, at: now), isFinal: pending.provisional == nil)
        }
    }

    /// The server's settings, or the defaults until there are any.
    static func meta(_ disk: StoredMeta, _ settings: Settings) -> StoredMeta {
        var meta = disk
        meta.limits = disk.limits.believed
        if disk.cursor == nil {
            meta.limits.key = settings.key
            meta.limits.pushBytesMax = min(meta.limits.pushBytesMax, settings.pushBytesMax)
        }
        return meta
    }

    /// The value that the app sees. O(1).
    package subscript(key: Key) -> PropertyListValue? { entries.value(key) }

    /// The same without a copy: `mutating` passes the engine in place, so that an app's read does
    /// not wait for a copy of its 700 bytes.
    package mutating func value(_ key: Key) -> PropertyListValue? { entries.value(key) }

    /// All values that the app sees. O(*n*).
    package var values: [Key: PropertyListValue] { entries.values }

    /// The value of each record that is not deleted, parts of keys by their own keys.
    package var contents: [Key: PropertyListValue] { entries.contents }

    /// The values that the app would see of these records, by its own merge rules, which it calls.
    package func values(of records: [Record]) -> [Key: PropertyListValue] {
        entries.values(of: records)
    }

    /// The versions of a key that this device knows without its server: the waiting one, and the
    /// one last agreed. O(*n*). Calls the app's own merge rule.
    package func ownVersions(of key: Key) -> [KeyVersion] {
        let all = entries.all.filter { $0.key.name == key.name }.map { $0.entry }
        let agreed = all.compactMap { $0.confirmed }
        var versions: [KeyVersion] = []
        if let stamp = all.filter({ $0.waits }).compactMap({ $0.pending?.record.stamp }).max() {
            versions.append(
                KeyVersion(key: key, value: self[key], stamp: stamp, outcome: .waiting))
        }
        if let stamp = agreed.map({ $0.stamp }).max() {
            versions.append(
                KeyVersion(
                    key: key, value: values(of: agreed)[key], stamp: stamp, outcome: .current))
        }
        return versions
    }

    package func resolver(of key: Key) -> Resolver? { entries.resolver(of: key) }

    package var usage: Usage { entries.usage }

    /// The keys with a write that waits for the server.
    var waiting: Set<Key> { entries.waiting }

    /// Queues a notice. Notices that are not posted yet are combined.
    mutating func post(_ notice: Notice) {
        var notice = notice
        if notice.keys.contains(where: { $0.isPart }) {
            notice.keys = Set(notice.keys.map { $0.whole })
        }
        if notice.keys.isEmpty, notice.reason != .accountChange { return }
        notices.post(notice)
    }
}

/// The treatment of a device's own values when it first meets the account's.
package enum FirstSyncPolicy: String, Hashable, Sendable, CaseIterable {
    /// The server's value wins: a fresh install overwrites nothing.
    case serverWins
    /// The later write wins, as at any other time.
    case timestamps
}

/// The state of the sync at one moment.
package struct EngineStatus: Hashable, Sendable {
    @Exact package var account: String?
    package var isSignedIn: Bool
    package var isLeading: Bool
    /// Another process holds the connection and does not respond.
    package var isHeldUp: Bool
    package var link: LinkStatus
    /// The keys with a write that waits for the server.
    package var pendingKeys: Set<Key>
    /// One of them that waits for ever.
    package var unsendable: UnsendableTransaction?
    package var usage: Usage
    package var limits: StoreLimits
    package var hasCompletedFirstSync: Bool
    /// What the server has and this device does not take.
    package var setAside: SetAside
    /// The reason the disk refused the last save; nil if it did not.
    @Exact package var diskFailure: String?
}

extension SyncEngine {
    /// The keys whose visible value is a write of this device that the server has not confirmed.
    /// Parts of a key are listed by their own keys.
    package var ownRecords: Set<Key> {
        Set(entries.all.lazy.filter { $0.entry.pending != nil }.map { $0.key })
    }

    package var isLeading: Bool { leader == nil }

    /// The cursor up to which everything is on disk; nil if that is not known.
    package var savedCursor: Cursor? { receipts.saved }

    /// The records that wait for the server.
    package var waitingRecords: Set<Key> { waiting }

    /// The records of the server that are not taken.
    package var setAsideRecords: Set<Key> { Set(meta.setAside.reasons.keys) }

    /// The stamp of the record of a key on which device and server have agreed.
    package func agreedStamp(of key: Key) -> Stamp? { entries[key]?.confirmed?.stamp }

    package var status: EngineStatus {
        EngineStatus(
            account: meta.account, isSignedIn: isSignedIn, isLeading: isLeading,
            isHeldUp: leader?.isSilent ?? false && isSignedIn && diskFailure == nil,
            link: linkStatus,
            pendingKeys: Set(waiting.map { $0.whole }), unsendable: unsendable, usage: usage,
            limits: meta.limits,
            hasCompletedFirstSync: meta.hasCompletedFirstSync, setAside: meta.setAside,
            diskFailure: diskFailure)
    }

    private var linkStatus: LinkStatus {
        var link = meta.link
        if !isSignedIn {
            link.state = .signedOut
            link.nextRetry = nil
        }
        return link
    }
}
