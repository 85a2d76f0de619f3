// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import ServiceLifecycle
internal import Synchronization
internal import UbiquityCore

/// What a server does beside requests, once a second: signs of life, what was seen of devices,
/// revocations by other processes, forgetting deletions. When the server is to stop, it ends the
/// streams, which would otherwise keep it running.
///
/// State: `forgotten`, guarded by its lock, though only one tick runs at a time.
final class Housekeeping: Service {
    let storage: any ServerStorage
    let writer: BlockingThreads
    let hub: PushHub
    let authenticator: Authenticator
    let sightings: SightingLog
    let commits: CommitQueue
    let readers: BlockingThreads
    let edge: Edge
    let readiness: Readiness
    let settings: ServerSettings
    let logger: Logger

    /// When deletions were last forgotten, in milliseconds of uptime; nil: not yet.
    private let forgotten = Mutex<Int64?>(nil)
    private static let forgettingMilliseconds: Int64 = 3_600_000

    init(
        storage: any ServerStorage, writer: BlockingThreads, hub: PushHub,
        authenticator: Authenticator, sightings: SightingLog, commits: CommitQueue,
        readers: BlockingThreads, edge: Edge, readiness: Readiness, settings: ServerSettings,
        logger: Logger
    ) {
        self.storage = storage
        self.writer = writer
        self.hub = hub
        self.authenticator = authenticator
        self.sightings = sightings
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
                try? await Task.sleep(for: .seconds(1))
            }
        }
        readiness.stop()
        hub.close()
        edge.report(to: logger)
    }

    private func tick(_ number: Int) async {
        hub.keepAlive(tick: number)
        edge.report(to: logger)
        edge.tls?.refresh(logger: logger)
        do {
            try await writer.run { [self] in try keepHouse() }
            _ = try await readers.run { [storage] in try storage.operatorHash() }
            readiness.roundEnded()
        } catch {
            logger.warning("Housekeeping failed.", metadata: ["reason": "\(error)"])
        }
    }

    /// On the writer's thread.
    private func keepHouse() throws {
        if try storage.hasForeignWrites() { try noticeRevocations() }
        let seen = sightings.take()
        if !seen.isEmpty { try storage.note(seen) }
        if isTimeToForget() { try forgetDeletions() }
    }

    private func noticeRevocations() throws {
        authenticator.forgetAll()
        let listening = hub.devices()
        guard !listening.isEmpty else { return }
        let live = try storage.live(among: listening)
        for device in listening.subtracting(live) { hub.end(device) }
    }

    private func isTimeToForget() -> Bool {
        let now = settings.clock.uptime()
        let isAsked = commits.hasTooManyDeletions.exchange(false, ordering: .relaxed)
        return forgotten.withLock { last in
            if !isAsked, let last, now - last < Self.forgettingMilliseconds { return false }
            last = now
            return true
        }
    }

    private func forgetDeletions() throws {
        let rule = ForgettingRule(
            rememberedMilliseconds: settings.deletionsRememberedSeconds * 1_000,
            liveMilliseconds: settings.deviceLiveSeconds * 1_000,
            deletionsMax: settings.deletionsPerStoreMax)
        let count = try storage.forget(rule, now: settings.clock.now())
        if count > 0 { logger.info("Deletions were forgotten.", metadata: ["count": "\(count)"]) }
    }
}
