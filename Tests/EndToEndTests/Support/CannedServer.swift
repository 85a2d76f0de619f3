// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOPosix

/// Gives every request the same answer, whatever it was, and hangs up.
struct CannedServer {
    private let channel: any Channel

    init(status: String, type: String, body: [UInt8]) async throws {
        let head =
            "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nConnection: close\r\n"
            + "Content-Length: \(body.count)\r\n\r\n"
        let answer = ByteBuffer(bytes: Array(head.utf8) + body)
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answerer(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    var url: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    func stop() async throws { try await channel.close() }

    private final class Answerer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let answer: ByteBuffer

        init(_ answer: ByteBuffer) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let channel = context.channel
            channel.writeAndFlush(answer).whenComplete { _ in channel.close(promise: nil) }
        }
    }
}
