// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// One end of a connection through a proxy: it takes what comes there, and has its line pass it on.
///
/// `@unchecked Sendable`: used on its event loop only.
final class ProxyEnd: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    private let line: ProxyLine
    private let side: ProxyLine.Side

    init(_ line: ProxyLine, _ side: ProxyLine.Side) { (self.line, self.side) = (line, side) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        line.received(unwrapInboundIn(data), from: side)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.inputClosed) = event as? ChannelEvent { line.heardEnd(from: side) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        line.broke(at: side)
    }

    func channelInactive(context: ChannelHandlerContext) { line.closed(at: side) }
}
