// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

/// Ends requests that are too slow, too large or not HTTP, with an answer where one is still
/// possible.
///
/// Placed between the HTTP decoder and the ``HTTPConnection``. State: confined to the connection's event loop.
final class RequestLimitHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private let edge: Edge
    private var phase: RequestPhase
    private var timer: Scheduled<Void>?
    private var timerEnd = Int64.max
    /// Whether an answer has begun and not ended.
    private var isAnswering = false
    /// Whether the answer ended before its request did.
    private var isLingering = false
    private var headBytes = 0
    private var hasBytes = false
    /// Whether all further data is ignored, in either direction.
    private(set) var isEnding = false
    private var context: ChannelHandlerContext?

    /// The time in which the last answer of a connection must be read.
    private static let lingerMilliseconds: Int64 = 2_000

    init(_ edge: Edge, _ rules: RequestPhase.Rules, now: Int64) {
        self.edge = edge
        phase = RequestPhase(rules, now: now)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        check(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        self.context = nil
    }

    // MARK: - Bytes, as they come

    /// - Parameter forward: Passes the bytes on to be decoded.
    func receive(_ count: Int, forward: () -> Void) {
        guard let context, !isEnding else { return }
        hasBytes = true
        let before = phase.heads
        phase.receive(count, now: context.eventLoop.milliseconds)
        forward()
        // The connection may be another handler's now.
        guard self.context != nil else { return }
        headBytes = phase.heads == before && phase.isHeading ? headBytes + count : 0
        if headBytes > edge.settings.headerBytesMax { refuse(.headerTooLarge, .headerTooLarge) }
        check(context)
    }

    // MARK: - Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isEnding else { return }
        let now = context.eventLoop.milliseconds
        switch unwrapInboundIn(data) {
        case .head: guard phase.head(now: now) else { return end(.tooManyPipelined) }
        case .body: break
        case .end: phase.requestEnded(now: now)
        }
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case HTTPParserError.headerOverflow: refuse(.headerTooLarge, .headerTooLarge)
        case is HTTPParserError: refuse(.notHTTP, .malformedRequest)
        case RequestHeadHandler.HostError.notOne: refuse(.hostInvalid, .malformedRequest)
        case RequestHeadHandler.HostError.foreign: refuse(.hostForeign, .foreignHost)
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            if !hasBytes { edge.note(.handshake) }
            context.close(promise: nil)
        default: context.fireErrorCaught(error)
        }
    }

    // MARK: - Answers

    /// Call when the head of an answer is written.
    func answerBegan() { isAnswering = true }

    /// Call when the end of an answer is written.
    func answerEnded() {
        guard let context else { return }
        isAnswering = false
        phase.answerEnded(now: context.eventLoop.milliseconds)
        linger(context)
        check(context)
    }

    /// Gives a request that was answered before its end a moment to end.
    private func linger(_ context: ChannelHandlerContext) {
        guard phase.isReceiving, phase.unanswered == 0, !isLingering else { return }
        isLingering = true
        let number = phase.heads
        _ = context.after(Self.lingerMilliseconds) { [self] in
            isLingering = false
            guard phase.isReceiving else { return }
            if phase.heads == number { context.close(promise: nil) } else { linger(context) }
        }
    }

    // MARK: - The end

    private func check(_ context: ChannelHandlerContext) {
        guard !isEnding else { return }
        let now = context.eventLoop.milliseconds
        switch phase.check(now: now) {
        case .fine(nil): break
        case .fine(let end?):
            // A timer that fires early checks again, so one is enough.
            guard timer == nil || end < timerEnd else { return }
            timer?.cancel()
            timerEnd = end
            timer = context.after(end - now) { [self] in
                (timer, timerEnd) = (nil, .max)
                check(context)
            }
        case .end(let trouble): end(trouble)
        }
    }

    private func end(_ trouble: RequestPhase.Trouble) {
        switch trouble {
        case .idle: context?.close(promise: nil)
        case .slowHead where !hasBytes:
            edge.note(.slowHead)
            context?.close(promise: nil)
        case .slowHead: refuse(.requestTooSlow, .slowHead)
        case .slowBody: refuse(.requestTooSlow, .slowBody)
        case .tooManyPipelined:
            edge.note(.pipelinedRequests)
            isEnding = true
            context?.close(promise: nil)
        }
    }

    /// Answers, unless another answer is due first, and closes the connection.
    private func refuse(_ problem: Problem, _ limit: EdgeLimit) {
        guard let context, !isEnding else { return }
        edge.note(limit)
        let isSpeakable = !isAnswering && phase.unanswered == (phase.isReceiving ? 1 : 0)
        isEnding = true
        guard isSpeakable else { return context.close(promise: nil) }
        edge.metrics.refused(problem.code)
        context.writeAndFlush(wrapOutboundOut(edge.lastAnswer(problem)), promise: nil)
        context.close(mode: .output, promise: nil)
        _ = context.after(Self.lingerMilliseconds) { context.close(promise: nil) }
    }

}

/// Reports the bytes from which requests are decoded to a ``RequestLimitHandler``.
///
/// State: none of its own.
final class InboundByteHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let requests: RequestLimitHandler

    init(_ requests: RequestLimitHandler) { self.requests = requests }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        requests.receive(unwrapInboundIn(data).readableBytes) { context.fireChannelRead(data) }
    }
}
