// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore
internal import NIOHTTPTypes
internal import Synchronization
internal import UbiquityCore

/// The state that all connections of a server share: their number, their memory budgets, the TLS
/// identity, and counts of refusals.
///
/// State: `noted`, the refusals that have not been logged yet, guarded by its lock.
final class Edge: Sendable {
    let settings: ServerSettings
    let metrics: ServerMetrics
    /// Nil for plain HTTP.
    let tls: TLSIdentity?
    let connectionCounter: ConnectionCounter
    let proxies: TrustedProxies
    let hosts: HostRule
    /// The data in connections that waits to be read by the other side.
    let answers: ByteBudget
    /// The bodies of requests, until they are decoded.
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
        connectionCounter = ConnectionCounter(
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

    /// The server cannot see when bytes in the system's send buffer are read, and Linux uses
    /// megabytes by default.
    static let sendBufferBytes = 64 << 10
    /// Linux doubles the buffer, and asks for more when a third of it is free. The other side's
    /// system announces space when half of its own buffer is free.
    private static let answerLumpBytesMax = 2 * sendBufferBytes

    /// For a connection that is only told that there are too many.
    var refusalRules: RequestPhase.Rules {
        var rules = requestRules
        rules.headMilliseconds = min(rules.headMilliseconds, 5_000)
        rules.idleMilliseconds = min(rules.idleMilliseconds, 2_000)
        return rules
    }

    /// Counts a client's violation of a limit.
    func note(_ limit: EdgeLimit) {
        metrics.limited(limit)
        noted.withLock { $0[limit, default: 0] += 1 }
    }

    /// Logs at most one line for each limit: a flood of requests must not flood the log.
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

    /// Adds headers that keep caches and browsers from using an answer, if one of them could have
    /// sent the request. Caches do not store the answer to a POST by default, and browsers do not
    /// have a credential. So the frequent requests of devices get shorter answers.
    /// - Parameter request: Nil if the request was not read far enough to be known.
    func addHeaders(to fields: inout HTTPFields, for request: Request? = nil) {
        let hasCredential = request?.headers[.authorization] != nil
        if request?.method != .post || !hasCredential { fields[.cacheControl] = "no-store" }
        guard !hasCredential else { return }
        fields[.xContentTypeOptions] = "nosniff"
        fields[.contentSecurityPolicy] = "default-src 'none'; frame-ancestors 'none'"
        fields[.referrerPolicy] = "no-referrer"
        if tls != nil { fields[.strictTransportSecurity] = "max-age=31536000" }
    }

    /// The answer to a request that ends its connection.
    func lastAnswer(_ problem: Problem) -> [HTTPResponsePart] {
        var head = HTTPResponse(status: problem.status, headerFields: problem.headers)
        let body = problem.body
        head.headerFields[.connection] = "close"
        head.headerFields[.contentLength] = "\(body.readableBytes)"
        addHeaders(to: &head.headerFields)
        return [.head(head), .body(body), .end(nil)]
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
