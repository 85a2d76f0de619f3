// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

/// Handles what a request's head says about the connection, which the routes do not see. A request
/// that names no server, two, or a different one is refused. HTTP/1.0 and `Connection: close` end
/// the connection.
///
/// Placed next to the HTTP decoder. State: confined to the connection's event loop.
final class RequestHeadHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    enum HostError: Error {
        /// The header `Host` is missing or repeated.
        case notOne
        case foreign
    }

    private let hosts: HostRule
    /// The name of the server in the last request, which was admitted.
    private var host: String?
    private var heads = 0
    /// The number, from 1, of the request after whose answer the connection ends; nil if there is
    /// none yet.
    private(set) var last: Int?
    /// The version of that request, 1.0 or 1.1.
    private(set) var lastVersion = HTTPVersion.http1_1
    /// Whether further input is no longer part of a request.
    private var isOver = false

    /// - Parameter isRefusal: Whether the first request is the last.
    init(_ hosts: HostRule, isRefusal: Bool) {
        self.hosts = hosts
        last = isRefusal ? 1 : nil
    }

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
            // HTTP/1.0 does not have this header.
            if isOld { head.headers.remove(name: "expect") }
            if isOld || !head.isKeepAlive {
                (last, lastVersion) = (heads, isOld ? .http1_0 : .http1_1)
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
        guard let host = hosts.first, host != self.host else { return nil }
        guard self.hosts.admits(host) else { return .foreign }
        self.host = host
        return nil
    }

    /// Input after the last request is neither a request nor an error: the answer is still due.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard isOver, error is HTTPParserError else { return context.fireErrorCaught(error) }
    }
}
