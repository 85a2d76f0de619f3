// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle

/// Accepts connections until the server is to stop, and then waits until the last one has ended.
struct Acceptor: Service {
    enum Address: Sendable {
        case hostname(String, port: Int)
        /// For the owner of a data folder.
        case socket(FolderSocket)
    }

    let address: Address
    let connectionsMax: Int
    let channel: EdgeChannel
    let onReady: @Sendable (_ port: Int) async -> Void

    /// The sizes of the buffer that a connection reads into. It begins as large as a small request,
    /// grows with larger ones, and stays: an event stream has its own for as long as it is idle.
    private static let readBytesMin = 512
    private static let readBytesMax = 65_536

    /// - Throws: ``ServerStartError`` if it cannot listen.
    func run() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let (stream, end) = AsyncStream.makeStream(of: Never.self)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { [connectionsMax] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptHandler(max: connectionsMax) { end.finish() })
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: Self.readBytesMin, initial: Self.readBytesMin,
                    maximum: Self.readBytesMax)
            )
            .childChannelInitializer { [channel] in channel.setup($0) }
        let listening = try await bind(bootstrap)
        defer { if case .socket(let socket) = address { socket.remove() } }
        await onReady(listening.localAddress?.port ?? 0)
        try? await gracefulShutdown()
        listening.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        // Ends early if the task is cancelled, because the shutdown takes too long.
        for await _ in stream {}
    }

    private func bind(_ bootstrap: ServerBootstrap) async throws -> any Channel {
        switch address {
        case .hostname(let host, let port):
            do { return try await bootstrap.bind(host: host, port: port).get() } catch {
                throw ServerStartError(listening: error, host: host, port: port)
            }
        case .socket(let socket):
            // What a kill left behind.
            socket.remove()
            do {
                let channel = try await bootstrap.bind(unixDomainSocketPath: socket.path).get()
                socket.closeToOthers()
                return channel
            } catch {
                throw ServerStartError.fileUnusable(
                    path: socket.displayPath, reason: ServerStartError.socketReason(error))
            }
        }
    }
}

/// Accepts no connection while there are as many as there may be: others wait in the system's queue. At
/// the end it accepts none, tells those that there are, and waits for the last one.
///
/// State: confined to the event loop of the socket that accepts.
private final class AcceptHandler: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias OutboundIn = Never

    private let max: Int
    /// Called when the server is to stop and no connection is left.
    private let onEnd: () -> Void
    private var open: [ObjectIdentifier: any Channel] = [:]
    private var isReadWanted = false
    private var isEnding = false

    init(max: Int, onEnd: @escaping () -> Void) {
        self.max = max
        self.onEnd = onEnd
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        open[ObjectIdentifier(channel)] = channel
        let closed = channel.closeFuture.hop(to: context.eventLoop)
        closed.assumeIsolated().whenComplete { [self] _ in
            open[ObjectIdentifier(channel)] = nil
            if isReadWanted { read(context: context) }
            if isEnding, open.isEmpty { onEnd() }
        }
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        isReadWanted = open.count >= max
        if !isReadWanted { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // Ends listening: that is NIO's part.
        context.fireUserInboundEventTriggered(event)
        guard event is ChannelShouldQuiesceEvent else { return }
        isEnding = true
        for channel in open.values {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
        if open.isEmpty { onEnd() }
    }
}
