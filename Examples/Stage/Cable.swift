// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOPosix

/// A device's way to the server, which can be pulled out and put in again.
///
/// `@unchecked Sendable`: its state is used on its event loop only.
final class Cable: @unchecked Sendable {
    private let serverPort: Int
    private let loop = MultiThreadedEventLoopGroup.singleton.next()
    private var port = 0
    private var listener: (any Channel)?
    private var connections: [ObjectIdentifier: any Channel] = [:]

    init(to serverPort: Int) { self.serverPort = serverPort }

    /// The server's address, as the device knows it: the same each time that it is put in.
    func plugIn() async throws -> String {
        let known = try await loop.submit { [self] () -> Int in port }.get()
        let channel = try await ServerBootstrap(group: loop)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { [self] in connect($0) }
            .bind(host: "127.0.0.1", port: known).get()
        let bound = channel.localAddress?.port ?? 0
        try await loop.submit { [self] () -> Void in
            listener = channel
            self.port = bound
        }.get()
        return "http://127.0.0.1:\(bound)"
    }

    func pullOut() async {
        try? await loop.submit { [self] () -> Void in
            listener?.close(promise: nil)
            for connection in connections.values { connection.close(promise: nil) }
            (listener, connections) = (nil, [:])
        }.get()
    }

    private func connect(_ device: any Channel) -> EventLoopFuture<Void> {
        connections[ObjectIdentifier(device)] = device
        device.closeFuture.whenComplete { [self] _ in
            connections[ObjectIdentifier(device)] = nil
        }
        return ClientBootstrap(group: loop).connect(host: "127.0.0.1", port: serverPort)
            .flatMapThrowing { server in
                try device.pipeline.syncOperations.addHandler(Passing(to: server))
                try server.pipeline.syncOperations.addHandler(Passing(to: device))
            }
    }
}

/// Passes on what comes.
private final class Passing: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let other: any Channel

    init(to other: any Channel) { self.other = other }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        other.writeAndFlush(unwrapInboundIn(data), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { other.close(promise: nil) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
