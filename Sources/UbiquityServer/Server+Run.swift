// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import ServiceLifecycle
internal import UnixSignals

extension Server {
    /// - Throws: ``ServerStartError`` if it cannot listen, ``StorageError``.
    func run(onReady: @escaping @Sendable (Int) async -> Void) async throws {
        try await readers.run { [housekeeping] in try housekeeping.apps.reload() }
        // Services end in reverse: first the housekeeping, which ends the streams, for the
        // application waits for them.
        var configuration = ServiceGroupConfiguration(
            services: [application(onReady: onReady), housekeeping],
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
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
    }

    private func application(
        onReady: @escaping @Sendable (Int) async -> Void
    ) -> some ApplicationProtocol {
        Application(
            router: routes.router(),
            server: .http1(
                configuration: .init(idleTimeout: .seconds(settings.idleConnectionSeconds))),
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port),
                availableConnectionsDelegate: .maximum(settings.connectionsMax, logger: logger)),
            onServerRunning: { await onReady($0.localAddress?.port ?? 0) },
            logger: logger)
    }

    private func startError(_ error: any Error) -> any Error {
        let host = settings.host
        let port = settings.port
        if error is SocketAddressError || error is SocketAddressError.UnknownHost {
            return ServerStartError.addressUnusable(
                host: host, port: port, reason: "it is no address of a machine")
        }
        guard let error = error as? IOError else { return error }
        return error.errnoCode == EADDRINUSE
            ? ServerStartError.portTaken(host: host, port: port)
            : ServerStartError.addressUnusable(
                host: host, port: port, reason: DataFolder.systemReason(error.errnoCode))
    }

    /// To be called when nothing runs any more.
    func close() {
        do {
            try storage.note(sightings.take())
            writer.close()
            readers.close()
            try storage.close()
        } catch {
            logger.warning("The database was not closed well.", metadata: ["reason": "\(error)"])
        }
    }
}
