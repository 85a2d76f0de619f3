// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The settings of a server operator. All limits default to values for a few thousand devices on a
/// small machine; ``ServerLimit`` says what an operator may change.
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

    /// Nil for plain HTTP.
    package var tls: ServerTLS?
    /// The proxies whose `X-Forwarded-For` is believed.
    package var trustedProxies: [AddressRange] = []
    /// The address of the metrics, which are for the operator only.
    package var metricsHost = "127.0.0.1"
    /// 0 for any free port; nil for no metrics.
    package var metricsPort: Int?

    package var limits = StoreLimits()
    /// The rate of pushes of a device.
    package var allowance = Allowance()
    /// The rate of attempts to sign in from one remote address.
    package var signInAllowance = Allowance(burst: 60, perSecond: 1)
    /// The rate of attempts to sign in from all addresses together: an attacker may have many.
    package var signInTotalAllowance = Allowance(burst: 1_000, perSecond: 50)

    /// The apps that may have stores here.
    package var apps = AppAdmission.open

    /// The identity provider whose tokens sign devices in, besides codes; nil for none.
    package var identity: IdentitySettings?
    /// The rate of requests from one remote address.
    package var requestAllowance = Allowance(burst: 6_000, perSecond: 600)

    /// The minimum time for which tombstones are kept, unless there are more than
    /// ``deletionsPerStoreMax``.
    package var deletionsRememberedSeconds: Int64 = 30 * 86_400
    package var deletionsPerStoreMax = 16_384
    /// A device not seen for this long does not hold up compaction.
    package var deviceLiveSeconds: Int64 = 90 * 86_400
    package var signInCodeSeconds: Int64 = 600

    /// The time for which a version stays in a store's history after its end. 0 means no history.
    package var historySeconds: Int64 = 30 * 86_400
    package var versionsPerEntryMax = 50
    /// For the history of a store. 0 for four times the most bytes of a store.
    package var historyBytesMax = 0

    /// A device is removed this long after its credential has expired.
    package var expiredDevicesKeptSeconds: Int64 = 30 * 86_400

    package var accountsMax = 100_000
    package var appsMax = 10_000
    /// For the audit log. The oldest entries beyond it are removed.
    package var auditEntriesMax = 100_000
    package var devicesPerAccountMax = 256
    package var storesPerAccountMax = 256
    package var listenersPerAccountMax = 64
    /// The buffer of a slow listener. When it is full, the listener is told to pull again.
    package var listenerBufferBytesMax = 4 << 20
    /// The buffers of all listeners together.
    package var listenersBytesMax = 256 << 20
    /// The interval of keep-alives for an idle listener. At least 1.
    package var keepAliveSeconds = 20

    package var connectionsMax = 16_384
    package var connectionsPerAddressMax = 1_024
    /// For a request's address and headers.
    package var headerBytesMax = 16_384
    package var headerFieldsMax = 64
    /// The requests of a connection that may wait for their answers.
    package var pipelinedRequestsMax = 16
    /// From the opening of a connection, or the first byte of a request, to the end of the headers.
    package var headSecondsMax: Int64 = 20
    /// From the end of the headers to the end of the body.
    package var bodySecondsMax: Int64 = 120
    /// The minimum rate of a body, measured over each ``slowSecondsMax``.
    package var bodyBytesPerSecondMin = 1_024
    /// The minimum rate at which an answer is read, measured over each ``slowSecondsMax``.
    package var answerBytesPerSecondMin = 1_024
    package var slowSecondsMax: Int64 = 20
    /// The bodies of all requests together, until they are decoded.
    package var bodiesBytesMax = 128 << 20
    /// The answers of all connections together that wait to be read. Above this, no further store
    /// is read.
    package var answersBytesMax = 256 << 20
    /// A connection without requests is closed after this time.
    package var idleConnectionSeconds: Int64 = 120
    /// The pushes that wait for the disk. Above this, devices are asked to come again.
    package var waitingPushesMax = 4_096
    package var waitingPushBytesMax = 64 << 20
    /// The reads that wait for a thread. Above this, devices are asked to come again.
    package var waitingReadsMax = 4_096

    /// The time over which a server that is to stop ends its streams, not ready any more, while it
    /// still answers requests.
    package var drainSeconds: Int64 = 0
    /// The time for which a shutdown then waits for requests under way.
    package var shutdownSeconds: Int64 = 10

    package var clock = ServerClock.system

    package init(dataFolder: String) { self.dataFolder = dataFolder }

    /// The path of the operator's credential for a server with these settings.
    package var operatorCredentialPath: String {
        DataFolder(path: dataFolder).operatorCredentialPath
    }
}

extension ServerSettings {
    /// The address of the server for people and devices, as well as its settings say it. Behind a
    /// proxy, that is the first host name, with TLS.
    /// - Parameter port: The port that it listens on.
    package func address(port: Int) -> String {
        if tls == nil, !trustedProxies.isEmpty, let name = hostNames.first {
            return "https://\(name)"
        }
        // One address may stand for all of the machine's.
        let name = hostNames.first ?? (["0.0.0.0", "::"].contains(host) ? "localhost" : host)
        let shown = name.contains(":") ? "[\(name)]" : name
        return "\(tls == nil ? "http" : "https")://\(shown):\(port)"
    }
}

/// The files of a server's TLS identity, in PEM.
package struct ServerTLS: Hashable, Sendable {
    /// The server's certificate and its intermediate certificates.
    package var certificatePath: String
    /// Must only be readable by the server's user.
    package var keyPath: String

    package init(certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
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
            milliseconds: historySeconds * 1_000, versionsMax: versionsPerEntryMax,
            bytesMax: historyBytesMax > 0 ? historyBytesMax : 4 * limits.storeBytesMax)
    }

    /// All limits by their names here. The audit log records when they change.
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
