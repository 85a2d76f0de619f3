// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// Event streams: the changes since a cursor, then every push as it is committed.
struct StreamRoute: Sendable {
    let reader: StoreReader
    let hub: PushHub
    let gate: Gate
    let settings: ServerSettings

    func open(_ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference) throws {
        let since = try exchange.request.position(orLastEvent: true)
        let isSaved = exchange.request.saysSaved
        reader.note(exchange.request.headers.clientVersion, rights)
        guard exchange.hasBody else {
            var headers = Self.headers
            headers.remove(name: "Connection")
            if exchange.begin(.ok, headers) { exchange.connection.endAnswer() }
            return
        }
        // First the subscription, then the read: see StreamStart.
        let subscriber = try hub.subscribe(
            rights, to: store, takesBinary: exchange.request.headers.acceptsBinaryEvents,
            on: exchange.loop)
        let subscription = Subscription(subscriber)
        // A device that was revoked just before it subscribed could not be ended then.
        exchange.findCaller(by: gate) { caller in
            try gate.check(caller, .store(store.identifier))
            try reader.answer(
                .event, of: store, since: since, isSaved: isSaved, for: rights,
                then: exchange.callback { start(exchange, $0, rights, subscription) })
        }
    }

    private func start(
        _ exchange: Exchange, _ answer: StoreAnswer, _ rights: DeviceRights,
        _ subscription: Subscription
    ) {
        guard exchange.begin(.ok, Self.headers) else { return }
        let config = ServerConfig(settings, rights.limits)
        // The answer already contains the changes.
        let start = StreamStart(answer.head.cursor)
        var bytes = answer.answer
        bytes.append(ServerSentEvent.ready(answer.head.cursor, config))
        subscription.subscriber.begin(
            with: bytes, start, isChunked: exchange.connection.isChunked)
        // Always a cursor that this server has made.
        if let position = Position(answer.head.cursor) {
            hub.begin(subscription.subscriber, at: position)
        }
        subscription.hasConnection = exchange.connection.handOver(to: subscription.subscriber)
    }

    /// Nothing else is sent on the connection afterwards.
    private static let headers: HTTPHeaders = [
        "Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Connection": "close",
    ]
}

/// Keeps a subscriber subscribed until its connection does.
///
/// State: `hasConnection`, confined to the connection's loop.
private final class Subscription {
    let subscriber: Subscriber
    var hasConnection = false

    init(_ subscriber: Subscriber) { self.subscriber = subscriber }

    /// On whatever thread was the last to know of it.
    deinit {
        guard !hasConnection else { return }
        subscriber.loop.execute { [subscriber] in subscriber.leave() }
    }
}
