// SPDX-License-Identifier: Apache-2.0

internal import Logging

/// The requests of this machine's operator, on a socket of the data folder: none needs a credential.
extension Server {
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
