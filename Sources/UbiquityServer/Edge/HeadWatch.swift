// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

/// Heeds what a request's head says of the connection, which the routes do not see: what names no
/// server, two, or another one is none of ours, and HTTP/1.0 and `Connection: close` end the connection.
///
/// Stands next to HTTP's decoder. State: on the connection's event loop only.
final class HeadWatch: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    enum HostError: Error {
        /// The header `Host` is missing, or there are several.
        case notOne
        case foreign
    }

    private let hosts: HostRule
    private var heads = 0
    private var answers = 0
    /// The request after whose answer the connection ends, counted from 1 on; nil: none yet.
    private var last: Int?
    private var lastVersion = HTTPVersion.http1_1
    /// What comes is nobody's request any more.
    private var isOver = false

    /// How long the other side may take to close the connection, too.
    private static let lingerMilliseconds: Int64 = 2_000

    init(_ hosts: HostRule) { self.hosts = hosts }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        switch unwrapInboundIn(data) {
        case .head(var head):
            heads += 1
            let isOld = head.version != .http1_1
            if let error = hostError(head.headers["host"], isOld: isOld) {
                isOver = true
                return context.fireErrorCaught(error)
            }
            // Which HTTP/1.0 does not know.
            if isOld { head.headers.remove(name: "expect") }
            if isOld || !head.isKeepAlive {
                (last, lastVersion) = (heads, isOld ? .http1_0 : .http1_1)
                // As the routes know it.
                head.headers.replaceOrAdd(name: "connection", value: "close")
            }
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body: context.fireChannelRead(data)
        case .end:
            isOver = last != nil
            context.fireChannelRead(data)
        }
    }

    private func hostError(_ hosts: [String], isOld: Bool) -> HostError? {
        guard (isOld ? 0...1 : 1...1).contains(hosts.count) else { return .notOne }
        return hosts.allSatisfy(self.hosts.admits) ? nil : .foreign
    }

    /// What comes after the last request is no request, and no trouble: the answer is still due.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard isOver, error is HTTPParserError else { return context.fireErrorCaught(error) }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head) where head.status.code >= 200:
            answers += 1
            guard answers == last else { return context.write(data, promise: promise) }
            head.headers.replaceOrAdd(name: "connection", value: "close")
            // Without a length, its end is the connection's: HTTP/1.0 knows no chunks.
            head.version = lastVersion
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end where answers == last:
            let sent = promise ?? context.eventLoop.makePromise()
            sent.futureResult.assumeIsolated().whenComplete { _ in
                _ = context.after(Self.lingerMilliseconds) { context.close(promise: nil) }
            }
            context.write(data, promise: sent)
        default: context.write(data, promise: promise)
        }
    }
}
