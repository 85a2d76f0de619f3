// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import UbiquityCore
internal import UbiquityWire

/// Event streams: the changes since a cursor, then every push as it is committed.
struct StreamRoute: Sendable {
    let reader: StoreReader
    let hub: PushHub
    let gate: Gate
    let settings: ServerSettings

    func open(
        _ request: Request, _ context: ServerContext, _ rights: DeviceRights, _ store: StoreKey
    ) async throws -> Response {
        let since = try request.position(orLastEvent: true)
        guard request.method != .head else { return Response(status: .ok, headers: Self.headers) }
        // First the subscription, then the read: see StreamStart.
        let subscription = Subscription(try hub.subscribe(rights, to: store), hub)
        // A device that was revoked just before it subscribed could not be ended then.
        try await gate.checkAgain(request.bearer, .readStore(store.identifier))
        let start = try await reader.changes(of: store, since: since, for: rights.name) {
            [settings] changes in
            Start(StreamStart(changes, isResumed: since != nil, ServerConfig(settings)))
        }
        let connection = try await tie(subscription.listener, to: context.channel)
        return Response(
            status: .ok, headers: Self.headers,
            body: ResponseBody { writer in
                defer { connection.finish() }
                try await subscription.write(from: start, to: &writer)
                try await writer.finish(nil)
            })
    }

    private static let headers: HTTPFields = [
        .contentType: "text/event-stream", .cacheControl: "no-store", .accelBuffering: "no",
    ]

    private func tie(
        _ listener: Listener, to channel: any Channel
    ) async throws -> StreamConnection {
        let connection = StreamConnection(listener)
        try await channel.pipeline.addHandler(connection, position: .first)
        listener.whenEnded { connection.closeSoon(channel, after: $0) }
        return connection
    }

    /// The beginning of a stream, and its bytes.
    struct Start: Sendable {
        let start: StreamStart
        var bytes = ByteBuffer()

        init(_ start: StreamStart) {
            self.start = start
            for message in start.messages {
                bytes.writeImmutableBuffer(ServerSentEvent.bytes(of: message))
            }
        }
    }
}
