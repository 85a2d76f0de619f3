// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import NIOSSL
internal import UbiquityCore

/// Sets up a connection: its watches, TLS if enabled, and HTTP/1.1. An excess connection gets an
/// answer and is closed.
struct EdgeChannel: ServerChildChannel {
    typealias Parts = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    /// A connection, and whether it may stay.
    struct Connection: ServerChildChannelValue {
        var parts: Parts
        var http: HTTP1Channel
        var entry: ConnectionCounter.Entry
        var channel: any Channel { parts.channel }
    }

    let edge: Edge
    let responder: HTTPChannelHandler.Responder

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Connection> {
        let address = channel.remoteIPAddress
        let entry = edge.connectionCounter.enter(address)
        edge.metrics.connected()
        channel.closeFuture.whenComplete { [edge] _ in edge.connectionCounter.leave(address) }
        // A socket that rejects the option works all the same.
        _ = channel.setOption(
            .socketOption(.so_sndbuf), value: SocketOptionValue(Edge.sendBufferBytes))
        return channel.eventLoop.makeCompletedFuture {
            let rules = entry == .welcome ? edge.requestRules : edge.refusalRules
            let requests = RequestLimitHandler(edge, rules, now: channel.eventLoop.milliseconds)
            try addHandlers(to: channel, requests)
            return http(requests, on: channel.eventLoop)
        }.flatMap { http in
            http.setup(channel: channel, logger: logger).flatMapThrowing { @Sendable parts in
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(
                    type: ByteToMessageHandler<HTTPRequestDecoder>.self)
                try pipeline.addHandler(RequestHeadHandler(edge.hosts), position: .after(decoder))
                return Connection(parts: parts, http: http, entry: entry)
            }
        }
    }

    private func addHandlers(to channel: any Channel, _ requests: RequestLimitHandler) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(OutboundByteHandler(edge))
        if let tls = edge.tls {
            try pipeline.addHandler(NIOSSLServerHandler(context: tls.context))
        }
        try pipeline.addHandler(InboundByteHandler(requests))
    }

    private func http(_ requests: RequestLimitHandler, on loop: any EventLoop) -> HTTP1Channel {
        let bound = NIOLoopBound(requests, eventLoop: loop)
        let settings = edge.settings
        return HTTP1Channel(
            responder: responder,
            configuration: .init(
                additionalChannelHandlers: [bound.value],
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: settings.headerBytesMax,
                    maxHeaderListSize: settings.headerBytesMax,
                    maxHeaderFieldCount: settings.headerFieldsMax)))
    }

    func handle(value: Connection, logger: Logger) async {
        switch value.entry {
        case .welcome: await value.http.handle(value: value.parts, logger: logger)
        case .tooMany: await refuse(value.parts, .tooManyConnections, .connections)
        case .tooManyFromThere:
            await refuse(value.parts, .tooManyConnectionsFromThere, .connectionsPerAddress)
        }
    }

    /// Answers the first request and closes the connection.
    private func refuse(_ parts: Parts, _ problem: Problem, _ limit: EdgeLimit) async {
        edge.note(limit)
        edge.metrics.refused(problem.code)
        try? await parts.executeThenClose { inbound, outbound in
            var isAnswered = false
            // Reads to the end, because unread data would make the system discard the answer.
            for try await part in inbound {
                guard case .head = part, !isAnswered else { continue }
                isAnswered = true
                try await outbound.write(contentsOf: edge.lastAnswer(problem))
                outbound.finish()
            }
        }
    }

}

extension Channel {
    /// Nil if the other side has none.
    var remoteIPAddress: IPAddress? {
        remoteAddress?.ipAddress.flatMap { IPAddress($0) }
    }
}
