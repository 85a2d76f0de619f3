// SPDX-License-Identifier: Apache-2.0

internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOExtras
internal import NIOPosix
internal import ServiceLifecycle

/// Accepts connections until the server is to stop, and then waits until the last one has ended.
struct Listener: Service {
    enum Address: Sendable {
        case hostname(String, port: Int)
        /// A Unix domain socket.
        case socket(path: String)
    }

    let address: Address
    let connectionsMax: Int
    let channel: EdgeChannel
    let onReady: @Sendable (_ port: Int) async -> Void
    let logger: Logger

    /// The sizes of the buffer that a connection reads into. It begins as large as a small request,
    /// grows with larger ones, and stays: an event stream has its own for as long as it is idle.
    private static let readBytesMin = 512
    private static let readBytesMax = 65_536

    /// - Throws: An error of the system if it cannot listen.
    func run() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let quiescing = ServerQuiescingHelper(group: group)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { [connectionsMax, logger] channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(
                        AvailableConnectionsChannelHandler(
                            delegate: MaximumAvailableConnections(connectionsMax, logger: logger)))
                    try pipeline.addHandler(quiescing.makeServerChannelHandler(channel: channel))
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
        let listening =
            switch address {
            case .hostname(let host, let port):
                try await bootstrap.bind(host: host, port: port).get()
            case .socket(let path): try await bootstrap.bind(unixDomainSocketPath: path).get()
            }
        await onReady(listening.localAddress?.port ?? 0)
        try? await gracefulShutdown()
        let ended = listening.eventLoop.makePromise(of: Void.self)
        quiescing.initiateShutdown(promise: ended)
        let (stream, end) = AsyncStream.makeStream(of: Never.self)
        ended.futureResult.whenComplete { _ in end.finish() }
        // Ends early if the task is cancelled, because the shutdown takes too long.
        for await _ in stream {}
    }
}
