// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypesHTTP1
internal import UbiquityCore

/// Answers requests in a task each, by Hummingbird's router.
struct TaskResponder: Sendable {
    let responder: RouterResponder<ServerContext>
    let logger: Logger

    func answer(_ exchange: Exchange) {
        guard let channel = exchange.connection.channel else { return }
        guard let head = try? HTTPRequest(exchange.request, secure: false, splitCookie: false)
        else { return exchange.refuse(Problem.notHTTP) }
        let loop = exchange.loop
        let bound = NIOLoopBound(exchange, eventLoop: loop)
        let request = Request(
            head: head, body: RequestBody(asyncSequence: SmallBody(exchange: bound)))
        var context = ServerContext(
            source: ApplicationRequestContextSource(channel: channel, logger: logger))
        context.origin = exchange.origin
        Task { [context] in
            let response: Response
            do { response = try await responder.respond(to: request, context: context) } catch {
                let route = context.route
                loop.execute {
                    bound.value.route = route
                    bound.value.refuse(error)
                }
                return
            }
            let writer = AnswerWriter(
                exchange: bound, loop: loop, route: context.route, head: response.head)
            do {
                try await request.method != .head
                    ? response.body.write(writer) : writer.finish(nil)
            } catch { loop.execute { bound.value.connection.abort() } }
        }
    }
}

/// The context of a request for a route.
struct ServerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The origin of the request, behind trusted proxies; nil if unknown.
    var origin: IPAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
    }

    /// The unit for counting: the address without the port, and of IPv6 the first 64 bits.
    var remoteAddress: String { origin.map { "\($0.neighbourhood)" } ?? "local" }

    /// As ``Exchange/route``, once the route is found.
    var route: String { endpointPath ?? "none" }
}

/// A body, in one piece. It is read when somebody asks for it.
private struct SmallBody: AsyncSequence, Sendable {
    let exchange: NIOLoopBound<Exchange>

    /// No message but a push is larger.
    private static let bytesMax = 16_384

    struct AsyncIterator: AsyncIteratorProtocol {
        /// Nil once the body was read.
        fileprivate var exchange: NIOLoopBound<Exchange>?

        @concurrent mutating func next() async throws -> ByteBuffer? {
            guard let bound = exchange else { return nil }
            exchange = nil
            return try await withCheckedThrowingContinuation { continuation in
                bound.eventLoop.execute {
                    bound.value.readBody(bytesMax: SmallBody.bytesMax) {
                        continuation.resume(with: $0.mapError { $0 })
                    }
                }
            }
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(exchange: exchange) }
}

/// Sends an answer: one that fits into a piece in one go, and others as fast as the other side
/// reads.
private struct AnswerWriter: ResponseBodyWriter {
    let exchange: NIOLoopBound<Exchange>
    let loop: any EventLoop
    let route: String
    let head: HTTPResponse
    var waiting = ByteBuffer()
    var hasBegun = false

    mutating func write(_ buffer: ByteBuffer) async throws {
        waiting.writeImmutableBuffer(buffer)
        if waiting.readableBytes > Answer.pieceBytes { try await send() }
    }

    private mutating func send() async throws {
        let (piece, isFirst) = (waiting, !hasBegun)
        (waiting, hasBegun) = (ByteBuffer(), true)
        try await loop.flatSubmit { [exchange, route, head] in
            let exchange = exchange.value
            exchange.route = route
            if isFirst { _ = exchange.begin(head.status, head.headerFields) }
            return exchange.connection.write(piece)
        }.get()
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
        if hasBegun, waiting.readableBytes > 0 { try await send() }
        loop.execute { [exchange, route, head, waiting, hasBegun] in
            let exchange = exchange.value
            guard !hasBegun else { return exchange.connection.endAnswer() }
            exchange.route = route
            exchange.answer(Answer(head.status, headers: head.headerFields, body: waiting))
        }
    }
}
