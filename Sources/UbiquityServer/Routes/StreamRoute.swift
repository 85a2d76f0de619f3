// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import Synchronization
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

/// Keeps a subscriber subscribed while it is retained: the hub drops the subscriber when this is
/// released, even if the stream was never written.
final class Subscription: Sendable {
    let subscriber: Subscriber
    private let hub: PushHub

    init(_ subscriber: Subscriber, _ hub: PushHub) {
        self.subscriber = subscriber
        self.hub = hub
    }

    deinit { hub.unsubscribe(subscriber) }

    /// Returns when the subscriber ends. Throws when the connection does.
    @concurrent func write(
        from start: StreamStart, to writer: inout any ResponseBodyWriter
    ) async throws {
        defer { hub.unsubscribe(subscriber) }
        for message in start.messages { try await writer.write(ServerSentEvent.bytes(of: message)) }
        while true {
            switch await subscriber.next() {
            case .events(let events):
                let news = events.filter { $0.revision.map(start.isNews) ?? true }
                try await writer.write(contentsOf: news.map(\.bytes))
                subscriber.wrote(events)
                hub.delivered(events)
            case .end(.overflow): return try await writer.write(ServerSentEvent.resync)
            case .end(.closed): return
            }
        }
    }
}

/// Ties a subscriber to its connection: the subscriber ends when the other side closes, and an
/// ended stream closes its connection soon, even if the other side does not read.
///
/// State: `isDone`, guarded by its mutex.
final class StreamConnection: ChannelInboundHandler, Sendable {
    typealias InboundIn = Any

    /// How long an ended stream may take to send what it was about to send. A revocation by another
    /// process must take effect within a second, and is noticed late.
    private static let closedTime = TimeAmount.milliseconds(500)
    /// The same after an overflow, which only affects the slow reader.
    private static let overflowTime = TimeAmount.seconds(5)

    private let subscriber: Subscriber
    private let isDone = Mutex(false)

    init(_ subscriber: Subscriber) { self.subscriber = subscriber }

    /// The other side sends nothing more: a subscriber is gone then.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent { subscriber.end(.closed) }
        context.fireUserInboundEventTriggered(event)
    }

    func handlerRemoved(context: ChannelHandlerContext) { subscriber.end(.closed) }

    /// The stream was written to its end.
    func finish() { isDone.withLock { $0 = true } }

    func closeSoon(_ channel: any Channel, after end: Subscriber.End) {
        if isDone.withLock({ $0 }) { return }
        let time = end == .closed ? Self.closedTime : Self.overflowTime
        channel.eventLoop.scheduleTask(in: time) { [self] in
            if !isDone.withLock({ $0 }) { channel.close(promise: nil) }
        }
    }
}
