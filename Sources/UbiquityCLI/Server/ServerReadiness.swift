// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Ubiquity
import UbiquityCore

/// The message of a server that accepts requests.
struct ServerReadiness: Sendable {
    var host: String
    /// Nil for a server on a database.
    var data: String?
    /// The file with the operator's credential. It may have been moved away, or be missing in a
    /// backup. Nil for a server on a database.
    var credential: String?
    var isJSON: Bool
    var isTLS: Bool
    /// Whether the file existed before the start.
    var hadCredential: Bool

    /// - Parameter metrics: The address of the metrics; nil if there are none.
    func announce(port: Int, metrics: String?) {
        let credential = credential.flatMap { path in
            FileManager.default.fileExists(atPath: path) ? path : nil
        }
        let url = "\(isTLS ? "https" : "http")://\(Self.bracketed(host)):\(port)"
        if isJSON {
            return Output.print(
                .object(
                    [
                        ("url", .string(url)), ("host", .string(host)), ("port", .integer(port)),
                        ("data", .optional(data)), ("operatorCredential", .optional(credential)),
                    ] + (metrics.map { [("metrics", .string($0))] } ?? [])))
        }
        Output.print("ubiquity serves on \(url) (data in \(data ?? "PostgreSQL"))")
        if let metrics { Output.print("Metrics on \(metrics)") }
        guard let data, let credential, !hadCredential else { return }
        Output.note(
            """
            The operator's credential is in \(credential).
            Make an account with: ubiquity account create NAME --data \(data) --server \(url)
            """)
    }

    static func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
}

/// Prints the message once, when all ports are known.
///
/// State: `ports`, guarded by its lock, because the two arrive in any order.
final class ServerAnnouncement: Sendable {
    private struct Ports {
        var requests: Int?
        var metrics: Int?
    }

    private let ports = Mutex(Ports())
    private let readiness: ServerReadiness
    private let metricsHost: String?

    /// - Parameter metricsHost: Nil if there are no metrics.
    init(_ readiness: ServerReadiness, metricsHost: String?) {
        self.readiness = readiness
        self.metricsHost = metricsHost
    }

    func isReady(port: Int) { update { $0.requests = port } }
    func isMetricsReady(port: Int) { update { $0.metrics = port } }

    private func update(_ change: (inout Ports) -> Void) {
        let known = ports.withLock { ports in
            change(&ports)
            return ports
        }
        guard let port = known.requests else { return }
        guard let metricsHost else { return readiness.announce(port: port, metrics: nil) }
        guard let metrics = known.metrics else { return }
        let host = ServerReadiness.bracketed(metricsHost)
        readiness.announce(port: port, metrics: "http://\(host):\(metrics)/metrics")
    }
}
