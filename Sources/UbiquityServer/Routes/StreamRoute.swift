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
        _ request: Request, _ context: ServerContext, _ rights: DeviceRights,
        _ store: StoreReference
    ) async throws -> Response {
        let since = try request.position(orLastEvent: true)
        guard request.method != .head else { return Response(status: .ok, headers: Self.headers) }
        // First the subscription, then the read: see StreamStart.
        let subscriber = try hub.subscribe(
            rights, to: store, takesBinary: request.headers.acceptsBinaryEvents)
        let subscription = Subscription(subscriber, hub)
        // A device that was revoked just before it subscribed could not be ended then.
        try await gate.checkAgain(request.bearer, .readStore(store.identifier))
        let answer = try await reader.answer(.event, of: store, since: since, for: rights)
        // The answer already contains the changes.
        let start = StreamStart(answer.head, isResumed: true, ServerConfig(settings))
        let connection = try await tie(subscription.subscriber, to: context.channel)
        return Response(
            status: .ok, headers: Self.headers,
            body: ResponseBody { [loop = context.channel.eventLoop] writer in
                defer { connection.finish() }
                try await answer.held.write(to: &writer, on: loop)
                try await subscription.write(from: start, to: &writer)
                try await writer.finish(nil)
            })
    }

    private static let headers: HTTPFields = [
        .contentType: "text/event-stream", .accelBuffering: "no",
    ]

    private func tie(
        _ subscriber: Subscriber, to channel: any Channel
    ) async throws -> StreamConnection {
        let connection = StreamConnection(subscriber)
        try await channel.pipeline.addHandler(connection, position: .first)
        subscriber.whenEnded { connection.closeSoon(channel, after: $0) }
        return connection
    }
}
