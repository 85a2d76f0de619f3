// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

/// Takes a connection's requests one after the other, and sends their answers.
///
/// The innermost handler. State: confined to the connection's event loop.
final class HTTPConnection: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    /// Answers a request, or begins to: no later request is taken before.
    typealias Responder = @Sendable (Exchange) -> Void

    let edge: Edge
    let loop: any EventLoop
    /// The client that made the last request; nil if unknown.
    var client: Client?
    private let respond: Responder
    private let limits: RequestLimitHandler
    /// The other handlers of HTTP, which end with this one.
    private let others: [any RemovableChannelHandler]
    /// The other side; nil if it has no address.
    private let peer: IPAddress?
    private var context: ChannelHandlerContext?
    /// The request that is being read or answered.
    private var exchange: Exchange?
    /// The number of answers that have begun.
    private var answers = 0
    /// Bytes that are written together with what follows.
    private var begun = ByteBuffer()
    /// Whether the body of the answer is sent in chunks.
    private(set) var isChunked = false
    /// The rest of an answer that the other side has not read yet.
    private var rest: Answer?
    private var isSending = false
    /// Parts that wait for the exchange before them, or for somebody to read them.
    private var inbox = CircularBuffer<HTTPServerRequestPart>()
    private var isProcessing = false
    /// Whether more is to be read from the other side when the inbox is empty.
    private var isReadWanted = false
    /// Whether the connection ends after the answers to the requests that have arrived.
    private var isEnding = false

    /// The caller that a credential was found to be.
    struct Client {
        /// The header field.
        var authorization: String?
        var caller: Caller
        /// The number of revocations before it was looked up.
        var revocations: Int
        /// The uptime from which it must be looked up again.
        var until: Int64
    }

    init(
        _ edge: Edge, peer: IPAddress?, on loop: any EventLoop, limits: RequestLimitHandler,
        others: [any RemovableChannelHandler], respond: @escaping Responder
    ) {
        self.edge = edge
        self.limits = limits
        self.others = others
        self.peer = peer
        self.loop = loop
        self.respond = respond
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        let last = exchange
        self.context = nil
        (exchange, rest) = (nil, nil)
        inbox.removeAll()
        last?.abandon()
    }

    var channel: (any Channel)? { context?.channel }

    // MARK: - Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        inbox.append(unwrapInboundIn(data))
        process()
    }

    /// Takes the parts that can be taken.
    func process() {
        guard !isProcessing else { return }
        isProcessing = true
        repeat {
            if exchange?.isOver == true { exchange = nil }
        } while inbox.first.map(take) ?? false
        isProcessing = false
        if isEnding, exchange == nil, inbox.isEmpty { closeWhenSent() }
        if isReadWanted, inbox.isEmpty {
            isReadWanted = false
            context?.read()
        }
    }

    private func take(_ part: HTTPServerRequestPart) -> Bool {
        if let exchange {
            guard exchange.hasEnded == false else { return false }
            // Reading may end the connection, and empties the inbox then.
            inbox.removeFirst()
            if exchange.take(part) { return true }
            inbox.prepend(part)
            return false
        }
        inbox.removeFirst()
        guard case .head(let head) = part else { return true }
        let exchange = Exchange(head, on: self, origin: edge.origin(of: head, from: peer))
        self.exchange = exchange
        respond(exchange)
        return true
    }

    /// Pauses while parts wait.
    func read(context: ChannelHandlerContext) {
        guard inbox.isEmpty else {
            isReadWanted = true
            return
        }
        context.read()
    }

    // MARK: - Answers

    func writeContinue() { put(AnswerText.proceed, flush: true) }

    private func put(_ bytes: ByteBuffer, flush: Bool = false) {
        guard let context, !limits.isEnding else { return }
        context.write(wrapOutboundOut(bytes), promise: nil)
        if flush { context.flush() }
    }

    /// Begins an answer. Nothing is sent before the body or the end.
    /// - Parameters:
    ///   - headers: With the body's length, unless that is not known.
    ///   - hasBody: False for an answer without one, of whatever length.
    func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders, hasBody: Bool) {
        limits.answerBegan()
        answers += 1
        var headers = headers
        let isLast = answers == limits.last
        if isLast { headers.replaceOrAdd(name: "Connection", value: "close") }
        let version = isLast ? limits.lastVersion : .http1_1
        // Without a length, the end of the answer is the end of the connection: HTTP/1.0 has no
        // chunks.
        let isEndless = !headers.contains(name: "Content-Length") && status != .noContent
        if isEndless, version == .http1_1 {
            headers.add(name: "Transfer-Encoding", value: "chunked")
        }
        isChunked = isEndless && version == .http1_1 && hasBody
        begun = AnswerText.head(status, headers, version: version)
    }

    /// Writes part of a body.
    /// - Returns: Succeeds when the other side has read enough for more; fails when it is gone.
    func write(_ body: ByteBuffer) -> EventLoopFuture<Void> {
        guard let context, !limits.isEnding else {
            return loop.makeFailedFuture(ChannelError.ioOnClosedChannel)
        }
        writeBegun()
        if isChunked { put(ByteBuffer(string: AnswerText.chunkBegin(body.readableBytes))) }
        let written = context.write(wrapOutboundOut(body))
        if isChunked { put(ByteBuffer(string: AnswerText.chunkEnd)) }
        context.flush()
        return written
    }

    private func writeBegun() {
        guard begun.readableBytes > 0 else { return }
        put(begun)
        begun = ByteBuffer()
    }

    /// Sends the body of an answer of known length, as fast as the other side reads it, and its
    /// end.
    func send(_ answer: Answer) {
        rest = answer
        sendRest()
    }

    private func sendRest() {
        // A flush may report at once that more can be written.
        guard !isSending else { return }
        isSending = true
        while let context, rest != nil, context.channel.isWritable {
            guard let piece = rest?.next() else {
                isSending = false
                return endAnswer()
            }
            if begun.readableBytes > 0, piece.readableBytes <= Self.joinedBytesMax {
                begun.writeImmutableBuffer(piece)
            } else {
                writeBegun()
                put(piece, flush: true)
            }
        }
        isSending = false
    }

    /// A body of at most so many bytes is copied, and sent together with the head.
    private static let joinedBytesMax = 4 << 10

    func endAnswer() {
        if isChunked { begun.writeString(AnswerText.lastChunk) }
        writeBegun()
        isChunked = false
        rest = nil
        context?.flush()
        exchange?.answered()
        limits.answerEnded()
        if answers == limits.last {
            context?.finish(wrapOutboundOut(ByteBuffer()), within: Edge.lingerMilliseconds)
        }
        process()
    }

    /// Answers that the connection may not stay, which is no answer to the request.
    func refuse(_ problem: Problem, _ limit: EdgeLimit) {
        edge.note(limit)
        edge.metrics.refused(problem.code)
        limits.answerBegan()
        answers += 1
        begun = edge.lastAnswer(problem)
        endAnswer()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        sendRest()
        context.fireChannelWritabilityChanged()
    }

    // MARK: - Other protocols

    /// Leaves the connection to a handler that sends the rest of an answer, in bytes.
    /// - Returns: False if the connection is gone.
    func handOver(to handler: any ChannelHandler) -> Bool {
        guard let context, context.channel.isActive else { return false }
        writeBegun()
        context.flush()
        if isReadWanted { context.read() }
        let pipeline = context.pipeline.syncOperations
        for handler in others + [self] { pipeline.removeHandler(handler, promise: nil) }
        do { try pipeline.addHandler(handler) } catch { return false }
        return true
    }

    // MARK: - The end

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        let isLast = event is ChannelShouldQuiesceEvent || event as? ChannelEvent == .inputClosed
        if isLast {
            isEnding = true
            process()
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// The other side may still be reading the last answer. One that does not is ended by
    /// ``OutboundByteHandler``.
    private func closeWhenSent() {
        guard let context else { return }
        let waiting = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        guard waiting > 0 else { return context.close(promise: nil) }
        _ = context.after(Self.lookMilliseconds) { [self] in closeWhenSent() }
    }

    private static let lookMilliseconds: Int64 = 50

    /// Ends the connection within an answer, which tells the client that it is incomplete.
    func abort() { context?.close(promise: nil) }
}
