// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// A server with an identity, which answers each request with its host.
final class TLSServer: Sendable {
    private let channel: any Channel

    init(_ identity: TestIdentity) async throws {
        let context = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: NIOSSLCertificate.fromPEMBytes(Array(identity.certificate.utf8))
                    .map { .certificate($0) },
                privateKey: .privateKey(
                    NIOSSLPrivateKey(bytes: Array(identity.key.utf8), format: .pem))))
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: context))
                    try pipeline.configureHTTPServerPipeline()
                    try pipeline.addHandler(Answerer())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    deinit { channel.close(promise: nil) }

    var port: Int { channel.localAddress?.port ?? 0 }
    var url: String { "https://127.0.0.1:\(port)" }
}

private final class Answerer: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private var host = ""

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): host = head.headers.first(name: "host") ?? ""
        case .body: break
        case .end:
            let head = HTTPResponseHead(
                version: .http1_1, status: .ok, headers: ["Content-Length": "\(host.utf8.count)"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(
                wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: host)))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
