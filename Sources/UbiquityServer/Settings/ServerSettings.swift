// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore
package import UbiquityCore

/// The settings of a server operator. All limits default to values for a few thousand devices on a
/// small machine; those that have an option are in ``ServerLimit``.
package struct ServerSettings: Sendable {
    /// The path of the folder with all of the server's data. Made at the first start.
    package var dataFolder: String
    /// The database that the server shares with others; nil for its own in ``dataFolder``, which is
    /// not used otherwise.
    package var database: PostgresSettings?
    /// The address to listen on: a name or a number.
    package var host = "127.0.0.1"
    /// 0 for any free port.
    package var port = 7717

    /// The names by which requests may call the server, besides this machine's own; see
    /// ``HostRule`` for when it is empty.
    package var hostNames: [String] = []
    /// The origins of web pages that may use the server; see ``OriginRule``.
    package var allowedOrigins: [String] = []

    /// Whether people get a page for their data at `/`.
    package var servesPage = true

    /// Nil for plain HTTP, unless ``isHouse``.
    package var tls: ServerTLS?
    /// Whether the server is for the machines of a local network, with keys and certificates that it
    /// makes itself; see ``HouseIdentity``. This machine may use plain HTTP too.
    package var isHouse = false
    /// How other machines reach this one.
    package var network: @Sendable () -> LocalNetwork = { LocalNetwork.ofSystem }
    /// The proxies whose `X-Forwarded-For` is believed.
    package var trustedProxies: [AddressRange] = []
    /// The address of the metrics, which are for the operator only.
    package var metricsHost = "127.0.0.1"
    /// 0 for any free port; nil for no metrics.
    package var metricsPort: Int?

    package var limits = StoreLimits()
    /// The rate of pushes of a device.
    package var allowance = Allowance()
    /// The rate of requests from one remote address.
    package var requestAllowance = Allowance(burst: 6_000, perSecond: 600)
    /// The rate of attempts to sign in from one remote address.
    package var signInAllowance = Allowance(burst: 60, perSecond: 1)
    /// The rate of attempts to sign in from all addresses together: an attacker may have many.
    package var signInTotalAllowance = Allowance(burst: 1_000, perSecond: 50)

    /// The apps that may have stores here.
    package var apps = AppAdmission.open
    /// The identity provider whose tokens sign devices in, besides codes; nil for none.
    package var identity: IdentitySettings?
    package var accountsMax = 100_000

    /// The time for which a version stays in a store's history after its end. 0 means no history.
    package var historySeconds = HistoryLimits().milliseconds / 1_000

    package var connectionsMax = 16_384
    package var connectionsPerAddressMax = 1_024
    package var streamsPerAccountMax = 64
    /// The interval of keep-alives on an idle stream. At least 1.
    package var keepAliveSeconds = 20
    /// The memory for everything that waits: bodies, answers, exports, pushes and events, which each
    /// have a fixed share.
    package var buffersBytesMax = 768 << 20

    /// The time over which a server that is to stop ends its streams, not ready any more, while it
    /// still answers requests.
    package var drainSeconds: Int64 = 0

    package var constants = ServerConstants()
    package var clock = ServerClock.system

    package init(dataFolder: String) { self.dataFolder = dataFolder }

    /// The path of the operator's credential for a server with these settings.
    package var operatorCredentialPath: String {
        DataFolder(path: dataFolder).operatorCredentialPath
    }
}

extension ServerSettings {
    /// Whether connections from other machines are encrypted by the server itself.
    private var isTLS: Bool { tls != nil || isHouse }

    /// The address of the server for people and devices, as well as its settings say it. Behind a
    /// proxy, that is the first host name, with TLS.
    /// - Parameter port: The port that it listens on.
    package func address(port: Int) -> String {
        if !isTLS, !trustedProxies.isEmpty, let name = hostNames.first {
            return "https://\(name)"
        }
        let shown = host(port: port, hostNames.first ?? reachedHost)
        return "\(isTLS ? "https" : "http")://\(shown)"
    }

    /// The same; nil if the port is not known beforehand.
    var reachedAddress: String? { port == 0 ? nil : address(port: port) }

    /// The other addresses of a server of a local network, if it has any, with their interfaces.
    /// - Parameter port: The port that it listens on.
    package func otherAddresses(port: Int) -> [(address: String, interface: String)] {
        guard isHouse, port > 0, hostNames.isEmpty, IPAddress(host)?.isUnspecified ?? false else {
            return []
        }
        return network().others.map { other in
            ("https://\(self.host(port: port, other.address.description))", other.interface)
        }
    }

    private func host(port: Int, _ name: String) -> String {
        "\(name.contains(":") ? "[\(name)]" : name):\(port)"
    }

    /// One address may stand for all of the machine's. Without TLS, others' credentials are not sent.
    private var reachedHost: String {
        guard IPAddress(host)?.isUnspecified ?? false else { return host }
        return isTLS ? network().first?.address.description ?? "localhost" : "localhost"
    }

    /// The names for which the server answers, and whether it also does for any address.
    var hostRule: HostRule {
        HostRule(
            names: isHouse ? hostNames + machineNames : hostNames,
            isReachedByOthers: !isHouse
                && (!PlainHTTPRule.isLoopback(host) || !trustedProxies.isEmpty))
    }
}

/// The files of a server's TLS identity, in PEM.
package struct ServerTLS: Hashable, Sendable {
    /// The server's certificate and its intermediate certificates.
    package var certificatePath: String
    /// Must only be readable by the server's user.
    package var keyPath: String
    /// Whether the key stays when the certificate is made anew, whoever signs it.
    var hasLastingKey: Bool

    package init(certificatePath: String, keyPath: String, hasLastingKey: Bool = false) {
        (self.certificatePath, self.keyPath) = (certificatePath, keyPath)
        self.hasLastingKey = hasLastingKey
    }
}

/// The apps that may have stores on a server.
package enum AppAdmission: String, CaseIterable, Sendable {
    case open
    /// Only apps that the operator registered.
    case registered
}

extension ServerSettings {
    package var history: HistoryLimits {
        HistoryLimits(
            milliseconds: historySeconds * 1_000,
            bytesMax: HistoryLimits.bytesMax(ofStore: limits.storeBytesMax))
    }

    /// For the bodies of all requests together, until they are decoded. Must hold a push.
    package var bodiesBytesMax: Int { buffersBytesMax / 6 }
    /// For the answers of all connections together that wait to be read. Above this, no further
    /// store is read.
    var answersBytesMax: Int { buffersBytesMax / 3 }
    /// For all exports together that wait to be read.
    var exportsBytesMax: Int { max(1, buffersBytesMax / 12) }
    /// For the pushes that wait for the disk. Above this, devices are asked to come again.
    var waitingPushBytesMax: Int { buffersBytesMax / 12 }
    /// For the events that wait for all streams together.
    var streamsBytesMax: Int { buffersBytesMax / 3 }

    /// All limits that can be set, by their names here. The audit log records when they change.
    var limitTexts: [String: String] {
        var texts = ["apps": apps.rawValue, "key": "\(limits.key)"]
        let children = [Mirror(reflecting: self), Mirror(reflecting: limits)].flatMap(\.children)
        for (name, value) in children {
            guard let name else { continue }
            if let allowance = value as? Allowance {
                texts[name] = "\(allowance.burst) and \(allowance.perSecond) a second"
            } else if ["Max", "Min", "Seconds"].contains(where: name.contains) {
                texts[name] = "\(value)"
            }
        }
        return texts
    }
}

extension LocalNetwork {
    /// This machine's, at the moment.
    package static var ofSystem: LocalNetwork {
        let devices = (try? System.enumerateDevices()) ?? []
        let found = devices.compactMap { device in
            device.address?.ipAddress.flatMap { IPAddress($0) }.map {
                InterfaceAddress(device.name, $0)
            }
        }
        let routes = FileManager.default.contents(atPath: "/proc/self/net/route") ?? Data()
        return LocalNetwork(
            found,
            defaultInterface: defaultInterface(inRoutes: String(decoding: routes, as: UTF8.self)))
    }
}
