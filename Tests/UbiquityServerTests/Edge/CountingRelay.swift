// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Stands between a client and a server, and records every byte.
///
/// Shared state: `said`, guarded by its mutex.
final class CountingRelay: Sendable {
    /// Everything that was sent, in order.
    struct Said: Sendable {
        var byClient = ""
        var byServer = ""
        var count = 0
    }

    private let channel: any Channel
    private let said: Record

    /// Shared state: `all`, guarded by its mutex.
    private final class Record: Sendable {
        let all = Mutex(Said())

        func note(_ bytes: ByteBuffer, isServer: Bool) {
            let text = String(buffer: bytes)
            all.withLock { said in
                said.count += bytes.readableBytes
                if isServer { said.byServer += text } else { said.byClient += text }
            }
        }
    }

    init(to port: Int) async throws {
        let said = Record()
        self.said = said
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { client in
                ClientBootstrap(group: client.eventLoop)
                    .channelOption(.autoRead, value: false)
                    .connect(host: "127.0.0.1", port: port)
                    .flatMapThrowing { server in
                        let ends = [(client, server, false), (server, client, true)]
                        for (near, far, isServer) in ends {
                            try near.pipeline.syncOperations.addHandler(
                                End(far) { said.note($0, isServer: isServer) })
                        }
                    }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    var url: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// Returns everything recorded since the last call.
    func take() -> Said {
        said.all.withLock { said in
            defer { said = Said() }
            return said
        }
    }

    func close() async throws { try await channel.close() }

    /// One end of a connection: the other end sends on what this one reads. State: none that
    /// changes.
    private final class End: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let far: any Channel
        private let note: (ByteBuffer) -> Void

        init(_ far: any Channel, _ note: @escaping (ByteBuffer) -> Void) {
            (self.far, self.note) = (far, note)
        }

        func handlerAdded(context: ChannelHandlerContext) {
            context.channel.setOption(.autoRead, value: true).whenFailure { _ in }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = unwrapInboundIn(data)
            note(bytes)
            far.writeAndFlush(bytes, promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { far.close(promise: nil) }
    }
}
