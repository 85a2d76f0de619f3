// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import ServiceLifecycle
internal import Synchronization
internal import UbiquityCore

/// The periodic work of a server, in loops of their own, so that none waits for another. Once a second
/// it keeps the streams: keep-alives, and the ends of expired ones; and does what every server does
/// for itself with the storage. Four times a second it does the chores: compaction of tombstones,
/// pruning of histories, scrubbing of erased data, each in short slices. Of several servers, one does the chores of all.
///
/// When the server is to stop, it ends the streams, which would otherwise keep the server running.
///
/// State: `state`, guarded by its lock, because the loops are several.
final class Housekeeping: Service {
    private let server: Server
    private let state = Mutex(Agenda())

    private struct Agenda {
        /// The stores whose tombstones are to be checked: those that have too many, then all others
        /// with tombstones; and when these were last listed.
        var crowded: Set<StoreReference> = []
        var listed: Set<StoreReference> = []
        /// The stores whose history is to be pruned.
        var aged: Set<StoreReference> = []
        var steadyClock = SteadyClock()
        var listing = Interval(milliseconds: 3_600_000)
        /// The excess entries of the audit log, and when it and what expires were last examined.
        var surplus: [Int64] = []
        /// Whether this node does the chores of all.
        var isLeader = false
        var tidying = Interval(milliseconds: 60_000)
        /// The comparisons with other nodes.
        var comparison = Interval(milliseconds: 2_000)
        /// Whether what devices have said could be stored the last time.
        var canNote = true
        /// When the running time was last stored, in milliseconds of uptime.
        var ran: Int64?
    }

    /// The interval at which the running time is stored.
    private static let runningMilliseconds: Int64 = 60_000
    /// The longest time per tick that pushes wait for compaction, except that one store is always
    /// done. Also the longest time for one slice of erased data.
    private static let sliceMilliseconds: Int64 = 5
    /// The same where pushes do not wait for it, because they have threads of their own.
    private static let sharedSliceMilliseconds: Int64 = 200
    /// The time per tick for erased data.
    private static let erasingMilliseconds: Int64 = 200
    private static let surplusPerTickMax = 256
    /// The number of devices that are noted at once, which takes about as long as a slice.
    private static let notedDevicesMax = 128
    /// Longer than the chores of a tick take.
    private static let leaseMilliseconds: Int64 = 30_000
    private static let ticksPerSecond = 4

    init(_ server: Server) { self.server = server }

    private var storage: any ServerStorage { server.storage }
    private var settings: ServerSettings { server.settings }
    private var logger: Logger { server.logger }
    private var uptime: Int64 { settings.clock.uptime() }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.repeat(every: .seconds(1), self.keepStreams) }
                group.addTask { await self.repeat(every: .seconds(1), self.keepUp) }
                group.addTask { await self.repeat(every: .seconds(1), self.noteLastSeen) }
                group.addTask { await self.repeat(every: .seconds(1), self.listStores) }
                group.addTask { await self.repeat(every: .seconds(10), self.vacuum) }
                if self.server.house != nil {
                    group.addTask { await self.repeat(every: .seconds(10), self.renewCertificates) }
                }
                group.addTask {
                    await self.repeat(every: .seconds(1) / Self.ticksPerSecond, self.doChores)
                }
            }
        }
        server.readiness.stop()
        await drain()
        server.hub.close()
        server.edge.report()
    }

    private func `repeat`(every pause: Duration, _ body: (_ number: Int) async throws -> Void) async
    {
        var number = 0
        // The failures that were logged in this minute.
        var logged: Set<String> = []
        var minute = Interval(milliseconds: 60_000)
        while !Task.isCancelled {
            do { try await body(number) } catch {
                if minute.isOver(now: uptime) { logged = [] }
                if logged.insert("\(error)").inserted {
                    logger.warning("Housekeeping failed.", metadata: ["reason": "\(error)"])
                }
            }
            number += 1
            try? await Task.sleep(for: pause)
        }
    }

    /// Ends the streams one after the other, so that their devices do not all come back at once,
    /// and while a balancer notices that this server is not ready.
    private func drain() async {
        let parts = UInt64(clamping: settings.drainSeconds) * UInt64(Self.ticksPerSecond)
        for part in 0..<parts {
            server.hub.end { $0.turn % parts == part }
            try? await Task.sleep(for: .seconds(1) / Self.ticksPerSecond)
        }
    }

    // MARK: - Streams

    private func keepStreams(second: Int) {
        let now = settings.clock.now()
        server.hub.end { subscriber in subscriber.expiresMilliseconds.map { $0 <= now } ?? false }
        server.hub.endOfOtherHistory(second: second)
        server.hub.keepAlive(tick: second)
        server.edge.report()
        server.edge.tls?.refresh(logger: logger)
    }

    // MARK: - Every server

    /// Does what every server does for itself, on both kinds of threads. A server that cannot renew
    /// or claim the lease cannot commit, and is not ready.
    private func keepUp(second: Int) async throws {
        try await renewLease()
        _ = removalTime
        let compares = state.withLock { $0.comparison.isOver(now: uptime) }
        try await server.readers.run { [server, storage] in
            if let hash = try storage.operatorHash() {
                server.authenticator.adopt(operator: hash)
            }
            try server.firstRun.look()
            if compares {
                try server.otherNodes.checkClock()
                try server.otherNodes.compare()
                server.metrics.note(try storage.sharedFigures())
            }
        }
        try await server.writer.run { [self] in try keepHouse() }
        if state.withLock(\.canNote) { server.readiness.roundEnded() }
    }

    /// Runs on the writer's thread, as do the chores.
    private func keepHouse() throws {
        noteFullness()
        noteMove()
        if storage.findRoom() { logger.notice("The disk has room again.") }
        try storage.record(server.failures.take(now: settings.clock.now()))
    }

    /// Makes the certificate of a server of a local network anew, as after a change of address.
    private func renewCertificates(number: Int) async throws {
        let isNew = try await server.readers.run { [server] in try server.house?.renew() ?? false }
        guard isNew else { return }
        logger.warning(
            """
            The server has made its certificate anew, for its addresses of the moment; its key is the \
            same. Devices that were signed in by an address that is gone sign in again by the new one.
            """, metadata: ["address": "\(settings.address(port: settings.port))"])
    }

    /// Stores what devices have said. Pushes have their turn in between, since the row of each
    /// device may be in a page of its own.
    private func noteLastSeen(second: Int) async throws {
        var isStored = false
        let update = server.lastSeen.take()
        defer {
            server.lastSeen.finish(isStored: isStored)
            state.withLock { $0.canNote = isStored }
        }
        for part in update.parts(of: storage.isShared ? .max : Self.notedDevicesMax) {
            // Whoever closes the server stores the rest.
            guard !Task.isCancelled else { return }
            try await server.writer.run { [storage] in try storage.note(part) }
        }
        isStored = true
    }

    // MARK: - Chores

    /// Lists the stores with tombstones, and those with histories to prune, which may take many seconds.
    private func listStores(second: Int) async throws {
        guard state.withLock({ $0.isLeader && $0.listing.isOver(now: uptime) }) else { return }
        let stores = try await server.readers.run { [storage] in try storage.storesWithDeletions() }
        state.withLock { $0.listed.formUnion(stores) }
        let rule = historyRule
        let aged = try await server.readers.run { [storage] in
            try storage.storesToPrune(rule)
        }
        state.withLock { $0.aged.formUnion(aged) }
    }

    private func vacuum(number: Int) async throws {
        guard state.withLock(\.isLeader) else { return }
        let isDone = try await server.readers.run { [storage, uptime] in
            try storage.vacuum(pacedAt: uptime)
        }
        if isDone { logger.info("The space of replaced and removed values was vacuumed.") }
    }

    private func doChores(tick: Int) async throws {
        let isNewSecond = tick.isMultiple(of: Self.ticksPerSecond)
        guard state.withLock(\.isLeader) else {
            return try await server.writer.run { [self] in try compactTombstones() }
        }
        let mustTidy = isNewSecond && state.withLock { $0.tidying.isOver(now: uptime) }
        if mustTidy {
            let rule = AuditRule(entriesMax: settings.constants.auditEntriesMax)
            let numbers = try await server.readers.run { [storage] in
                try storage.auditSurplus(by: rule)
            }
            state.withLock { $0.surplus = numbers }
        }
        try await server.writer.run { [self] in
            if isNewSecond, let time = timeToNote() { try storage.addRunningTime(time) }
            if mustTidy { try removeExpired() }
            try trimAudit()
            try compactTombstones()
            try pruneHistories()
            try storage.scrub(pacedAt: uptime)
            try storage.emptyLog(pacedAt: uptime)
        }
        try await eraseRest()
    }

    /// Renews the lease. Of several servers, its holder does the chores of all. One whose clock is
    /// wrong gives it up.
    func renewLease() async throws {
        let isWrong = server.readiness.isClockWrong
        guard !isWrong || state.withLock(\.isLeader) else { return }
        let isLeader = try await server.writer.run { [storage] in
            try storage.lease(for: isWrong ? 0 : Self.leaseMilliseconds)
        }
        state.withLock { state in
            state.isLeader = isLeader && !isWrong
            // Another one counts the running time meanwhile.
            if !state.isLeader { state.ran = nil }
        }
    }

    /// Logged once, not for each push that is refused: the log may be on the same disk.
    private func noteFullness() {
        let isFull = storage.isFull
        guard isFull != server.readiness.isFull else { return }
        server.readiness.isFull = isFull
        if isFull {
            logger.error("The disk is full: only deletions, erasing and signing out are possible.")
        }
    }

    private func noteMove() {
        let isMoved = storage.isMoved
        guard isMoved != server.readiness.isMoved else { return }
        server.readiness.isMoved = isMoved
        if isMoved {
            logger.critical(
                """
                The data folder was moved or removed while the server is running: nothing is stored. \
                Move it back, or restart the server with the folder's new path.
                """,
                metadata: ["folder": "\(settings.dataFolder)"])
        } else {
            logger.notice("The data folder is back.")
        }
    }

    /// Removes the remaining data of erased accounts in slices, so that pushes have their turn in
    /// between.
    private func eraseRest() async throws {
        let end = uptime + Self.erasingMilliseconds
        while try await server.writer.run({ [storage] in
            try storage.eraseRest(for: Self.sliceMilliseconds)
        }), uptime < end {}
    }

    /// Removes some entries at a time, like tombstones.
    private func trimAudit() throws {
        let numbers = state.withLock { state in
            let first = Array(state.surplus.prefix(Self.surplusPerTickMax))
            state.surplus.removeFirst(first.count)
            return first
        }
        if !numbers.isEmpty { try storage.removeAuditEntries(numbers) }
    }

    func removeExpired() throws {
        let time = removalTime
        try storage.removeCodes(expiredBy: time)
        let count = try storage.removeDevices(
            expiredBy: time - ServerConstants.expiredDevicesKeptSeconds * 1_000,
            now: settings.clock.now())
        if count > 0 {
            logger.info("Expired devices were removed.", metadata: ["count": "\(count)"])
        }
        for account in try storage.accountsToReset(by: time) {
            do {
                let isDone = try storage.reset(
                    account, proof: nil, now: settings.clock.now(), run: nil, by: .housekeeping)
                if isDone { server.otherNodes.revocation.accountChanged(account) }
            } catch StorageError.unreadable {
                logger.error("An account cannot be read, so it is not reset.")
            }
        }
    }

    /// The running time since it was last stored; nil if too short. A process that was stopped was
    /// not running meanwhile.
    private func timeToNote() -> Int64? {
        let now = uptime
        return state.withLock { state in
            let time = now - (state.ran ?? now)
            guard state.ran == nil || time >= Self.runningMilliseconds else { return nil }
            state.ran = now
            return time > 0 ? min(time, 2 * Self.runningMilliseconds) : nil
        }
    }

    /// Handles a few stores at a time: a pass over all of them would delay everybody's pushes.
    /// - Parameters:
    ///   - message: For the log, if a store cannot be read. The others are handled all the same.
    ///   - next: Returns nil if no store is left.
    /// - Returns: The sum of what was done.
    private func handleStores(
        ifUnreadable message: Logger.Message, next: () -> StoreReference?,
        handle: (StoreReference) throws -> Int
    ) throws -> Int {
        var count = 0
        let end =
            uptime + (storage.isShared ? Self.sharedSliceMilliseconds : Self.sliceMilliseconds)
        repeat {
            guard let store = next() else { break }
            do { count += try handle(store) } catch StorageError.unreadable {
                logger.error(message)
            }
        } while uptime < end
        return count
    }

    private func compactTombstones() throws {
        let crowded = server.commits.crowded.withLock { stores in
            defer { stores = [] }
            return stores
        }
        state.withLock { $0.crowded.formUnion(crowded) }
        let rule = CompactionRule(
            retentionMilliseconds: ServerConstants.deletionsRememberedSeconds * 1_000,
            liveMilliseconds: ServerConstants.deviceLiveSeconds * 1_000,
            tombstonesMax: settings.constants.deletionsPerStoreMax)
        let count = try handleStores(
            ifUnreadable: "A store's deletions cannot be read, so they are not compacted."
        ) {
            state.withLock { $0.crowded.popFirst() ?? $0.listed.popFirst() }
        } handle: {
            try storage.compact(rule, folded: .folded, in: $0, now: removalTime)
        }
        if count > 0 { logger.info("Deletions were compacted.", metadata: ["count": "\(count)"]) }
    }

    /// The time by which anything may be removed, see ``SteadyClock``. Read every second, so that no
    /// jump is missed.
    private var removalTime: Int64 {
        let (now, uptime) = (settings.clock.now(), uptime)
        return state.withLock { $0.steadyClock.removalTime(now: now, uptime: uptime) }
    }

    /// The rule for pruning. While the clock may be wrong, nothing is too old.
    private var historyRule: HistoryRule { HistoryRule(settings.history, now: removalTime) }

    private func pruneHistories() throws {
        let count = try handleStores(
            ifUnreadable: "A store's history cannot be read, so it is not pruned."
        ) {
            state.withLock { $0.aged.popFirst() }
        } handle: {
            try storage.pruneHistory(historyRule, of: $0)
        }
        if count > 0 { logger.info("Histories were pruned.", metadata: ["count": "\(count)"]) }
    }
}
