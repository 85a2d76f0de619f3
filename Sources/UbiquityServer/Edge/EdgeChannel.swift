// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL
internal import UbiquityCore

/// Sets up a connection: its watches, TLS if enabled, and HTTP/1.1. An excess connection gets an
/// answer and is closed.
struct EdgeChannel: Sendable {
    let edge: Edge
    let respond: HTTPConnection.Responder

    func setup(_ channel: any Channel) -> EventLoopFuture<Void> {
        let address = channel.remoteIPAddress
        let entry = edge.connectionCounter.enter(address)
        edge.metrics.connected()
        channel.closeFuture.whenComplete { [edge] _ in edge.connectionCounter.leave(address) }
        // A socket that rejects the option works all the same.
        _ = channel.setOption(
            .socketOption(.so_sndbuf), value: SocketOptionValue(Edge.sendBufferBytes))
        return channel.eventLoop.makeCompletedFuture {
            try addHandlers(to: channel, address, entry)
        }
    }

    private func addHandlers(
        to channel: any Channel, _ address: IPAddress?, _ entry: ConnectionCounter.Entry
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        let admitsPlain = edge.admitsPlain(from: address)
        try pipeline.addHandler(OutboundByteHandler(edge, admitsPlain: admitsPlain))
        if let tls = edge.tls, !admitsPlain {
            try pipeline.addHandler(NIOSSLServerHandler(context: tls.context))
        }
        let requests = RequestLimitHandler(
            edge, isRefusal: entry != .welcome, now: channel.eventLoop.milliseconds)
        let decoder = HTTPRequestDecoder(
            leftOverBytesStrategy: .dropBytes, limitConfiguration: Self.decoderLimits)
        let http: [any RemovableChannelHandler] = [
            InboundByteHandler(requests), ByteToMessageHandler(decoder), requests,
        ]
        for handler in http { try pipeline.addHandler(handler) }
        try pipeline.addHandler(
            HTTPConnection(
                edge, peer: address, on: channel.eventLoop, limits: requests, others: http,
                respond: responder(for: entry)))
    }

    private func responder(for entry: ConnectionCounter.Entry) -> HTTPConnection.Responder {
        switch entry {
        case .welcome: respond
        case .tooMany: { $0.refuseConnection(.tooManyConnections, .connections) }
        case .tooManyFromThere:
            { $0.refuseConnection(.tooManyConnectionsFromThere, .connectionsPerAddress) }
        }
    }
}

extension EdgeChannel {
    private static var decoderLimits: NIOHTTPDecoderLimitConfiguration {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = ServerConstants.headerBytesMax
        limits.maxHeaderListSize = ServerConstants.headerBytesMax
        limits.maxHeaderFieldCount = ServerConstants.headerFieldsMax
        return limits
    }
}

extension Channel {
    /// Nil if the other side has none.
    var remoteIPAddress: IPAddress? {
        remoteAddress?.ipAddress.flatMap { IPAddress($0) }
    }
}
