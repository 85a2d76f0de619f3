// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Hummingbird
internal import Synchronization

/// All metrics of this node, for Prometheus and for the operator's page. They are told from memory,
/// so that they can also be read while the database does not answer.
///
/// State: `shared`, guarded by its mutex: the last figures of a shared storage.
final class MetricsSource: Sendable {
    private let settings: ServerSettings
    private let edge: Edge
    private let hub: PushHub
    private let readiness: Readiness
    private let shared = Mutex<SharedFigures?>(nil)

    init(settings: ServerSettings, edge: Edge, hub: PushHub, readiness: Readiness) {
        (self.settings, self.edge, self.hub, self.readiness) = (settings, edge, hub, readiness)
    }

    /// - Parameter figures: Nil if the storage is not shared.
    func note(_ figures: SharedFigures?) { shared.withLock { $0 = figures } }

    /// For the operator, at the server's own address.
    @Sendable func read(_ request: Request, _ context: ServerContext) async throws -> Response {
        Response(metrics: text)
    }

    var text: String { edge.metrics.text(gauges) }

    private var gauges: ServerMetrics.Gauges {
        let shared = shared.withLock(\.self)
        return ServerMetrics.Gauges(
            connections: edge.connectionCounter.count, listeners: hub.count,
            listenerBytes: hub.waitingBytes, answerBytes: edge.answers.bytes,
            bodyBytes: edge.bodies.bytes, node: Self.node,
            databaseBytes: shared?.bytes ?? ownBytes, nodes: shared?.nodes,
            memoryBytes: SystemFigures.memoryBytes, certificateExpires: edge.tls?.expires,
            certificateFailures: edge.tls?.failures, isReady: readiness.isReady)
    }

    /// Nil for a shared database.
    private var ownBytes: Int? {
        guard settings.database == nil else { return nil }
        let path = DataFolder(path: settings.dataFolder).databasePath
        return SystemFigures.bytes(ofFiles: [path, path + "-wal"])
    }

    /// Such as `ada-1/4711`: the machine's name, and the number of the process.
    private static let node: String = {
        var name = [CChar](repeating: 0, count: 256)
        let isKnown = gethostname(&name, name.count - 1) == 0
        let bytes = name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
        return "\(isKnown ? String(decoding: bytes, as: UTF8.self) : "node")/\(getpid())"
    }()
}
