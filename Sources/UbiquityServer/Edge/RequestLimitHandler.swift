// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL
internal import UbiquityCore

/// Ends requests that are too slow, too large, not HTTP or for another server, with an answer where
/// one is still possible. Also finds the last request of a connection: by HTTP/1.0 or `Connection:
/// close`, by what ends HTTP on it, or because too many wait.
///
/// Placed between the HTTP decoder and the ``HTTPConnection``. State: confined to the connection's
/// event loop.
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
    /// The name of the server in the last request, which was admitted.
    private var host: String?
    /// The number, from 1, of the request after whose answer the connection ends; nil if there is
    /// none yet.
    private(set) var last: Int?
    /// The version of that request, 1.0 or 1.1.
    private(set) var lastVersion = HTTPVersion.http1_1
    /// Whether further input is no longer part of a request.
    private var isOver = false
    private var context: ChannelHandlerContext?

    /// - Parameter isRefusal: Whether the connection may not stay: its first request is the last.
    init(_ edge: Edge, isRefusal: Bool = false, now: Int64) {
        self.edge = edge
        phase = RequestPhase(isRefusal ? edge.refusalRules : edge.requestRules, now: now)
        last = isRefusal ? 1 : nil
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
        guard let context, !isEnding, !isOver else { return }
        hasBytes = true
        let before = phase.heads
        phase.receive(count, now: context.eventLoop.milliseconds)
        forward()
        // The connection may be another handler's now.
        guard self.context != nil else { return }
        headBytes = phase.heads == before && phase.isHeading ? headBytes + count : 0
        if headBytes > ServerConstants.headerBytesMax { refuse(.headerTooLarge, .headerTooLarge) }
        check(context)
    }

    // MARK: - Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isEnding, !isOver else { return }
        let now = context.eventLoop.milliseconds
        switch unwrapInboundIn(data) {
        case .head(let head): return take(head, context, now: now)
        case .body: break
        case .end:
            isOver = last != nil
            phase.requestEnded(now: now)
        }
        context.fireChannelRead(data)
    }

    private func take(_ head: HTTPRequestHead, _ context: ChannelHandlerContext, now: Int64) {
        var head = head
        let isOld = head.version != .http1_1
        guard admits(head.headers["host"], isOld: isOld, for: head.uri) else { return }
        // What comes after another coding is no HTTP that the decoder knows.
        let codings = head.headers[canonicalForm: "transfer-encoding"].map { $0.lowercased() }
        guard codings.isEmpty || codings == ["chunked"] else {
            return refuse(.codingUnknown, .malformedRequest)
        }
        // The requests before it are answered. The client sends it again, on another connection.
        guard phase.head(now: now) else {
            edge.note(.pipelinedRequests)
            (last, isOver) = (phase.heads, true)
            return
        }
        // HTTP/1.0 does not have this header.
        if isOld { head.headers.remove(name: "expect") }
        if isOld || !head.isKeepAlive || head.endsHTTP {
            (last, lastVersion) = (phase.heads, isOld ? .http1_0 : .http1_1)
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    /// Refuses a request that names no server, two, or a different one. Whoever checks the server's
    /// health, such as a balancer, may name it as it likes, and learns nothing else.
    private func admits(_ hosts: [String], isOld: Bool, for address: String) -> Bool {
        guard (isOld ? 0...1 : 1...1).contains(hosts.count) else {
            refuse(.hostInvalid, .malformedRequest)
            return false
        }
        guard let host = hosts.first, host != self.host, !address.hasPrefix("/health/") else {
            return true
        }
        guard edge.admits(host: host) else {
            refuse(edge.refusal(ofHost: host), .foreignHost)
            return false
        }
        self.host = host
        return true
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        // Input after the last request is no error: the answer is still due.
        case is HTTPParserError where isOver: break
        case HTTPParserError.headerOverflow: refuse(.headerTooLarge, .headerTooLarge)
        case is HTTPParserError: refuse(.notHTTP, .malformedRequest)
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
        _ = context.after(Edge.lingerMilliseconds) { [self] in
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
        context.finish(
            wrapOutboundOut(edge.lastAnswer(problem)), within: Edge.lingerMilliseconds)
    }
}

extension HTTPRequestHead {
    /// Whether no other request can follow: the decoder stops at what may become another protocol.
    fileprivate var endsHTTP: Bool { method == .CONNECT || headers.contains(name: "upgrade") }
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
