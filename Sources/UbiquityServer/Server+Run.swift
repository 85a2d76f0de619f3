// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import ServiceLifecycle
internal import UbiquityCore
internal import UnixSignals

extension Server {
    /// - Throws: ``ServerStartError`` if it cannot listen, ``StorageError``.
    func run(
        onReady: @escaping @Sendable (Int) async -> Void,
        onMetricsReady: @escaping @Sendable (Int) async -> Void = { _ in }
    ) async throws {
        try await readers.run { [housekeeping] in try housekeeping.apps.reload() }
        // Services end in reverse order: first the housekeeping, which ends the streams that the
        // application waits for.
        var services: [any Service] = [application(onReady: onReady)]
        if let port = settings.metricsPort {
            services.append(metrics(port: port, onReady: onMetricsReady))
        }
        if let tls = edge.tls { services.append(TLSReloading(identity: tls, logger: logger)) }
        services.append(housekeeping)
        var configuration = ServiceGroupConfiguration(
            services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        configuration.maximumGracefulShutdownDuration = .seconds(settings.shutdownSeconds)
        let group = ServiceGroup(configuration: configuration)
        // A task of its own, so that a cancellation becomes a graceful shutdown.
        let running = Task { try await group.run() }
        do {
            try await withTaskCancellationHandler {
                try await running.value
            } onCancel: {
                Task { await group.triggerGracefulShutdown() }
            }
        } catch { throw startError(error) }
        logger.notice("The server has stopped.")
    }

    private func application(
        onReady: @escaping @Sendable (Int) async -> Void
    ) -> some ApplicationProtocol {
        Application(
            router: routes.router(),
            server: HTTPServerBuilder { [edge] responder in
                EdgeChannel(edge: edge, responder: responder)
            },
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port),
                availableConnectionsDelegate: .maximum(acceptedMax, logger: logger)),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? 0
                logStart(port: port)
                await onReady(port)
            },
            logger: logger)
    }

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
        if edge.tls == nil, !PlainHTTPRule.isLoopback(settings.host) {
            logger.warning(
                "Plain HTTP is spoken on an address that others reach: credentials can be read on the way, unless a proxy with TLS is in front."
            )
        }
    }

    private func metrics(
        port: Int, onReady: @escaping @Sendable (Int) async -> Void
    ) -> MetricsService {
        MetricsService(
            host: settings.metricsHost, port: port, text: { edge.metrics.text(gauges) },
            onReady: onReady, logger: logger)
    }

    private var gauges: ServerMetrics.Gauges {
        let database = DataFolder(path: settings.dataFolder).databasePath
        return ServerMetrics.Gauges(
            connections: edge.connectionCounter.count, listeners: hub.count,
            listenerBytes: hub.waitingBytes, answerBytes: edge.answers.bytes,
            bodyBytes: edge.bodies.bytes,
            databaseBytes: SystemFigures.bytes(ofFiles: [database, database + "-wal"]),
            memoryBytes: SystemFigures.memoryBytes, certificateExpires: edge.tls?.expires,
            certificateFailures: edge.tls?.failures,
            isReady: readiness.isReady)
    }

    private func startError(_ error: any Error) -> any Error {
        switch error {
        case is SocketAddressError, is SocketAddressError.UnknownHost, is IOError:
            ServerStartError(listening: error, host: settings.host, port: settings.port)
        default: error
        }
    }

    /// Call when nothing is running any more.
    func close() {
        do {
            try storage.note(lastSeen.take())
            try storage.record(failures.take(now: nil))
            writer.close()
            readers.close()
            try storage.close()
        } catch {
            logger.warning("The database was not closed well.", metadata: ["reason": "\(error)"])
        }
    }
}
