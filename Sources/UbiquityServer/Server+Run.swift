// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import Logging
internal import NIOHTTP1
internal import ServiceLifecycle
internal import Synchronization
internal import UbiquityCore
internal import UnixSignals

/// Runs a server until the task is cancelled or the process is told to end (SIGTERM, SIGINT).
///
/// At the end, pushes under way are answered, streams end within about a second, and the database
/// is closed.
/// - Parameters:
///   - onReady: Called once when the server accepts requests.
/// - Throws: ``ServerStartError`` if it cannot start.
package func runServer(
    _ settings: ServerSettings, logger: Logger,
    onReady: @escaping @Sendable (ReadyServer) async -> Void = { _ in }
) async throws {
    let tls = try settings.tls.map(TLSIdentity.init)
    try settings.identity?.checkFile()
    func run(
        _ storage: any ServerStorage, _ operatorHash: SecretHash?, _ house: HouseIdentity? = nil
    ) async throws {
        recordLimits(settings, in: storage, logger)
        let server = Server(
            withinDescriptors(settings, logger), storage: storage, operatorHash: operatorHash,
            tls: try house.map { try TLSIdentity($0.tls) } ?? tls, house: house, logger: logger)
        defer { server.close() }
        try await server.run(onReady: onReady)
    }
    if let database = settings.database {
        let storage = try PostgresServerStorage.openForServer(database)
        return try await run(storage, operatorHash(storage))
    }
    let folder = DataFolder(path: settings.dataFolder)
    try folder.make()
    if case .unknown(let name) = folder.fileSystem {
        logger.warning(
            """
            The data folder is on a file system that may be a network, where writes that were \
            confirmed can get lost. Only use it if no other machine or mount has the folder.
            """,
            metadata: ["folder": "\(folder.path)", "type": "\(name)"])
    }
    let lock = try await FolderLock.take(folder) {
        logger.notice("Waiting for another program that is working on the data folder.")
    }
    defer { withExtendedLifetime(lock) {} }
    folder.removeDrafts()
    try folder.makeDatabaseFile()
    let storage = try SQLiteServerStorage.openForServer(
        folder.databasePath, reserve: DiskReserve(path: folder.reservePath))
    try await run(
        storage, try OperatorCredential.prepare(in: folder, storage: storage),
        settings.isHouse ? try HouseIdentity(settings) : nil)
}

/// A server that accepts requests.
package struct ReadyServer: Sendable {
    package var port: Int
    /// Nil if there are no metrics.
    package var metricsPort: Int?
    /// The link by which a browser makes the first account; nil if there is an account, or no page.
    package var firstRunLink: String?
}

/// The hash of the operator's credential, if there is one.
private func operatorHash(
    _ storage: PostgresServerStorage
) throws(ServerStartError) -> SecretHash? {
    do { return try storage.operatorHash() } catch { throw .database(.unusable("\(error)")) }
}

/// Records changed limits. A failure does not keep the server from starting, because the disk may
/// be full.
private func recordLimits(
    _ settings: ServerSettings, in storage: any ServerStorage, _ logger: Logger
) {
    do {
        try storage.recordChanges(ofLimits: settings.limitTexts, now: settings.clock.now())
    } catch {
        logger.warning(
            "A change to the limits was not recorded.", metadata: ["reason": "\(error)"])
    }
}

/// Lowers the maximum of connections if the system allows the process fewer. The server then
/// refuses excess connections instead of failing.
private func withinDescriptors(_ settings: ServerSettings, _ logger: Logger) -> ServerSettings {
    var settings = settings
    let max = raiseFileLimit() - reservedFiles - Server.refusedMax
    guard settings.connectionsMax > max else { return settings }
    logger.warning(
        "The system allows fewer connections than the settings: raise the limit of open files.",
        metadata: ["connectionsMax": "\(max)", "wanted": "\(settings.connectionsMax)"])
    settings.connectionsMax = Swift.max(1, max)
    return settings
}

/// Raises the system's limit for this process's files and connections as far as it permits.
/// - Returns: The new limit.
private func raiseFileLimit() -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 1_024 }
    if limit.rlim_cur < limit.rlim_max {
        var raised = limit
        raised.rlim_cur = min(limit.rlim_max, 1 << 20)
        if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    return Int(clamping: limit.rlim_cur)
}

/// The files that the server needs besides connections: the database, its threads, the listeners.
private let reservedFiles = 96

extension Server {
    /// - Throws: ``ServerStartError`` if it cannot listen, ``StorageError``.
    func run(onReady: @escaping @Sendable (ReadyServer) async -> Void) async throws {
        try await readers.run { [apps, otherNodes, metrics, storage] in
            try apps.reload()
            try otherNodes.checkClock()
            try otherNodes.compare()
            metrics.note(try storage.sharedFigures())
        }
        let (bound, isBound) = AsyncStream.makeStream(of: Void.self)
        let (metricsPorts, metricsPort) = AsyncStream.makeStream(of: Int?.self)
        // Services end in reverse order: first the housekeeping, which ends the streams that the
        // application waits for, and last those that the application waits for when it starts.
        var services: [any Service] = [
            Acceptor(
                address: .hostname(settings.host, port: settings.port),
                connectionsMax: acceptedMax,
                channel: EdgeChannel(edge: edge, respond: routes.responder),
                onReady: { port in
                    guard await bound.first(where: { true }) != nil else { return }
                    logStart(port: port)
                    let link = await firstRunLink(port: port)
                    guard let metrics = await metricsPorts.first(where: { _ in true }) else {
                        return
                    }
                    await onReady(
                        ReadyServer(port: port, metricsPort: metrics, firstRunLink: link))
                })
        ]
        // Commands find a server by its folder.
        if settings.database == nil {
            let socket = try FolderSocket(in: DataFolder(path: settings.dataFolder))
            services.insert(folderAcceptor(socket) { isBound.yield() }, at: 0)
        } else {
            isBound.yield()
        }
        if let port = settings.metricsPort {
            services.insert(metricsAcceptor(port: port) { metricsPort.yield($0) }, at: 0)
        } else {
            metricsPort.yield(nil)
        }
        if let tls = edge.tls { services.append(TLSReloading(identity: tls, logger: logger)) }
        services.append(Housekeeping(self))
        var configuration = ServiceGroupConfiguration(
            services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        configuration.maximumGracefulShutdownDuration = .seconds(
            settings.drainSeconds + ServerConstants.shutdownSeconds)
        let group = ServiceGroup(configuration: configuration)
        let lost = Mutex<String?>(nil)
        otherNodes.follow { reason in
            lost.withLock { $0 = reason }
            Task { await group.triggerGracefulShutdown() }
        }
        // A task of its own, so that a cancellation becomes a graceful shutdown.
        let running = Task { try await group.run() }
        try await withTaskCancellationHandler {
            try await running.value
        } onCancel: {
            Task { await group.triggerGracefulShutdown() }
        }
        logger.notice("The server has stopped.")
        if let reason = lost.withLock(\.self) {
            throw ServerStartError.database(.wentBack(reason))
        }
    }

    /// Serves `GET /metrics` on a port of its own, for the operator's Prometheus, and not for a foreign
    /// web page that calls it by a name of its own. Not counted and logged itself.
    private func metricsAcceptor(
        port: Int, onReady: @escaping @Sendable (_ port: Int) -> Void
    ) -> Acceptor {
        var settings = settings
        settings.host = settings.metricsHost
        (settings.trustedProxies, settings.allowedOrigins) = ([], [])
        settings.connectionsMax = Self.metricsConnectionsMax
        settings.connectionsPerAddressMax = Self.metricsConnectionsMax
        let edge = Edge(
            settings, tls: nil, metrics: ServerMetrics(), logger: .off, admitsAddresses: true)
        let table = RouteTable([Route(.GET, "/metrics", .anybodys, metrics.read)])
        let gate = routes.gate
        let respond: HTTPConnection.Responder = { exchange in
            exchange.attempt { try table.answer(exchange, gate) }
        }
        return Acceptor(
            address: .hostname(settings.host, port: port), connectionsMax: settings.connectionsMax,
            channel: EdgeChannel(edge: edge, respond: respond), onReady: onReady)
    }

    private static let metricsConnectionsMax = 16

    /// Accepts some more connections than may stay, to tell them that they may not. Others wait in
    /// the system's queue.
    private var acceptedMax: Int { settings.connectionsMax + Self.refusedMax }

    static let refusedMax = 128

    private func logStart(port: Int) {
        logger.notice(
            "The server has started.",
            metadata: [
                "host": "\(settings.host)", "port": "\(port)",
                "tls": "\(edge.tls == nil ? "no" : "yes")",
                "connectionsMax": "\(settings.connectionsMax)",
            ])
        let now = settings.clock.now() / 1_000
        if let warning = edge.tls?.warning(now: now) { logger.warning("\(warning).") }
        if let house { warn(of: house, now: now) }
        if edge.tls == nil, !PlainHTTPRule.isLoopback(settings.host) {
            logger.warning(
                """
                Plain HTTP on an address that others can reach: credentials can be read in transit. Give \
                --tls-certificate and --tls-key, or put a proxy with TLS in front.
                """)
        }
    }

    /// Warns of faults that only another authority can mend.
    private func warn(of house: HouseIdentity, now: Int64) {
        let advice = """
            remove authority.crt in the data folder's "house", and restart. Browsers must be told to \
            trust it.
            """
        let names = house.namesLeftOut()
        if !names.isEmpty {
            logger.warning(
                """
                The house's authority was not made for these names or addresses, so browsers warn there, \
                also if they trust it. For another one, give a name with a dot, or an address, with \
                --host-name, \(advice)
                """, metadata: ["names": "\(names.joined(separator: ", "))"])
        }
        if let end = house.authorityEnd, end - now < Self.authorityEndSeconds {
            logger.warning(
                "The house's authority ends, and browsers warn then. For another one, \(advice)",
                metadata: [
                    "end": "\(Date(timeIntervalSince1970: Double(end)).formatted(.iso8601))"
                ])
        }
    }

    private static let authorityEndSeconds: Int64 = 90 * 86_400

    /// Makes the link for the first account, if there is none, and logs it.
    private func firstRunLink(port: Int) async -> String? {
        do {
            let link = try await writer.run({ try firstRun.link(port: port) })
            if let link {
                let reach =
                    PlainHTTPRule.obstacle(at: link) == nil
                    ? ""
                    : " No other machine can use it; for others, start the server with --lan, or see "
                        + "--host-name."
                logger.notice(
                    """
                    There is no account yet. Open this link to make the first one; it works once, for an \
                    hour.\(reach)
                    """, metadata: ["link": "\(link)"])
            }
            return link
        } catch {
            logger.warning(
                "There is no link to make the first account.", metadata: ["reason": "\(error)"])
            return nil
        }
    }

    /// Call when nothing is running any more.
    func close() {
        func attempt(_ body: () throws -> Void) {
            do { try body() } catch {
                logger.warning(
                    "The database was not closed properly.", metadata: ["reason": "\(error)"])
            }
        }
        attempt {
            let seen = lastSeen.take(all: true)
            if !seen.isEmpty { try storage.note(seen) }
        }
        attempt { try storage.record(failures.take(now: nil)) }
        for threads in [writer, readers] + lanes { threads.close() }
        attempt { try storage.close() }
    }
}
