// SPDX-License-Identifier: Apache-2.0

package import NIOCore
internal import NIOPosix

/// A way to servers on this machine, which can be plugged in and pulled out like a cable. Each
/// connection goes to the first server that accepts it, and ends with it.
///
/// `@unchecked Sendable`: its state is used on its event loop only.
package final class Relay: @unchecked Sendable {
    /// Gets bytes as they pass.
    package typealias Tap = @Sendable (_ bytes: ByteBuffer, _ isByServer: Bool) -> Void

    private let ports: @Sendable () -> [Int]
    private let tap: Tap
    private let port: Int
    private let loop = MultiThreadedEventLoopGroup.singleton.next()
    private var listener: (any Channel)?
    private var clients: [ObjectIdentifier: any Channel] = [:]
    private var accepted: [Int: Int] = [:]

    /// - Parameter ports: The servers' ports, the preferred one first. Called for each connection.
    /// - Throws: ``Trouble`` if no port is free.
    package init(to ports: @escaping @Sendable () -> [Int], tap: @escaping Tap = { _, _ in }) throws
    {
        (self.ports, self.tap) = (ports, tap)
        port = try FreePort.find()
    }

    /// Accepts connections. Calling it again changes nothing.
    /// - Returns: The address for clients, the same each time.
    package func plugIn() async throws -> String {
        try await loop.flatSubmit { [self] () -> EventLoopFuture<String> in
            guard listener == nil else { return loop.makeSucceededFuture(url) }
            return ServerBootstrap(group: loop)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { [self] in connect($0) }
                .bind(host: "127.0.0.1", port: port)
                .map { [self] channel in
                    listener = channel
                    return url
                }
        }.get()
    }

    private var url: String { "http://127.0.0.1:\(port)" }

    /// Ends all connections, and accepts no more.
    package func pullOut() {
        loop.execute { [self] in
            listener?.close(promise: nil)
            for client in clients.values { client.close(promise: nil) }
            listener = nil
        }
    }

    /// The number of connections that a server has accepted, by its place among the ports.
    package func connections(to place: Int) async throws -> Int {
        try await loop.submit { [self] in accepted[place, default: 0] }.get()
    }

    private func connect(_ client: any Channel) -> EventLoopFuture<Void> {
        clients[ObjectIdentifier(client)] = client
        client.closeFuture.whenComplete { [self] _ in clients[ObjectIdentifier(client)] = nil }
        return server().flatMapThrowing { [tap] server in
            for (end, other, isServer) in [(client, server, false), (server, client, true)] {
                // The client may be gone already. What is still to be written comes first.
                end.closeFuture.whenComplete { _ in
                    other.writeAndFlush(ByteBuffer()).whenComplete { _ in other.close(promise: nil)
                    }
                }
                try end.pipeline.syncOperations.addHandler(
                    Passing(to: other) { tap($0, isServer) })
            }
        }
    }

    /// A connection to the first server that accepts it.
    private func server() -> EventLoopFuture<any Channel> {
        let none: EventLoopFuture<any Channel> = loop.makeFailedFuture(
            Trouble("no server accepts a connection"))
        return ports().enumerated().reduce(none) { earlier, server in
            earlier.flatMapError { [self] _ in
                ClientBootstrap(group: loop).connect(host: "127.0.0.1", port: server.element)
                    .map { [self] channel in
                        accepted[server.offset, default: 0] += 1
                        return channel
                    }
            }
        }
    }
}

/// Passes on bytes.
private final class Passing: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let other: any Channel
    private let tap: (ByteBuffer) -> Void

    init(to other: any Channel, _ tap: @escaping (ByteBuffer) -> Void) {
        (self.other, self.tap) = (other, tap)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        tap(bytes)
        other.writeAndFlush(bytes, promise: nil)
    }
}
