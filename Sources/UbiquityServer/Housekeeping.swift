// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import ServiceLifecycle
internal import Synchronization
internal import UbiquityCore

/// The periodic work of a server. Four times a second it applies the changes of other processes
/// (revocations, erasures, registrations), compacts tombstones, and scrubs erased data. Once a
/// second it sends keep-alives, ends streams with expired credentials, and stores when devices were
/// last seen. When the server is to stop, it ends the streams, which would otherwise keep the
/// server running.
///
/// State: `compaction`, `ran`, `surplus` and `tidied`, guarded by their locks, though only one
/// tick runs at a time.
final class Housekeeping: Service {
    let storage: any ServerStorage
    let writer: BlockingThreads
    let hub: PushHub
    let authenticator: Authenticator
    let apps: AppRegistry
    let lastSeen: LastSeenBuffer
    let failures: FailedSignIns
    let commits: CommitQueue
    let readers: BlockingThreads
    let edge: Edge
    let readiness: Readiness
    let settings: ServerSettings
    let logger: Logger

    private struct Compaction {
        /// When the stores were last listed, in milliseconds of uptime; nil if never.
        var listed: Int64?
        /// The stores whose tombstones are to be checked.
        var stores: Set<StoreReference> = []
    }

    private let compaction = Mutex(Compaction())
    /// When the running time was last stored, in milliseconds of uptime.
    private let ran = Mutex<Int64?>(nil)
    private static let runningMilliseconds: Int64 = 60_000
    private static let compactionMilliseconds: Int64 = 3_600_000
    /// The longest time per tick that pushes wait for compaction, except that one store is always
    /// done. Also the longest time for one slice of erased data.
    private static let sliceMilliseconds: Int64 = 5
    /// The time per tick for erased data.
    private static let erasingMilliseconds: Int64 = 200
    /// The excess entries of the audit log, which are removed in the same way.
    private let surplus = Mutex<[Int64]>([])
    private static let surplusPerTickMax = 256
    /// When expired devices were last removed and the audit log was last examined, in milliseconds
    /// of uptime.
    private let tidied = Mutex<Int64?>(nil)
    private static let tidyingMilliseconds: Int64 = 60_000

    init(
        storage: any ServerStorage, writer: BlockingThreads, hub: PushHub,
        authenticator: Authenticator, apps: AppRegistry, lastSeen: LastSeenBuffer,
        failures: FailedSignIns, commits: CommitQueue, readers: BlockingThreads, edge: Edge,
        readiness: Readiness, settings: ServerSettings, logger: Logger
    ) {
        self.storage = storage
        self.writer = writer
        self.hub = hub
        self.authenticator = authenticator
        self.apps = apps
        self.lastSeen = lastSeen
        self.failures = failures
        self.commits = commits
        self.readers = readers
        self.edge = edge
        self.readiness = readiness
        self.settings = settings
        self.logger = logger
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var ticks = 0
            while !Task.isCancelled {
                await self.tick(ticks)
                ticks += 1
                try? await Task.sleep(for: .seconds(1) / Self.ticksPerSecond)
            }
        }
        readiness.stop()
        hub.close()
        edge.report(to: logger)
    }

    /// A stream must end within a second of a revocation, wherever that was made.
    private static let ticksPerSecond = 4

    private func tick(_ number: Int) async {
        let (second, part) = number.quotientAndRemainder(dividingBy: Self.ticksPerSecond)
        if part == 0 {
            keepStreams(second: second)
            edge.report(to: logger)
            edge.tls?.refresh(logger: logger)
        }
        do {
            if isTimeToCompact() {
                let stores = try await readers.run { [storage] in
                    try storage.storesWithDeletions()
                }
                compaction.withLock { $0.stores.formUnion(stores) }
            }
            let isTidying = part == 0 && isTimeToTidy()
            if isTidying {
                let rule = AuditRule(entriesMax: settings.auditEntriesMax)
                let numbers = try await readers.run { [storage] in
                    try storage.auditSurplus(by: rule)
                }
                surplus.withLock { $0 = numbers }
            }
            try await writer.run { [self] in
                noteFullness()
                try followOthers()
                if part == 0 { try keepHouse() }
                if isTidying { try removeExpired() }
                try trimAudit()
                try compactTombstones()
                try storage.scrub(pacedAt: settings.clock.uptime())
                try storage.emptyLog(pacedAt: settings.clock.uptime())
            }
            try await eraseRest()
            if part == 0 { _ = try await readers.run { [storage] in try storage.operatorHash() } }
            readiness.roundEnded()
        } catch {
            logger.warning("Housekeeping failed.", metadata: ["reason": "\(error)"])
        }
    }

    /// Logged once, not for each push that is refused: the log may be on the same disk.
    private func noteFullness() {
        let isFull = storage.isFull
        guard isFull != readiness.isFull else { return }
        readiness.isFull = isFull
        if isFull {
            logger.error("The disk is full: only deletions, erasing and signing out are done.")
        }
    }

    private func keepStreams(second: Int) {
        let now = settings.clock.now()
        hub.end { subscriber in subscriber.expires.map { $0 <= now } ?? false }
        hub.keepAlive(tick: second)
    }

    /// Runs on the writer's thread, like the following.
    private func followOthers() throws {
        guard try storage.hasForeignWrites() else { return }
        authenticator.invalidateAll()
        try apps.reload()
        let rule = apps.rule
        let live = try storage.live(among: hub.devices())
        hub.end { !live.contains($0.device) || !rule.admits($0.store.identifier) }
    }

    private func keepHouse() throws {
        if storage.findRoom() { logger.notice("The disk has room again.") }
        let seen = lastSeen.take()
        if !seen.isEmpty { try storage.note(seen) }
        if let time = timeToNote() { try storage.addRunningTime(time) }
        try storage.record(failures.take(now: settings.clock.now()))
    }

    /// Removes the remaining data of erased accounts in slices, so that pushes have their turn in
    /// between.
    private func eraseRest() async throws {
        let end = settings.clock.uptime() + Self.erasingMilliseconds
        while try await writer.run({ [storage] in
            try storage.eraseRest(for: Self.sliceMilliseconds)
        }), settings.clock.uptime() < end {}
    }

    /// Removes some entries at a time, like tombstones.
    private func trimAudit() throws {
        let numbers = surplus.withLock { surplus in
            let first = Array(surplus.prefix(Self.surplusPerTickMax))
            surplus.removeFirst(first.count)
            return first
        }
        if !numbers.isEmpty { try storage.removeAuditEntries(numbers) }
    }

    private func removeExpired() throws {
        let now = settings.clock.now()
        let count = try storage.removeDevices(
            expiredBy: now - settings.expiredDevicesKeptSeconds * 1_000, now: now)
        if count > 0 {
            logger.info("Expired devices were removed.", metadata: ["count": "\(count)"])
        }
    }

    /// The running time since it was last stored; nil if too short. A process that was stopped was
    /// not running meanwhile.
    private func timeToNote() -> Int64? {
        let now = settings.clock.uptime()
        return ran.withLock { last in
            guard let start = last else {
                last = now
                return nil
            }
            guard now - start >= Self.runningMilliseconds else { return nil }
            last = now
            return min(now - start, 2 * Self.runningMilliseconds)
        }
    }

    private func isTimeToTidy() -> Bool {
        let now = settings.clock.uptime()
        return tidied.withLock { last in
            if let last, now - last < Self.tidyingMilliseconds { return false }
            last = now
            return true
        }
    }

    private func isTimeToCompact() -> Bool {
        let now = settings.clock.uptime()
        return compaction.withLock { state in
            if let last = state.listed, now - last < Self.compactionMilliseconds { return false }
            state.listed = now
            return true
        }
    }

    /// Handles a few stores at a time: a pass over all of them would delay everybody's pushes.
    private func compactTombstones() throws {
        let crowded = commits.crowded.withLock { stores in
            defer { stores = [] }
            return stores
        }
        compaction.withLock { $0.stores.formUnion(crowded) }
        let rule = CompactionRule(
            retentionMilliseconds: settings.deletionsRememberedSeconds * 1_000,
            liveMilliseconds: settings.deviceLiveSeconds * 1_000,
            tombstonesMax: settings.deletionsPerStoreMax)
        var count = 0
        let end = settings.clock.uptime() + Self.sliceMilliseconds
        repeat {
            guard let store = compaction.withLock({ $0.stores.popFirst() }) else { break }
            do throws(StorageError) {
                count += try storage.compact(rule, in: store, now: settings.clock.now())
                _ = try storage.compactFolded(.folded, in: store)
            } catch {
                guard error == .unreadable else { throw error }
                logger.error("A store's deletions cannot be read, and are not forgotten.")
            }
        } while settings.clock.uptime() < end
        if count > 0 { logger.info("Deletions were forgotten.", metadata: ["count": "\(count)"]) }
    }
}
