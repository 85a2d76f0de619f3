// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore
internal import NIOHTTP1
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

    @Sendable func read(_ exchange: Exchange) async throws -> Answer {
        Answer(
            headers: ["Content-Type": "text/plain; version=0.0.4; charset=utf-8"],
            body: ByteBuffer(string: text))
    }

    var text: String {
        let counters = edge.metrics.current
        var text = PrometheusText()
        counters.addRequests(to: &text)
        counters.addPushes(to: &text)
        addGauges(to: &text)
        return text.text
    }

    /// Adds current values, as opposed to counters.
    private func addGauges(to text: inout PrometheusText) {
        func gauge(_ name: String, _ help: String, _ value: Int?) {
            guard let value else { return }
            text.begin(name, .gauge, help)
            text.value(name, value)
        }
        let shared = shared.withLock(\.self)
        text.begin("ubiquity_node_info", .gauge, "The name of this node: machine and process.")
        text.value("ubiquity_node_info", 1, ["node": Self.node])
        gauge("ubiquity_nodes", "Nodes that are connected to the database.", shared?.nodes)
        gauge("ubiquity_connections", "Connections that are open.", edge.connectionCounter.count)
        gauge("ubiquity_listeners", "Stores in open streams.", hub.count)
        gauge("ubiquity_listener_bytes", "Bytes waiting for streams.", hub.waitingBytes)
        gauge("ubiquity_answer_bytes", "Bytes waiting in connections.", edge.answers.bytes)
        gauge("ubiquity_body_bytes", "Bodies that are being read.", edge.bodies.bytes)
        gauge(
            "ubiquity_database_bytes", "Size of the database and its log.",
            shared?.bytes ?? ownBytes)
        gauge(
            "ubiquity_ready", "1 if the server is ready, as in /health/ready.",
            readiness.isReady ? 1 : 0)
        if let tls = edge.tls {
            gauge(
                "ubiquity_certificate_expires_seconds",
                "Time when the certificate expires, since 1970.", Int(tls.expires))
            let name = "ubiquity_certificate_reloads_failed_total"
            text.begin(name, .counter, "Changed TLS files that could not be used.")
            text.value(name, tls.failures)
        }
        gauge(
            "process_resident_memory_bytes", "Memory of the process.", SystemFigures.memoryBytes)
    }

    /// Nil for a shared database.
    private var ownBytes: Int? {
        guard settings.database == nil else { return nil }
        let path = DataFolder(path: settings.dataFolder).databasePath
        return SystemFigures.bytes(ofFiles: [path, path + "-wal"])
    }

    /// Such as `ada-1/4711`: the machine's name, and the number of the process.
    private static let node = "\(SystemFigures.machineName ?? "node")/\(getpid())"
}
