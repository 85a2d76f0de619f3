// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore
import UbiquityServer

/// A server's TLS identity, trusted proxies and metrics.
struct ServerEdgeOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A PEM file with the server's certificate, followed by those between it and a root.",
            discussion: "The certificate and the key are read again when they change, and on "
                + "SIGHUP.",
            valueName: "file"), completion: .file(), transform: notEmpty)
    var tlsCertificate: String?

    @Option(
        help: ArgumentHelp(
            "A PEM file with the certificate's key, readable only by the server's user (chmod 600).",
            valueName: "file"), completion: .file(), transform: notEmpty)
    var tlsKey: String?

    @Option(
        help: ArgumentHelp(
            "A name that requests may use for the server, in their Host header.",
            discussion: """
                May be given several times. Other names are refused, except this machine's own \
                (localhost, 127.0.0.1). Without it, any name is accepted; on a loopback address \
                without a trusted proxy, only this machine's own.
                """, valueName: "name"))
    var hostName: [String] = []

    @Option(
        help: ArgumentHelp(
            "The origin of web pages that may use the server, such as https://notes.example.",
            discussion: "May be given several times.", valueName: "origin"))
    var allowedOrigin: [String] = []

    @Option(
        help: ArgumentHelp(
            "A proxy whose X-Forwarded-For is trusted: an address, or a range such as 10.0.0.0/8.",
            discussion: "May be given several times.", valueName: "address"))
    var trustedProxy: [String] = []

    @Option(
        help: ArgumentHelp(
            "The port for GET /metrics, for Prometheus; 0: any free port. (default: none)",
            valueName: "number"))
    var metricsPort: Int?

    @Option(
        help: ArgumentHelp(
            "The address of the metrics. (default: 127.0.0.1)", valueName: "address"),
        transform: notEmpty)
    var metricsHost: String?

    func validate() throws {
        guard (tlsCertificate == nil) == (tlsKey == nil) else {
            throw ValidationError("Give both --tls-certificate and --tls-key, or neither.")
        }
        for name in hostName where name.isEmpty || name.contains(where: { ":/ ".contains($0) }) {
            throw ValidationError("--host-name needs a name without a port, not \(name).")
        }
        for text in allowedOrigin where OriginRule.origin(text) == nil {
            throw ValidationError(
                "--allowed-origin needs an address without a path, such as https://notes.example, "
                    + "not \(text).")
        }
        for text in trustedProxy where AddressRange(text) == nil {
            throw ValidationError(
                "--trusted-proxy needs an address or a range such as 10.0.0.0/8, not \(text).")
        }
        guard metricsPort.map({ (0...65_535).contains($0) }) ?? true else {
            throw ValidationError("--metrics-port needs a number from 0 to 65535.")
        }
        if metricsPort == nil {
            try refuse(
                given(("--metrics-host", metricsHost != nil)),
                "without --metrics-port, which enables the metrics.")
        }
    }

    func apply(to settings: inout ServerSettings) {
        if let tlsCertificate, let tlsKey {
            settings.tls = ServerTLS(
                certificatePath: DataOptions.expanded(tlsCertificate),
                keyPath: DataOptions.expanded(tlsKey))
        }
        settings.hostNames = hostName
        settings.allowedOrigins = allowedOrigin
        settings.trustedProxies = trustedProxy.compactMap(AddressRange.init)
        settings.metricsPort = metricsPort
        if let metricsHost { settings.metricsHost = metricsHost }
    }
}
