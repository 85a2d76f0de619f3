// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization
internal import UbiquityCore
internal import UbiquityWire

/// The state that all connections of a server share: their number, their memory budgets, the TLS
/// identity, and counts of refusals.
///
/// State: `noted`, the refusals that have not been logged yet, and `foreignHosts`, each guarded by its
/// lock.
final class Edge: Sendable {
    let settings: ServerSettings
    let metrics: ServerMetrics
    /// Nil for plain HTTP.
    let tls: TLSIdentity?
    let connectionCounter: ConnectionCounter
    let proxies: TrustedProxies
    private let hosts: HostRule
    private let admitsAddresses: Bool
    private let pages: OriginRule
    /// The data in connections that waits to be read by the other side.
    let answers: ByteBudget
    /// The bodies of requests, until they are decoded.
    let bodies: ByteBudget
    let requestRules: RequestPhase.Rules
    let answerPace: TrafficPace.Rule
    let date = DateHeader()

    private let noted = Mutex<[EdgeLimit: Int]>([:])
    /// The foreign names that were logged.
    private let foreignHosts = Mutex<Set<String>>([])
    private let logger: Logger

    /// - Parameter admitsAddresses: See ``HostRule/admitsAddress(_:)``.
    init(
        _ settings: ServerSettings, tls: TLSIdentity?, metrics: ServerMetrics, logger: Logger,
        admitsAddresses: Bool = false
    ) {
        self.settings = settings
        self.admitsAddresses = admitsAddresses || settings.isHouse
        self.logger = logger
        self.metrics = metrics
        self.tls = tls
        proxies = TrustedProxies(settings.trustedProxies)
        hosts = settings.hostRule
        pages = OriginRule(settings.allowedOrigins)
        connectionCounter = ConnectionCounter(
            max: settings.connectionsMax, perAddressMax: settings.connectionsPerAddressMax,
            proxies: proxies)
        answers = ByteBudget(max: settings.answersBytesMax)
        bodies = ByteBudget(max: settings.bodiesBytesMax)
        requestRules = RequestPhase.Rules(settings)
        answerPace = TrafficPace.Rule(
            windowMilliseconds: settings.constants.slowSeconds * 1_000,
            bytesPerSecondMin: settings.constants.answerBytesPerSecondMin,
            lumpBytesMax: Self.answerLumpBytesMax)
    }

    /// The server cannot see when bytes in the system's send buffer are read, and Linux uses
    /// megabytes by default.
    static let sendBufferBytes = 64 << 10
    /// The time in which the last answer of a connection must be read.
    static let lingerMilliseconds: Int64 = 2_000
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

    /// Whether a connection that begins without TLS is served. What this machine sends itself, nobody
    /// on the network reads.
    func admitsPlain(from address: IPAddress?) -> Bool {
        tls == nil || settings.isHouse && address?.isLoopback ?? false
    }

    /// Whether the server answers to this value of a Host header.
    func admits(host: String) -> Bool {
        admitsAddresses ? hosts.admitsAddress(host) : hosts.admits(host)
    }

    /// The refusal of a request for a name that the server does not answer to. Each name is logged
    /// once, and only the first ones.
    func refusal(ofHost host: String) -> Problem {
        let shown = String(host.prefix(Self.hostShownMax))
        let isNew = foreignHosts.withLock { known in
            known.count < Self.foreignHostsMax && known.insert(shown).inserted
        }
        if isNew {
            logger.notice(
                """
                A request used a name that the server does not answer to. If it is the server's, add it \
                with --host-name; behind a proxy, name the proxy with --trusted-proxy.
                """, metadata: ["name": "\(shown)"])
        }
        return .hostForeign(shown)
    }

    private static let hostShownMax = 100
    private static let foreignHostsMax = 16

    /// Counts a client's violation of a limit.
    func note(_ limit: EdgeLimit) {
        metrics.limited(limit)
        noted.withLock { $0[limit, default: 0] += 1 }
    }

    /// Records a refusal in the metrics, and in the log if it is the server's fault.
    func note(_ problem: Problem, route: String) {
        metrics.refused(problem.code)
        if let limit = problem.limit { note(limit) }
        if problem.showsDamage {
            metrics.foundUnreadable()
            logger.error(
                "A request needs an unreadable record. See `ubiquity doctor --data`.",
                metadata: ["route": "\(route)"])
        } else if problem.status.code >= 500, problem.limit == nil, problem.isLogged {
            logger.error(
                "A request failed.",
                metadata: ["route": "\(route)", "code": "\(problem.code.rawValue)"])
        }
    }

    /// Logs at most one line for each limit: a flood of requests must not flood the log.
    func report() {
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
    /// sent the request, and the answer does not say itself how to use it. Caches do not store the answer to a POST by default, and browsers do not
    /// have a credential. So the frequent requests of devices get shorter answers.
    /// - Parameter request: Nil if the request was not read far enough to be known.
    func addHeaders(to headers: inout HTTPHeaders, for request: HTTPRequestHead? = nil) {
        let hasCredential = request?.headers.contains(name: "authorization") ?? false
        if request?.method != .POST || !hasCredential {
            headers.addIfMissing("Cache-Control", "no-store")
        }
        if let request, !pages.isEmpty { allowPages(to: &headers, for: request) }
        guard !hasCredential else { return }
        headers.add(name: "X-Content-Type-Options", value: "nosniff")
        headers.addIfMissing(
            "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
        headers.add(name: "Referrer-Policy", value: "no-referrer")
        // A house's name may have other servers, without TLS.
        if tls != nil, !settings.isHouse {
            headers.add(name: "Strict-Transport-Security", value: "max-age=31536000")
        }
    }

    /// Lets a page of an allowed origin send the request, and read its answer. A browser asks first,
    /// by `OPTIONS`, whether the page may.
    private func allowPages(to headers: inout HTTPHeaders, for request: HTTPRequestHead) {
        headers.add(name: "Vary", value: "origin")
        guard let origin = request.headers.first(name: "origin"), pages.admits(origin) else {
            return
        }
        headers.add(name: "Access-Control-Allow-Origin", value: origin)
        guard request.method == .OPTIONS else {
            return headers.add(name: "Access-Control-Expose-Headers", value: "retry-after")
        }
        if let methods = headers.first(name: "Allow") {
            headers.add(name: "Access-Control-Allow-Methods", value: methods)
        }
        headers.add(
            name: "Access-Control-Allow-Headers",
            value: "authorization, content-type, last-event-id, \(keyProofHeader)")
        headers.add(name: "Access-Control-Max-Age", value: "7200")
    }

    /// The origin of a request, behind trusted proxies; nil if unknown.
    func origin(of request: HTTPRequestHead, from peer: IPAddress?) -> IPAddress? {
        peer.map { proxies.origin(peer: $0, forwarded: request.headers["x-forwarded-for"]) }
    }

    /// Records the outcome of a request in the metrics and in the log.
    func record(
        _ request: HTTPRequestHead, route: String, _ status: HTTPResponseStatus,
        _ origin: IPAddress?, seconds: Double
    ) {
        // Unknown paths and methods are text chosen by the client.
        let method = Self.methods.contains(request.method) ? request.method.rawValue : "other"
        metrics.answered(
            ServerMetrics.AnsweredRequest(method: method, route: route, status: Int(status.code)),
            seconds: seconds)
        logger.info(
            "Request.",
            metadata: [
                "method": "\(method)", "route": "\(route)", "status": "\(status.code)",
                "milliseconds": "\(Int((seconds * 1_000).rounded()))",
                "remote": "\(origin.map { "\($0)" } ?? "local")",
            ])
    }

    private static let methods: [HTTPMethod] = [
        .GET, .HEAD, .POST, .PUT, .PATCH, .DELETE, .OPTIONS,
    ]

    /// The answer to a request that ends its connection.
    func lastAnswer(_ problem: Problem) -> ByteBuffer {
        var headers = problem.headers
        let body = problem.body
        headers.add(name: "Connection", value: "close")
        headers.add(name: "Content-Length", value: "\(body.readableBytes)")
        addHeaders(to: &headers)
        var bytes = AnswerText.head(problem.status, headers, version: .http1_1)
        bytes.writeImmutableBuffer(body)
        return bytes
    }
}

/// The time for the header `Date`, as text that is made once a second.
///
/// State: `current`, guarded by its lock.
final class DateHeader: Sendable {
    private let current = Mutex((second: time_t(0), text: ""))

    var text: String {
        let now = time(nil)
        return current.withLock { current in
            if current.second != now { current = (now, Self.text(now)) }
            return current.text
        }
    }

    /// The form of RFC 9110, in the C locale, which no program here changes.
    private static func text(_ second: time_t) -> String {
        var (second, parts) = (second, tm())
        gmtime_r(&second, &parts)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            strftime(buffer.baseAddress!, buffer.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
            return String(cString: buffer.baseAddress!)
        }
    }
}

extension HTTPHeaders {
    fileprivate mutating func addIfMissing(_ name: String, _ value: String) {
        if !contains(name: name) { add(name: name, value: value) }
    }
}

extension RequestPhase.Rules {
    init(_ settings: ServerSettings) {
        self.init(
            headMilliseconds: settings.constants.headSeconds * 1_000,
            idleMilliseconds: settings.constants.idleConnectionSeconds * 1_000,
            body: TrafficPace.Rule(
                windowMilliseconds: settings.constants.slowSeconds * 1_000,
                bytesPerSecondMin: ServerConstants.bodyBytesPerSecondMin,
                totalMilliseconds: settings.constants.bodySeconds * 1_000),
            pipelinedMax: ServerConstants.pipelinedRequestsMax)
    }
}
