// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOSSL

/// Watches the output of a connection: ends it if the other side does not read, and counts the
/// waiting bytes.
///
/// The outermost handler. State: confined to the connection's event loop.
final class OutboundByteHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private let edge: Edge
    /// Whether the first byte is still to come, where it may be TLS.
    private var expectsTLS: Bool
    private let admitsPlain: Bool
    private var written = 0
    private var pending = 0
    /// Nil if nothing waits.
    private var pace: TrafficPace?
    private var timer: Scheduled<Void>?

    /// - Parameter admitsPlain: Whether a connection without TLS is served. If so, this adds the
    ///   handler of TLS where it is needed.
    init(_ edge: Edge, admitsPlain: Bool) {
        (self.edge, self.admitsPlain) = (edge, admitsPlain)
        expectsTLS = edge.tls != nil
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        written += unwrapOutboundIn(data).readableBytes
        context.write(data, promise: promise)
    }

    func flush(context: ChannelHandlerContext) {
        context.flush()
        look(context)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        look(context)
        context.fireChannelWritabilityChanged()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if expectsTLS, let first = unwrapInboundIn(data).readableBytesView.first {
            expectsTLS = false
            switch (first == Self.handshakeRecord, admitsPlain) {
            case (false, false): return refusePlain(context)
            case (true, true): addTLS(context)
            case (true, false), (false, true): break
            }
        }
        context.fireChannelRead(data)
    }

    private func addTLS(_ context: ChannelHandlerContext) {
        guard let tls = edge.tls else { return }
        let handler = NIOSSLServerHandler(context: tls.context)
        do {
            try context.pipeline.syncOperations.addHandler(handler, position: .after(self))
        } catch { context.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        edge.answers.give(pending)
        pending = 0
    }

    /// Answers a client that uses HTTP on a TLS port, usually a person with a wrong address.
    private func refusePlain(_ context: ChannelHandlerContext) {
        edge.note(.handshake)
        context.writeAndFlush(
            NIOAny(IOData.byteBuffer(edge.lastAnswer(Self.plainAnswer))), promise: nil)
        context.close(mode: .all, promise: nil)
    }

    private static let handshakeRecord: UInt8 = 0x16

    private static let plainAnswer = Problem.malformed(
        "This port uses TLS. The address must begin with https.")

    private func look(_ context: ChannelHandlerContext) {
        let waiting = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        let now = context.eventLoop.milliseconds
        edge.answers.note(waiting - pending)
        pace?.move(written - waiting - gone)
        (gone, pending) = (written - waiting, waiting)
        guard waiting > 0 else {
            pace = nil
            return
        }
        if pace == nil { pace = TrafficPace(edge.answerPace, now: now) }
        if timer == nil { check(context, now) }
    }

    /// The bytes sent by the time of the last check.
    private var gone = 0

    private func check(_ context: ChannelHandlerContext, _ now: Int64) {
        switch pace?.check(now: now) {
        case nil: break
        case .fine(let until):
            timer = context.after(until - now) { [self] in
                timer = nil
                look(context)
            }
        case .tooSlow:
            edge.note(.slowReader)
            context.close(mode: .all, promise: nil)
        }
    }
}

extension EventLoop {
    /// Milliseconds of a monotonic clock.
    var milliseconds: Int64 { Int64(now.uptimeNanoseconds / 1_000_000) }
}

extension ChannelHandlerContext {
    /// Schedules on this event loop.
    func after(_ milliseconds: Int64, _ body: @escaping () -> Void) -> Scheduled<Void> {
        eventLoop.assumeIsolated().scheduleTask(
            in: .milliseconds(max(1, milliseconds)), body)
    }

    /// Sends the last bytes, and ends the connection. The other side sees their end, and may take this
    /// long to read them and to close too.
    func finish(_ bytes: NIOAny, within milliseconds: Int64) {
        let sent = eventLoop.makePromise(of: Void.self)
        sent.futureResult.assumeIsolated().whenComplete { [weak self] _ in
            self?.close(mode: .output, promise: nil)
        }
        writeAndFlush(bytes, promise: sent)
        close(after: milliseconds)
    }

    func close(after milliseconds: Int64) {
        _ = after(milliseconds) { [weak self] in self?.close(promise: nil) }
    }
}

extension NIODeadline {
    /// The time since then.
    var secondsAgo: Double { Double((NIODeadline.now() - self).nanoseconds) / 1e9 }
}
