// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import Synchronization
internal import UbiquityCore

/// What all connections of a server share: their number, the memory they may take, the TLS
/// identity, and the count of what was refused.
///
/// State: `noted`, what the log has not told yet, guarded by its lock.
final class Edge: Sendable {
    let settings: ServerSettings
    let metrics: ServerMetrics
    /// Nil: plain HTTP.
    let tls: TLSIdentity?
    let census: ConnectionCensus
    let proxies: TrustedProxies
    let hosts: HostRule
    /// What waits in connections for the other side to read it.
    let answers: ByteBudget
    /// Requests' bodies, until they are decoded.
    let bodies: ByteBudget
    let requestRules: RequestPhase.Rules
    let answerPace: TrafficPace.Rule

    private let noted = Mutex<[EdgeLimit: Int]>([:])

    init(_ settings: ServerSettings, tls: TLSIdentity?, metrics: ServerMetrics) {
        self.settings = settings
        self.metrics = metrics
        self.tls = tls
        proxies = TrustedProxies(settings.trustedProxies)
        hosts = HostRule(
            names: settings.hostNames,
            isReachedByOthers: !PlainHTTPRule.isLoopback(settings.host)
                || !settings.trustedProxies.isEmpty)
        census = ConnectionCensus(
            max: settings.connectionsMax, perAddressMax: settings.connectionsPerAddressMax,
            proxies: proxies)
        answers = ByteBudget(max: settings.answersBytesMax)
        bodies = ByteBudget(max: settings.bodiesBytesMax)
        requestRules = RequestPhase.Rules(settings)
        answerPace = TrafficPace.Rule(
            windowMilliseconds: settings.slowSecondsMax * 1_000,
            bytesPerSecondMin: settings.answerBytesPerSecondMin,
            lumpBytesMax: Self.answerLumpBytesMax)
    }

    /// What a system takes for sending is not seen to be read, and Linux takes megabytes of its own
    /// accord.
    static let sendBufferBytes = 64 << 10
    /// Linux doubles the buffer and asks for more when a third is free; the other side's system tells of
    /// room when it has half of its own.
    private static let answerLumpBytesMax = 2 * sendBufferBytes

    /// For a connection that is only to be told that there are too many.
    var refusalRules: RequestPhase.Rules {
        var rules = requestRules
        rules.headMilliseconds = min(rules.headMilliseconds, 5_000)
        rules.idleMilliseconds = min(rules.idleMilliseconds, 2_000)
        return rules
    }

    /// Counts what a stranger ran into.
    func note(_ limit: EdgeLimit) {
        metrics.limited(limit)
        noted.withLock { $0[limit, default: 0] += 1 }
    }

    /// At most one line for each limit, whatever came: a flood must not flood the log.
    func report(to logger: Logger) {
        let counts = noted.withLock { noted in
            defer { noted = [:] }
            return noted
        }
        for (limit, count) in counts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            logger.notice(
                "A limit was reached.",
                metadata: ["limit": "\(limit.rawValue)", "count": "\(count)"])
        }
    }

    /// Tells caches and browsers that an answer is not theirs, where one of them could have asked. No
    /// cache keeps the answer to a POST by itself, and no browser has a credential: what a device asks
    /// all the time is answered in fewer bytes.
    /// - Parameter request: Nil: it did not come so far as to be known.
    func addHeaders(to fields: inout HTTPFields, for request: Request? = nil) {
        let hasCredential = request?.headers[.authorization] != nil
        if request?.method != .post || !hasCredential { fields[.cacheControl] = "no-store" }
        guard !hasCredential else { return }
        fields[.xContentTypeOptions] = "nosniff"
        fields[.contentSecurityPolicy] = "default-src 'none'; frame-ancestors 'none'"
        fields[.referrerPolicy] = "no-referrer"
        if tls != nil { fields[.strictTransportSecurity] = "max-age=31536000" }
    }
}

extension HTTPField.Name {
    fileprivate static let referrerPolicy = HTTPField.Name("Referrer-Policy")!
}

extension RequestPhase.Rules {
    init(_ settings: ServerSettings) {
        self.init(
            headMilliseconds: settings.headSecondsMax * 1_000,
            idleMilliseconds: settings.idleConnectionSeconds * 1_000,
            body: TrafficPace.Rule(
                windowMilliseconds: settings.slowSecondsMax * 1_000,
                bytesPerSecondMin: settings.bodyBytesPerSecondMin,
                totalMilliseconds: settings.bodySecondsMax * 1_000),
            pipelinedMax: settings.pipelinedRequestsMax)
    }
}
