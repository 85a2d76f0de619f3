// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import UbiquityCore
import UbiquityServer

/// The message of a server that accepts requests.
struct ServerReadiness: Sendable {
    var settings: ServerSettings
    /// Nil for a server on a database.
    var data: String?
    /// The file with the operator's credential. It may have been moved away, or be missing in a
    /// backup. Nil for a server on a database.
    var credential: String?
    var isJSON: Bool
    /// Whether the file existed before the start.
    var hadCredential: Bool
    var logger: Logger

    func announce(_ ready: ReadyServer) {
        let metrics = ready.metricsPort.map {
            "http://\(bracketed(settings.metricsHost)):\($0)/metrics"
        }
        if isJSON { return printJSON(ready, metrics: metrics) }
        if settings.isHouse {
            lines(ready).forEach(Output.announce)
        } else {
            Output.announce(
                "ubiquity serves on \(url(ready)) (data in \(data ?? "PostgreSQL"))")
        }
        if let metrics { Output.announce("Metrics on \(metrics)") }
        guard !settings.isHouse, let data, existing != nil, !hadCredential else { return }
        logger.notice(
            """
            The operator's credential was created. To make an account: ubiquity account create NAME \
            --data \(data)
            """, metadata: ["file": "\(credential ?? "")"])
    }

    /// Nil if there is no such file.
    private var existing: String? {
        credential.flatMap { FileManager.default.fileExists(atPath: $0) ? $0 : nil }
    }

    private func printJSON(_ ready: ReadyServer, metrics: String?) {
        var fields: [(String, JSON)] = [
            ("url", .string(url(ready))), ("host", .string(settings.host)),
            ("port", .integer(ready.port)), ("data", .optional(data)),
            ("operatorCredential", .optional(existing)),
        ]
        if let metrics { fields.append(("metrics", .string(metrics))) }
        if settings.isHouse { fields.append(("firstRun", .optional(ready.firstRunLink))) }
        Output.announce(TerminalText(JSON.object(fields).text))
    }

    private func url(_ ready: ReadyServer) -> String {
        settings.isHouse
            ? settings.address(port: ready.port)
            : "\(settings.tls == nil ? "http" : "https")://\(bracketed(settings.host)):\(ready.port)"
    }

    private func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }

    // MARK: - On a local network

    /// For the people of a house.
    private func lines(_ ready: ReadyServer) -> [TerminalText] {
        let network = settings.network()
        let isOneOfMany = IPAddress(settings.host)?.isUnspecified ?? false
        var lines: [TerminalText] = ["Devices on this network use \(url(ready))"]
        if isOneOfMany, network.first == nil {
            lines = ["This machine is on no network: only it can use \(url(ready))"]
        }
        let others = settings.otherAddresses(port: ready.port)
        if !others.isEmpty {
            lines[0] = lines[0] + " (\(network.first?.interface ?? ""))"
            lines += others.map { "Also \($0.address) (\($0.interface))" }
        }
        return lines + next(ready)
    }

    /// What to do next.
    private func next(_ ready: ReadyServer) -> [TerminalText] {
        // Commands look for the folder of the installed service first.
        let place = data.flatMap { folder in
            folder == DataOptions.found() ? nil : " --data \(Phrase.word(folder))"
        }
        let warning: TerminalText =
            "A browser warns once of the certificate; `ubiquity ca\(place ?? "")` shows how to avoid it."
        guard let link = ready.firstRunLink else {
            return ["`ubiquity pair` adds a device, on one that is signed in.", warning]
        }
        return [
            "This link makes the first account, in the browser that opens it, within an hour:", "",
            "\(link)", "",
        ] + (QRCode.picture(of: link).map { [$0, ""] } ?? []) + [
            "Or run `ubiquity account create NAME --sign-in\(place ?? "")` here, then `ubiquity pair`.",
            warning,
        ]
    }
}
