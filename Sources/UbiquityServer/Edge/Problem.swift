// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityWire

/// The reason a request was refused, as in the answer. Below the routes and the edge, errors are
/// the domain's own, and `Problem.init(_:)` translates them.
struct Problem: Error, Sendable {
    var code: ProblemCode
    /// A sentence with the problem and the solution.
    var detail: String
    var retryAfterSeconds: Int64?
    /// The limit that was exceeded; nil for other problems.
    var limit: EdgeLimit?
    /// Nil if it is irrelevant for this problem.
    var serverMilliseconds: Int64?
    /// The same.
    var knownSinceMilliseconds: Int64?
    /// As ``WireProblem/generation``.
    var generation: UInt32 = 0
    /// The methods of the path, for 405.
    var allow: String?
    /// Whether something in the database is unreadable.
    var showsDamage = false
    /// False if the problem is logged elsewhere, less often than it is answered.
    var isLogged = true

    init(
        _ code: ProblemCode, _ detail: String, retryAfterSeconds: Int64? = nil,
        at limit: EdgeLimit? = nil
    ) {
        self.code = code
        self.detail = detail
        self.retryAfterSeconds = retryAfterSeconds
        self.limit = limit
    }

    static func malformed(_ detail: String) -> Problem { Problem(.malformed, detail) }

    static func unavailable(
        _ detail: String, seconds: Int64 = 1, at limit: EdgeLimit? = nil
    ) -> Problem {
        Problem(.unavailable, detail, retryAfterSeconds: seconds, at: limit)
    }

    var status: HTTPResponseStatus { HTTPResponseStatus(statusCode: code.status) }
}

// MARK: - The answer

extension Problem {
    /// Problem details according to RFC 9457, in JSON whatever the request accepts.
    var answer: Answer { Answer(status, headers: headers, body: body) }

    var headers: HTTPHeaders {
        var headers: HTTPHeaders = ["Content-Type": "application/problem+json"]
        if let retryAfterSeconds { headers.add(name: "Retry-After", value: "\(retryAfterSeconds)") }
        if let allow { headers.add(name: "Allow", value: allow) }
        if status == .unauthorized { headers.add(name: "WWW-Authenticate", value: "Bearer") }
        return headers
    }

    var body: ByteBuffer { ByteBuffer(bytes: WireFormat.json.encode(message)) }

    /// For the event that a store's stream has ended, which has no headers.
    func message(of store: StoreIdentifier) -> WireProblem {
        var message = message
        message.store = store.string
        message.retryAfterSeconds = UInt64(clamping: retryAfterSeconds ?? 0)
        return message
    }

    private var message: WireProblem {
        .with {
            $0.type = "urn:ubiquity:problem:\(code.rawValue)"
            $0.title = status.reasonPhrase
            $0.status = UInt32(status.code)
            $0.detail = detail
            $0.code = code.rawValue
            $0.serverMilliseconds = UInt64(clamping: serverMilliseconds ?? 0)
            $0.knownSinceMilliseconds = UInt64(clamping: knownSinceMilliseconds ?? 0)
            $0.generation = generation
        }
    }
}

// MARK: - The problems of the edge

extension Problem {
    static let headerTooLarge = Problem(
        .headerTooLarge,
        "The request's address or headers are too large, or there are too many headers.")
    static let notHTTP = malformed("The request is not HTTP/1.1.")
    static let codingUnknown = malformed(
        "A body has a length or comes in chunks: there is no other transfer coding.")
    static let bodyIncomplete = malformed("The request ended before its body did.")
    static let hostInvalid = malformed(
        "A request must name the server exactly once, in the Host header.")
    /// - Parameter host: As the request has it.
    static func hostForeign(_ host: String) -> Problem {
        Problem(
            .hostForeign,
            "This server does not answer to the name \"\(host)\". Its operator can add the name with "
                + "the setting host-name, or, if a proxy sends it, name the proxy with trusted-proxy."
        )
    }
    static let requestTooSlow = Problem(
        .requestTooSlow, "The request came too slowly. Send it again over a better connection.")
    static let tooManyConnections = unavailable(
        "The server has reached its limit of connections. Try again soon.", seconds: 5)
    static let tooManyConnectionsFromThere = Problem(
        .tooManyRequests, "There are too many connections from this address. Close some.",
        retryAfterSeconds: 5)
}
