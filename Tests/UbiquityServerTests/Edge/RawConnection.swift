// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization

/// A connection on which a test says what it likes.
///
/// Shared state: `text`, by its mutex.
final class RawConnection: Sendable {
    private let channel: any Channel
    private let text: Text

    /// Shared state: `all`, by its mutex.
    private final class Text: Sendable {
        let all = Mutex("")
    }

    private init(_ channel: any Channel, _ text: Text) {
        (self.channel, self.text) = (channel, text)
    }

    /// - Parameters:
    ///   - reads: False: nothing that comes is ever read.
    ///   - authority: Whose certificates are trusted, in PEM; nil: no TLS.
    ///   - ciphers: To speak TLS 1.2 with; nil: 1.3 as well.
    static func open(
        _ port: Int, reads: Bool = true, authority: String? = nil, ciphers: String? = nil
    ) async throws -> RawConnection {
        let text = Text()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reads)
            .channelOption(.allowRemoteHalfClosure, value: false)
            .channelOption(.socketOption(.so_rcvbuf), value: reads ? 1 << 20 : 4_096)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let authority {
                        try channel.pipeline.syncOperations.addHandler(
                            handshake(authority, ciphers))
                    }
                    try channel.pipeline.syncOperations.addHandler(Collector(text))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return RawConnection(channel, text)
    }

    private static func handshake(
        _ authority: String, _ ciphers: String?
    ) throws -> NIOSSLClientHandler {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let ciphers {
            configuration.maximumTLSVersion = .tlsv12
            configuration.cipherSuites = ciphers
        }
        configuration.trustRoots = .certificates(
            try NIOSSLCertificate.fromPEMBytes(Array(authority.utf8)))
        return try NIOSSLClientHandler(
            context: NIOSSLContext(configuration: configuration), serverHostname: "localhost")
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let text: Text

        init(_ text: Text) { self.text = text }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let more = String(buffer: unwrapInboundIn(data))
            text.all.withLock { $0 += more }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }

    /// - Returns: False if it cannot be sent.
    @discardableResult
    func send(_ text: String) async -> Bool {
        (try? await channel.writeAndFlush(ByteBuffer(string: text)).get()) != nil
    }

    /// Without waiting for the other side to take it.
    func throwIn(_ text: String) { channel.writeAndFlush(ByteBuffer(string: text), promise: nil) }

    /// For one that was opened not to read.
    func readOn() async throws { try await channel.setOption(.autoRead, value: true).get() }
    func endInput() async throws { try await channel.close(mode: .output).get() }
    func close() { channel.close(promise: nil) }

    var received: String { text.all.withLock { $0 } }
    var isOpen: Bool { channel.isActive }

    /// All that came until the other side closed.
    func end() async throws -> String {
        try await until("the end of a connection") { !self.isOpen }
        return received
    }

    /// All that came, as soon as it has a text.
    @discardableResult
    func receive(_ expected: String) async throws -> String {
        try await until("\(expected) on a connection") { self.received.contains(expected) }
        return received
    }
}
