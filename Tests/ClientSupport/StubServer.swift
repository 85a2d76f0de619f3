// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
package import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// A server on a port of its own that notes each request and answers as it is told.
///
/// Shared state: `state`, guarded by one mutex: the connections and the test meet there.
package final class StubServer: Sendable {
    package struct Request: Sendable {
        package var method: HTTPMethod
        package var uri: String
        package var headers: HTTPHeaders
        package var body: [UInt8] = []
    }

    package struct Reply: Sendable {
        package var status: HTTPResponseStatus = .ok
        package var headers: HTTPHeaders = [:]
        package var body: [UInt8] = []
        /// Closes the connection in place of an answer.
        package var closes = false
        /// False: more may come by ``StubServer/send(_:)``.
        package var ends = true

        package init(
            status: HTTPResponseStatus = .ok, headers: HTTPHeaders = [:], body: [UInt8] = [],
            ends: Bool = true
        ) {
            (self.status, self.headers, self.body, self.ends) = (status, headers, body, ends)
            // Of an answer of the server, unless the caller says otherwise.
            if (200..<300).contains(status.code), !headers.contains(name: "content-type") {
                self.headers.add(name: "content-type", value: "application/x-protobuf")
            }
        }

        /// A whole answer of that type, which announces its length.
        package init(_ type: String, status: HTTPResponseStatus = .ok, _ body: [UInt8]) {
            self.init(
                status: status,
                headers: ["Content-Type": type, "Content-Length": "\(body.count)"], body: body)
        }
    }

    private struct State {
        var requests: [Request] = []
        var streams: [any Channel] = []
        var channel: (any Channel)?
    }

    private let state = Mutex(State())
    /// Nil: accepts and never answers.
    private let reply: @Sendable (Request) -> Reply?

    /// - Parameter port: 0 for any that is free.
    package init(port: Int = 0, _ reply: @escaping @Sendable (Request) -> Reply?) async throws {
        self.reply = reply
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { [weak self] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Connection(self))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        state.withLock { $0.channel = channel }
    }

    deinit { _ = state.withLock { $0.channel?.close() } }

    /// Answers nobody any more.
    package func close() async throws { try await state.withLock(\.channel)?.close() }

    package var address: String {
        "http://127.0.0.1:\(state.withLock { $0.channel?.localAddress?.port } ?? 0)"
    }

    package var requests: [Request] { state.withLock(\.requests) }

    /// Sends a piece of the body of every answer that has not ended.
    package func send(_ text: String) {
        for channel in state.withLock(\.streams) {
            channel.writeAndFlush(
                HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: text))), promise: nil)
        }
    }

    /// Ends every answer that has not ended.
    package func end() {
        for channel in state.withLock(\.streams) {
            channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
        }
    }

    /// Closes the connections in the middle of their answers.
    package func cut() {
        for channel in state.withLock(\.streams) { channel.close(promise: nil) }
    }

    fileprivate func answer(_ request: Request, on channel: any Channel) {
        state.withLock { $0.requests.append(request) }
        guard let reply = reply(request) else { return }
        guard !reply.closes else { return channel.close(promise: nil) }
        let head = HTTPResponseHead(
            version: .http1_1, status: reply.status, headers: reply.headers)
        channel.write(HTTPServerResponsePart.head(head), promise: nil)
        channel.write(
            HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: reply.body))), promise: nil)
        if reply.ends {
            channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
        } else {
            // Before the client sees the answer, and has more of it sent.
            state.withLock { $0.streams.append(channel) }
            channel.flush()
        }
    }
}

/// Puts one request together after the other.
private final class Connection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart

    private weak var server: StubServer?
    private var request: StubServer.Request?

    init(_ server: StubServer?) { self.server = server }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            request = StubServer.Request(
                method: head.method, uri: head.uri, headers: head.headers)
        case .body(let buffer): request?.body += buffer.readableBytesView
        case .end:
            if let request { server?.answer(request, on: context.channel) }
            request = nil
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
