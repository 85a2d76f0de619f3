// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Hummingbird

/// All metrics of this node, for Prometheus and for the operator's page.
struct MetricsSource: Sendable {
    let settings: ServerSettings
    let storage: any ServerStorage
    let readers: BlockingThreads
    let edge: Edge
    let hub: PushHub
    let readiness: Readiness

    /// For the operator, at the server's own address.
    @Sendable func read(_ request: Request, _ context: ServerContext) async throws -> Response {
        Response(metrics: await text)
    }

    var text: String { get async { edge.metrics.text(await gauges) } }

    private var gauges: ServerMetrics.Gauges {
        get async {
            // Whatever else fails, the rest is told.
            let shared = try? await readers.run { [storage] in try storage.sharedFigures() }
            return ServerMetrics.Gauges(
                connections: edge.connectionCounter.count, listeners: hub.count,
                listenerBytes: hub.waitingBytes, answerBytes: edge.answers.bytes,
                bodyBytes: edge.bodies.bytes, node: Self.node,
                databaseBytes: shared?.bytes ?? ownBytes, nodes: shared?.nodes,
                memoryBytes: SystemFigures.memoryBytes, certificateExpires: edge.tls?.expires,
                certificateFailures: edge.tls?.failures, isReady: readiness.isReady)
        }
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
