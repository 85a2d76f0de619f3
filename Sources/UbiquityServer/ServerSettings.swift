// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What an operator can set. Every limit has a default that suits a server of a few thousand
/// devices on a small machine.
package struct ServerSettings: Sendable {
    /// The path of the folder that holds everything the server keeps. Made at the first start.
    package var dataFolder: String
    /// The address to listen on: a name or a number.
    package var host = "127.0.0.1"
    /// 0: any free port.
    package var port = 7717

    /// What requests may call the server, besides this machine's own names; none: see ``HostRule``.
    package var hostNames: [String] = []

    /// Nil: plain HTTP.
    package var tls: ServerTLS?
    /// Whose `X-Forwarded-For` is believed.
    package var trustedProxies: [AddressRange] = []
    /// Where the metrics are, for the operator's eyes.
    package var metricsHost = "127.0.0.1"
    /// 0: any free port; nil: nowhere.
    package var metricsPort: Int?

    package var limits = StoreLimits()
    /// How often one device may push.
    package var allowance = Allowance()
    /// How often one remote address may try to sign in.
    package var signInAllowance = Allowance(burst: 60, perSecond: 1)
    /// How often all addresses together may try to sign in, for an attacker may have many.
    package var signInTotalAllowance = Allowance(burst: 1_000, perSecond: 50)

    /// Which apps may have stores here.
    package var apps = AppAdmission.open

    /// Whose tokens sign devices in, besides codes; nil: nobody's.
    package var identity: IdentitySettings?
    /// How often one remote address may ask for anything.
    package var requestAllowance = Allowance(burst: 6_000, perSecond: 600)

    /// How long deletions are remembered at least, as long as there are no more than
    /// ``deletionsPerStoreMax``.
    package var deletionsRememberedSeconds: Int64 = 30 * 86_400
    package var deletionsPerStoreMax = 16_384
    /// A device that was not seen for so long does not hold up the forgetting of deletions.
    package var deviceLiveSeconds: Int64 = 90 * 86_400
    package var signInCodeSeconds: Int64 = 600

    /// A device whose credential expired so long ago is removed.
    package var expiredDevicesKeptSeconds: Int64 = 30 * 86_400

    package var accountsMax = 100_000
    package var appsMax = 10_000
    /// The audit trail's; beyond, the oldest are removed.
    package var auditEntriesMax = 100_000
    package var devicesPerAccountMax = 256
    package var storesPerAccountMax = 256
    package var listenersPerAccountMax = 64
    /// What waits for one listener that reads slowly; above, it is told to pull again.
    package var listenerBufferBytesMax = 4 << 20
    /// What waits for all listeners together.
    package var listenersBytesMax = 256 << 20
    /// An idle listener gets a sign of life so often. At least 1.
    package var keepAliveSeconds = 20

    package var connectionsMax = 16_384
    package var connectionsPerAddressMax = 1_024
    /// Of a request's address and headers.
    package var headerBytesMax = 16_384
    package var headerFieldsMax = 64
    /// Requests of a connection that may wait for their answers.
    package var pipelinedRequestsMax = 16
    /// From a connection, or the first byte of a request, to the end of the headers.
    package var headSecondsMax: Int64 = 20
    /// From the end of the headers to that of the body.
    package var bodySecondsMax: Int64 = 120
    /// The least of a body that must come, in each ``slowSecondsMax``.
    package var bodyBytesPerSecondMin = 1_024
    /// The least of an answer that must be taken, in each ``slowSecondsMax``.
    package var answerBytesPerSecondMin = 1_024
    package var slowSecondsMax: Int64 = 20
    /// Bodies of all requests together, until they are decoded.
    package var bodiesBytesMax = 128 << 20
    /// Answers of all connections together that wait for the other side; above, no further store
    /// is read.
    package var answersBytesMax = 256 << 20
    /// A connection on which nothing is asked is closed.
    package var idleConnectionSeconds: Int64 = 120
    /// Pushes that wait for the disk; above, devices are asked to come again.
    package var waitingPushesMax = 4_096
    package var waitingPushBytesMax = 64 << 20
    /// Reads that wait for a thread; above, devices are asked to come again.
    package var waitingReadsMax = 4_096

    /// How long a shutdown waits for requests under way.
    package var shutdownSeconds: Int64 = 10

    package var clock = ServerClock.system

    package init(dataFolder: String) { self.dataFolder = dataFolder }

    /// Where a server with these settings keeps its operator's credential.
    package var operatorCredentialPath: String {
        DataFolder(path: dataFolder).operatorCredentialPath
    }
}

/// Which apps may have stores on a server.
package enum AppAdmission: String, CaseIterable, Sendable {
    case open
    /// Those that the operator registered.
    case registered
}

extension ServerSettings {
    /// How much of everything there may be, by the names here: what the audit log has when it changes.
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
