// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOPosix
internal import ProcessHarness

/// A proxy on this machine that is slow, or keeps back what an event stream brings.
final class NarrowProxy: Sendable {
    private let channel: any Channel

    /// - Parameters:
    ///   - bytesPerSecond: To the server and from it, of each connection; nil: as many as come.
    ///   - keepsStreams: Nothing of an event stream arrives.
    init(
        to port: Int, bytesPerSecond: (up: Int?, down: Int?) = (nil, nil),
        keepsStreams: Bool = false
    ) async throws {
        channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            // What the system has taken is not on its way yet.
            .childChannelOption(.socketOption(.so_rcvbuf), value: 32 << 10)
            .childChannelInitializer { client in
                client.eventLoop.makeCompletedFuture {
                    try client.pipeline.syncOperations.addHandler(
                        NarrowProxyEnd(
                            .client(
                                server: port, keepsStreams: keepsStreams,
                                bytesPerSecond: bytesPerSecond.up), bytesPerSecond.down))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    var url: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    func close() async throws { try await channel.close() }
}

/// One end of a connection through the proxy: what it reads, its partner sends on.
///
/// State: on the one event loop of both ends.
private final class NarrowProxyEnd: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Side {
        case client(server: Int, keepsStreams: Bool, bytesPerSecond: Int?)
        case server
    }

    private let side: Side
    /// To this end.
    private let bytesPerSecond: Int?
    private var partner: NarrowProxyEnd?
    private var context: ChannelHandlerContext?
    /// The bytes that wait to be sent to this end.
    private var waiting = ByteBuffer()
    private var isSending = false
    /// When it was last sent something.
    private var lastSent = NIODeadline.now()
    private var hasEnded = false
    private var isStream = false

    private static let tick = TimeAmount.milliseconds(20)

    init(_ side: Side, _ bytesPerSecond: Int?) {
        self.side = side
        self.bytesPerSecond = bytesPerSecond
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func channelActive(context: ChannelHandlerContext) {
        guard case .client(let port, _, let up) = side else { return }
        let far = NarrowProxyEnd(.server, up)
        (partner, far.partner) = (far, self)
        let end = NIOLoopBound(far, eventLoop: context.eventLoop)
        let client = context.channel
        ClientBootstrap(group: context.eventLoop)
            .channelOption(.socketOption(.so_rcvbuf), value: 32 << 10)
            .channelInitializer { server in
                server.eventLoop.makeCompletedFuture {
                    try server.pipeline.syncOperations.addHandler(end.value)
                }
            }
            .connect(host: "127.0.0.1", port: port)
            .whenComplete { result in
                if case .failure = result { client.close(promise: nil) } else { end.value.send() }
            }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if case .client(_, true, _) = side {
            isStream = isStream || String(buffer: bytes).contains("text/event-stream")
        }
        if case .server = side, partner?.isStream == true { return }
        partner?.waiting.writeBuffer(&bytes)
        partner?.send()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        partner?.hasEnded = true
        partner?.send()
        partner = nil
    }

    private func send() {
        guard !isSending, let context, context.channel.isActive else { return }
        guard waiting.readableBytes > 0 else {
            if hasEnded { context.close(promise: nil) }
            return
        }
        let count = bytesPerSecond.map(due) ?? waiting.readableBytes
        guard let part = waiting.readSlice(length: min(count, waiting.readableBytes)) else {
            return
        }
        waiting.discardReadBytes()
        context.writeAndFlush(wrapOutboundOut(part), promise: nil)
        guard bytesPerSecond != nil else { return }
        isSending = true
        // Who sends faster is stopped, as on a slow line.
        partner?.setReading(waiting.readableBytes < 64 << 10)
        let end = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.tick) {
            end.value.isSending = false
            end.value.send()
        }
    }

    /// The number of bytes that the line carries in the time since the last, at most a second: one
    /// tick's on an event loop that has nothing else to do.
    private func due(_ bytesPerSecond: Int) -> Int {
        let now = NIODeadline.now()
        let passed = min(max(now - lastSent, Self.tick), .seconds(1))
        lastSent = now
        return max(1, bytesPerSecond * Int(passed.nanoseconds / 1_000_000) / 1_000)
    }

    private func setReading(_ isReading: Bool) {
        context?.channel.setOption(.autoRead, value: isReading).whenFailure { _ in }
    }
}
