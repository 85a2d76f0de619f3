// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore
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
