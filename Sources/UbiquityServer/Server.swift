// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import UbiquityCore

/// The parts of a server, wired together.
struct Server: Sendable {
    let settings: ServerSettings
    let storage: any ServerStorage
    let writer: BlockingThreads
    let readers: BlockingThreads
    let hub: PushHub
    /// One for each of ``CommitQueue``'s lanes; the writer is the only one where there is one lane.
    let lanes: [BlockingThreads]
    let commits: CommitQueue
    let authenticator: Authenticator
    let apps: AppRegistry
    let lastSeen: LastSeenBuffer
    let failures = FailedSignIns()
    let edge: Edge
    let readiness: Readiness
    let otherNodes: OtherNodes
    let firstRun: FirstRun
    /// Nil unless the server made its certificate itself.
    let house: HouseIdentity?
    let metrics: MetricsSource
    let routes: Routes
    let logger: Logger

    /// - Parameter operatorHash: Nil if nobody has the operator's credential.
    init(
        _ given: ServerSettings, storage: any ServerStorage, operatorHash: SecretHash?,
        tls: TLSIdentity? = nil, house: HouseIdentity? = nil, logger: Logger
    ) {
        let clock = SharedClock(given.clock)
        var settings = given
        settings.clock = clock.clock
        self.settings = settings
        self.storage = storage
        (self.logger, self.house) = (logger, house)
        writer = BlockingThreads(
            name: "writer", count: 1, waitingMax: ServerConstants.waitingReadsMax)
        lanes =
            storage.commitLanes == 1
            ? [writer]
            : (1...storage.commitLanes).map { number in
                BlockingThreads(
                    name: "lane-\(number)", count: 1, waitingMax: ServerConstants.waitingReadsMax)
            }
        readers = BlockingThreads(
            name: "reader", count: storage.readLanes, waitingMax: ServerConstants.waitingReadsMax)
        edge = Edge(settings, tls: tls, metrics: ServerMetrics(), logger: logger)
        readiness = Readiness(clock: settings.clock)
        hub = PushHub(storage: storage, threads: readers, settings: settings, edge: edge)
        lastSeen = LastSeenBuffer(clock: settings.clock)
        authenticator = Authenticator(
            storage: storage, threads: readers, operatorHash: operatorHash, lastSeen: lastSeen,
            clock: settings.clock)
        apps = AppRegistry(storage: storage, admission: settings.apps)
        let gate = Gate(authenticator: authenticator, apps: apps, clock: settings.clock)
        let revocation = Revocation(authenticator: authenticator, hub: hub)
        commits = CommitQueue(
            storage: storage, lanes: lanes, hub: hub, settings: settings,
            metrics: edge.metrics, logger: logger)
        otherNodes = OtherNodes(
            storage: storage, threads: readers, hub: hub, revocation: revocation, apps: apps,
            readiness: readiness, clock: clock, logger: logger)
        // Behind a proxy, devices see the key of that.
        let identity = settings.isHouse || settings.trustedProxies.isEmpty ? tls : nil
        firstRun = FirstRun(storage: storage, settings: settings, tls: identity)
        metrics = MetricsSource(
            settings: settings, edge: edge, hub: hub, readiness: readiness)
        let answers = AccountShares(of: edge.answers, placesMax: settings.connectionsMax)
        let allowance = PushAllowance(settings)
        let attempts = SignInThrottle(settings)
        let houseRoutes: HouseRoutes? =
            if let house {
                HouseRoutes(house: house, readers: readers, settings: settings)
            } else { nil }
        let bodies = AccountShares(
            of: edge.bodies, placesMax: PushRoute.placesMax,
            bytesMin: settings.limits.pushBytesMax)
        let sealing = SealingRoutes(
            storage: storage, writer: writer, readers: readers, gate: gate,
            revocation: revocation, allowance: allowance, shares: bodies, settings: settings)
        let reader = StoreReader(
            storage: storage, threads: readers, lastSeen: lastSeen, clock: settings.clock,
            shares: answers, withdrawReset: sealing.withdrawReset)
        routes = Routes(
            gate: gate,
            accounts: AccountRoutes(
                storage: storage, writer: writer, readers: readers, gate: gate,
                revocation: revocation, attempts: attempts, failures: failures,
                allowance: allowance, firstRun: firstRun,
                identities: settings.identity.map {
                    IdentityVerifier($0, clock: settings.clock, logger: logger)
                },
                settings: settings),
            pairing: PairingRoutes(
                storage: storage, writer: writer, readers: readers, gate: gate,
                attempts: attempts, tls: identity, settings: settings),
            operations: OperatorRoutes(
                storage: storage, writer: writer, readers: readers, gate: gate,
                revocation: revocation, firstRun: firstRun, tls: identity, settings: settings),
            stores: StoreRoutes(
                reader: reader, firstRun: firstRun, house: houseRoutes, settings: settings),
            histories: HistoryRoutes(reader: reader, settings: settings),
            sealing: sealing,
            push: PushRoute(
                commits: commits, gate: gate, threads: readers,
                allowance: allowance,
                shares: bodies, answers: answers, lastSeen: lastSeen, limits: settings.limits),
            stream: StreamRoute(
                reader: reader, hub: hub, gate: gate, settings: settings),
            exports: ExportRoutes(
                storage: storage, writer: writer, readers: readers, gate: gate, settings: settings),
            health: HealthRoutes(readiness: readiness, logger: logger),
            metrics: metrics,
            house: houseRoutes,
            page: settings.servesPage ? PageRoutes(provider: settings.identity?.page) : nil,
            requests: RateLimiter(
                .requestsPerAddress, settings.requestAllowance, clock: settings.clock))
    }
}
