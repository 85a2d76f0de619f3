// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Logging
internal import ServiceLifecycle

/// The server of a data folder, as commands on its machine reach it: through a socket in the folder,
/// where every request is the operator's and needs no credential.
package struct FolderServer: Sendable {
    private let socket: FolderSocket
    /// The server in this process; nil if one is running on the folder.
    private let own: Server?

    /// The path of the socket for requests.
    package var path: String { socket.path }
    /// The same path for people.
    package var displayPath: String { socket.displayPath }
    package var isRunning: Bool { own == nil }

    /// Calls `body` with the server that is running on the folder. If none is, this process serves
    /// the folder for the duration of the call, and other commands and servers wait.
    /// - Parameter onWaiting: Called when this has to wait for another program.
    /// - Throws: ``ServerStartError``; ``ServerStartError/noServerData(path:)`` if no server ever
    ///   ran there. And the errors of `body`.
    package static func with<Result>(
        dataFolder: String, onWaiting: () -> Void = {},
        _ body: (FolderServer) async throws -> Result
    ) async throws -> Result {
        let folder = DataFolder(path: dataFolder)
        try folder.requireServerData()
        guard let lock = try await FolderLock.take(folder, onWaiting: onWaiting) else {
            return try await body(
                FolderServer(socket: FolderSocket(.server, in: folder), own: nil))
        }
        let storage = try SQLiteServerStorage.openForAdministration(folder.databasePath)
        let server = Server(ServerSettings(dataFolder: dataFolder), forCommandOn: storage)
        defer { withExtendedLifetime(lock) { server.close() } }
        return try await server.serving(FolderSocket(.command, in: folder), body)
    }

    /// Overwrites what is left of erased accounts. A running server does so by itself.
    /// - Parameter onProgress: Called with the number of their stores that are left; with 0 when the
    ///   database is being rewritten.
    /// - Returns: False if something is left, because another program is reading the database or
    ///   the disk has no room.
    package func scrub(
        _ onProgress: @escaping @Sendable (_ stores: Int) -> Void = { _ in }
    ) async -> Bool {
        guard let own else { return true }
        do {
            try await own.writer.run {
                repeat {
                    onProgress(try own.storage.erasedStores())
                } while try own.storage.eraseRest(for: 100)
                onProgress(0)
                try own.storage.scrub(pacedAt: nil)
            }
            return true
        } catch { return false }
    }

    fileprivate init(socket: FolderSocket, own: Server?) {
        (self.socket, self.own) = (socket, own)
    }
}

extension Server {
    /// A server that only answers a command of this process, and logs nothing.
    init(_ settings: ServerSettings, forCommandOn storage: any ServerStorage) {
        self.init(settings, storage: storage, operatorHash: nil, logger: .off)
    }

    /// Serves the operator's requests on a socket of the data folder.
    func folderAcceptor(
        _ socket: FolderSocket, onReady: @escaping @Sendable () -> Void
    ) -> Acceptor {
        // There is no TLS, and the connections to the public address do not count.
        var settings = settings
        settings.connectionsMax = Self.folderConnectionsMax
        let edge = Edge(settings, tls: nil, metrics: edge.metrics, logger: logger)
        return Acceptor(
            address: .socket(socket), connectionsMax: settings.connectionsMax,
            channel: EdgeChannel(edge: edge, respond: routes.inFolder.responder),
            onReady: { _ in onReady() })
    }

    /// Further connections wait until one ends.
    private static let folderConnectionsMax = 32

    func serving<Result>(
        _ socket: FolderSocket, _ body: (FolderServer) async throws -> Result
    ) async throws -> Result {
        let (bound, isBound) = AsyncStream.makeStream(of: Void.self)
        let acceptor = folderAcceptor(socket) { isBound.yield() }
        let group = ServiceGroup(services: [acceptor], logger: logger)
        let running = Task {
            defer { isBound.finish() }
            try await group.run()
        }
        guard await bound.first(where: { true }) != nil else {
            try await running.value
            throw CancellationError()
        }
        let result: Swift.Result<Result, any Error>
        do { result = .success(try await body(FolderServer(socket: socket, own: self))) } catch {
            result = .failure(error)
        }
        await group.triggerGracefulShutdown()
        try? await running.value
        return try result.get()
    }
}

extension Routes {
    /// The same routes on a socket of the data folder.
    fileprivate var inFolder: Routes {
        var routes = self
        routes.requests = nil
        routes.gate.isInFolder = true
        routes.exports = routes.exports.inFolder(routes.gate)
        routes.pairing.gate = routes.gate
        routes.operations.gate = routes.gate
        return routes
    }
}

extension Logger {
    static let off = Logger(label: "ubiquity.server") { _ in SwiftLogNoOpLogHandler() }
}
