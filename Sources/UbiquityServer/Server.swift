// SPDX-License-Identifier: Apache-2.0

internal import Logging

/// The parts of a server, and how they belong together.
struct Server: Sendable {
    let settings: ServerSettings
    let storage: any ServerStorage
    let writer: BlockingThreads
    let readers: BlockingThreads
    let hub: PushHub
    let sightings: SightingLog
    let routes: Routes
    let housekeeping: Housekeeping
    let logger: Logger

    private static let readersCount = 2

    init(
        _ settings: ServerSettings, storage: any ServerStorage, operatorHash: SecretHash,
        logger: Logger
    ) {
        self.settings = settings
        self.storage = storage
        self.logger = logger
        writer = BlockingThreads(
            name: "writer", count: 1, waitingMax: settings.waitingReadsMax)
        readers = BlockingThreads(
            name: "reader", count: Self.readersCount, waitingMax: settings.waitingReadsMax)
        hub = PushHub(settings: settings)
        sightings = SightingLog(clock: settings.clock)
        let authenticator = Authenticator(
            storage: storage, threads: readers, operatorHash: operatorHash, sightings: sightings)
        let commits = CommitQueue(
            storage: storage, writer: writer, hub: hub, settings: settings, logger: logger)
        let reader = StoreReader(
            storage: storage, threads: readers, sightings: sightings, clock: settings.clock)
        routes = Routes(
            accounts: AccountRoutes(
                storage: storage, writer: writer, readers: readers,
                authenticator: authenticator, hub: hub,
                attempts: RateLimiter(settings.signInAllowance, clock: settings.clock),
                settings: settings),
            stores: StoreRoutes(
                reader: reader, authenticator: authenticator, settings: settings),
            push: PushRoute(
                commits: commits, threads: readers, authenticator: authenticator,
                pushes: RateLimiter(settings.allowance, clock: settings.clock),
                settings: settings),
            stream: StreamRoute(
                reader: reader, hub: hub, authenticator: authenticator, settings: settings),
            exports: ExportRoutes(
                storage: storage, readers: readers, authenticator: authenticator,
                settings: settings))
        housekeeping = Housekeeping(
            storage: storage, writer: writer, hub: hub, authenticator: authenticator,
            sightings: sightings, commits: commits, settings: settings, logger: logger)
    }
}
