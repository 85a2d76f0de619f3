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

    /// Opens the stream of a store.
    func open(_ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference) throws {
        let wanted = StreamedStore(
            store.identifier, since: try exchange.request.position(orLastEvent: true),
            isSaved: exchange.request.saysSaved, generation: try exchange.request.query.generation)
        guard exchange.hasBody else {
            reader.note(exchange.request.headers, rights)
            var headers = StreamOpening.headers
            headers.remove(name: "Connection")
            if exchange.begin(.ok, headers) { exchange.connection.endAnswer() }
            return
        }
        start(exchange, rights, [wanted], isShared: false)
    }

    /// Opens one stream of several stores.
    @Sendable func openSeveral(_ exchange: Exchange, _ rights: DeviceRights) throws {
        guard exchange.request.headers.acceptsEventStream else { throw Problem.onlyAsEvents }
        let format = try exchange.bodyFormat
        exchange.readBody(bytesMax: Self.bounds.bytes) { body in
            exchange.attempt {
                let body = try body.get().bytes
                reader.threads.run(
                    slicesFor: rights.account,
                    {
                        Optional.some(
                            try StreamedStore.list(
                                format.decode(WireNewStream.self, from: body, within: Self.bounds)))
                    }, then: exchange.callback { start(exchange, rights, $0, isShared: true) })
            }
        }
    }

    /// Of a body that names stores: of 64, with the longest identifiers, in JSON.
    private static let bounds = MessageBounds(bytes: 32_768, elements: 1_024)

    private func start(
        _ exchange: Exchange, _ rights: DeviceRights, _ stores: [StreamedStore], isShared: Bool
    ) {
        reader.note(exchange.request.headers, rights)
        let stream = EventStream(
            hub, count: stores.count, isShared: isShared,
            takesBinary: exchange.request.headers.acceptsBinaryEvents, on: exchange.loop)
        let opening = StreamOpening(self, exchange, rights, stores, stream)
        stream.start(opening.open)
    }
}

/// Opens the stores of a stream, and keeps them subscribed until it has its connection.
///
/// State: `place` and `hasConnection`, confined to the connection's loop.
private final class StreamOpening {
    private let route: StreamRoute
    private let exchange: Exchange
    private let rights: DeviceRights
    private let stores: [StreamedStore]
    private let stream: EventStream
    /// The store that is being opened.
    private var place = 0
    private var hasConnection = false

    init(
        _ route: StreamRoute, _ exchange: Exchange, _ rights: DeviceRights,
        _ stores: [StreamedStore], _ stream: EventStream
    ) {
        self.route = route
        self.exchange = exchange
        self.rights = rights
        self.stores = stores
        self.stream = stream
        // One store that cannot be opened is no answer to the request for several.
        if stream.isShared { exchange.handleError = { [weak self] in self?.fail($0) } }
    }

    /// On whatever thread was the last to know of it.
    deinit {
        guard !hasConnection else { return }
        stream.loop.execute { [stream] in stream.leave() }
    }

    func open(_ place: Int) {
        self.place = place
        let wanted = stores[place]
        let store = StoreReference(account: rights.account, identifier: wanted.identifier)
        exchange.attempt {
            // First the subscription, then the read: see StreamStart.
            let subscriber = try route.hub.subscribe(rights, to: store, in: stream)
            // A device that was revoked just before it subscribed could not be ended then.
            exchange.findCaller(by: route.gate) { [self] caller in
                try route.gate.check(caller, .store(wanted.identifier))
                // As it is now: an account that was sealed just before could not end it then.
                guard case .device(let rights) = caller else { return }
                try SealingRefusal.check(wanted.generation, in: rights.generation)
                try route.reader.answer(
                    .event(of: stream.name(of: store)), of: store, since: wanted.since,
                    isSaved: wanted.isSaved, sealedWith: wanted.generation, for: rights,
                    then: exchange.callback { [self] in begin($0, subscriber) })
            }
        }
    }

    private func begin(_ answer: StoreAnswer, _ subscriber: Subscriber) {
        guard canBegin() else { return }
        let config = ServerConfig(route.settings, rights.limits)
        // The answer already contains the changes.
        let start = StreamStart(answer.head.cursor)
        var bytes = answer.answer
        bytes.append(
            ServerSentEvent.ready(
                answer.head.cursor, config, of: stream.name(of: subscriber.store)))
        subscriber.begin(with: bytes, start)
        // Always a cursor that this server has made.
        if let position = Position(answer.head.cursor) {
            route.hub.begin(subscriber, at: position)
        }
        connect()
    }

    /// A store of several cannot be opened. Nothing else can if the credential is not valid any more,
    /// or the server is about to end.
    private func fail(_ error: any Error) {
        let problem = Problem(error)
        guard problem.status != .unauthorized, error as? HubError != .closed else {
            hasConnection ? stream.end() : exchange.refuse(problem)
            return
        }
        exchange.connection.edge.note(problem, route: exchange.route)
        guard canBegin() else { return }
        stream.end(place, with: ServerSentEvent.ended(problem, stores[place].identifier))
        connect()
    }

    private func canBegin() -> Bool {
        hasConnection ? !stream.hasEnded : exchange.begin(.ok, Self.headers)
    }

    /// The stream may open its next store at once.
    private func connect() {
        guard !hasConnection else { return }
        hasConnection = true
        stream.connect(isChunked: exchange.connection.isChunked, open)
        if !exchange.connection.handOver(to: stream) { stream.leave() }
    }

    /// Nothing else is sent on the connection afterwards.
    static let headers: HTTPHeaders = [
        "Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Connection": "close",
    ]
}
