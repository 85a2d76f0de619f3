// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging

/// The message of a server that accepts requests.
struct ServerReadiness: Sendable {
    var host: String
    /// Nil for a server on a database.
    var data: String?
    /// The file with the operator's credential. It may have been moved away, or be missing in a
    /// backup. Nil for a server on a database.
    var credential: String?
    var metricsHost: String
    var isJSON: Bool
    var isTLS: Bool
    /// Whether the file existed before the start.
    var hadCredential: Bool
    var logger: Logger

    /// - Parameter metricsPort: Nil if there are no metrics.
    func announce(port: Int, metricsPort: Int?) {
        let credential = credential.flatMap { path in
            FileManager.default.fileExists(atPath: path) ? path : nil
        }
        let url = "\(isTLS ? "https" : "http")://\(bracketed(host)):\(port)"
        let metrics = metricsPort.map { "http://\(bracketed(metricsHost)):\($0)/metrics" }
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
        logger.notice(
            """
            The operator's credential was created. To make an account: ubiquity account create NAME \
            --data \(data) --server \(url)
            """, metadata: ["file": "\(credential)"])
    }

    private func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
}
