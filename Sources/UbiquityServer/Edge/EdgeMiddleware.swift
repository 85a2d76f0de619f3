// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore
internal import NIOHTTPTypes
internal import UbiquityCore

/// Determines the origin of a request, and reports its outcome to log and metrics.
struct EdgeMiddleware: RouterMiddleware {
    typealias Context = ServerContext

    let edge: Edge

    func handle(
        _ request: Request, context: ServerContext,
        next: @concurrent (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        context.origin = origin(of: request, context)
        var request = request
        if request.awaitsContinue {
            request.body = RequestBody(
                asyncSequence: AwaitedBody(body: request.body, channel: context.channel))
        }
        let start = NIODeadline.now()
        var response = try await next(request, context)
        let elapsed = NIODeadline.now() - start
        record(request, response, context, seconds: Double(elapsed.nanoseconds) / 1e9)
        edge.addHeaders(to: &response.headers, for: request)
        // Errors too: a client reads no body after HEAD, and would take it for the next answer.
        return request.method == .head ? response.createHeadResponse() : response
    }

    private func origin(of request: Request, _ context: ServerContext) -> IPAddress? {
        context.channel.remoteIPAddress.map {
            edge.proxies.origin(peer: $0, forwarded: request.headers[values: .forwardedFor])
        }
    }

    private func record(
        _ request: Request, _ response: Response, _ context: ServerContext, seconds: Double
    ) {
        // Unknown paths and methods are text chosen by the client.
        let route = context.endpointPath ?? "none"
        let method = Self.methods.contains(request.method) ? request.method.rawValue : "other"
        edge.metrics.answered(
            ServerMetrics.AnsweredRequest(
                method: method, route: route, status: response.status.code),
            seconds: seconds)
        context.logger.info(
            "Request.",
            metadata: [
                "method": "\(method)", "route": "\(route)", "status": "\(response.status.code)",
                "milliseconds": "\(Int((seconds * 1_000).rounded()))",
                "remote": "\(context.origin.map { "\($0)" } ?? "local")",
            ])
    }

    private static let methods: [HTTPRequest.Method] = [
        .get, .head, .post, .put, .patch, .delete, .options,
    ]
}

/// Limits the rate of an address's requests.
struct RateMiddleware: RouterMiddleware {
    typealias Context = ServerContext

    let requests: RateLimiter<String>

    func handle(
        _ request: Request, context: ServerContext,
        next: @concurrent (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        try requests.take(context.remoteAddress)
        return try await next(request, context)
    }
}

extension HTTPField.Name {
    fileprivate static let forwardedFor = HTTPField.Name("X-Forwarded-For")!
}

/// The context of a request for a route.
struct ServerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel
    /// The origin of the request, behind trusted proxies; nil if unknown.
    var origin: IPAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// The unit for counting: the address without the port, and of IPv6 the first 64 bits.
    var remoteAddress: String { origin.map { "\($0.neighbourhood)" } ?? "local" }
}

/// A body that the client only sends on request (`Expect: 100-continue`). It is requested when
/// reading begins. A request that is refused by its head gets its answer instead.
struct AwaitedBody: AsyncSequence, Sendable {
    let body: RequestBody
    let channel: any Channel

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var parts: RequestBody.AsyncIterator
        /// Nil once the body was requested.
        fileprivate var channel: (any Channel)?

        @concurrent mutating func next() async throws -> ByteBuffer? {
            if let channel {
                self.channel = nil
                try await channel.writeAndFlush(
                    HTTPResponsePart.head(HTTPResponse(status: .continue)))
            }
            return try await parts.next()
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(parts: body.makeAsyncIterator(), channel: channel)
    }
}

extension Request {
    var awaitsContinue: Bool { headers[.expect]?.lowercased() == "100-continue" }
}
