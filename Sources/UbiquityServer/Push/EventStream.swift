// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import UbiquityCore

/// An event stream of one store or several, which carries out ``StreamTurns``. It is later the only
/// handler of its connection besides TLS and ``OutboundByteHandler``, so an idle stream costs little
/// memory.
///
/// State: confined to `loop`. Unchecked because its subscribers know it.
final class EventStream: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The connection's event loop.
    let loop: any EventLoop
    /// Whether it may have several stores: each event names its store, and a store can end by itself.
    let isShared: Bool
    let form: EventForm
    private let hub: PushHub
    private let count: Int
    private var turns: StreamTurns
    /// The stores that were opened so far.
    private var places: [Place] = []
    /// Opens a store; nil if all are opened.
    private var open: ((Int) -> Void)?
    private var context: ChannelHandlerContext?
    /// Whether events are HTTP chunks, which HTTP/1.0 does not have.
    private var isChunked = true
    private var isAdvancing = false
    private(set) var hasEnded = false

    private struct Place {
        /// Nil if the store could not be opened, or its end was sent.
        var subscriber: Subscriber?
        var hasEnded = false
        /// Why it has, which is still to be sent.
        var farewell: ByteBuffer?
    }

    /// - Parameters:
    ///   - count: The number of its stores.
    ///   - isShared: As ``isShared``.
    ///   - takesBinary: Whether it accepts small pushes in protobuf's binary format.
    init(_ hub: PushHub, count: Int, isShared: Bool, takesBinary: Bool, on loop: any EventLoop) {
        self.hub = hub
        self.count = count
        self.isShared = isShared
        self.loop = loop
        form = EventForm(isBinary: takesBinary, isNamed: isShared)
        turns = StreamTurns(count: count)
    }

    /// The name of a store in its events; nil if they have none.
    func name(of store: StoreReference) -> StoreIdentifier? { isShared ? store.identifier : nil }

    // MARK: - Stores

    /// Opens the first store. The others follow when the stream has its connection.
    func start(_ open: (Int) -> Void) {
        guard case .open(let place) = turns.next(canSend: false) else { return }
        places.append(Place())
        open(place)
    }

    /// The place of the store that was opened last, and the turn of all: the number of its first
    /// subscriber.
    func place(for number: UInt64) -> (place: Int, turn: UInt64) {
        (places.count - 1, places.lazy.compactMap(\.subscriber?.turn).first ?? number)
    }

    /// The store that was opened last has a subscriber.
    func join(_ subscriber: Subscriber) { places[subscriber.place].subscriber = subscriber }

    /// A store has something to send.
    func wait(_ place: Int) {
        turns.wait(place)
        advance()
    }

    /// Ends a store, and tells why.
    func end(_ place: Int, with farewell: ByteBuffer) {
        guard !hasEnded, !places[place].hasEnded else { return }
        places[place].subscriber?.drop(all: false)
        (places[place].hasEnded, places[place].farewell) = (true, farewell)
        wait(place)
    }

    // MARK: - Sending

    /// Whether the connection can take an event, with nothing before it.
    var isFree: Bool { turns.isEmpty && isWritable }

    private var isWritable: Bool { context?.channel.isWritable == true }

    private func advance() {
        // What is written or opened may call back at once.
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while !hasEnded, context != nil, let step = turns.next(canSend: isWritable) {
            switch step {
            case .open(let place):
                places.append(Place())
                let open = open
                if places.count == count { self.open = nil }
                open?(place)
            case .send(let place): takeTurn(of: place)
            // The other side was slow, and may still be reading.
            case .finish: finish(within: hub.slowMilliseconds)
            }
        }
    }

    private func takeTurn(of place: Int) {
        if let subscriber = places[place].subscriber {
            if let piece = subscriber.nextPiece() { return write(EventBytes(piece)) }
            let event = subscriber.open() ? nil : subscriber.nextEvent()
            if let event { send(event) }
            if !places[place].hasEnded {
                return turns.endTurn(subscriber.hasNoEvent ? .nothing : .more)
            }
        }
        guard let farewell = places[place].farewell else { return turns.endTurn(.nothing) }
        write(EventBytes(farewell))
        places[place].subscriber?.leave()
        (places[place].subscriber, places[place].farewell) = (nil, nil)
        turns.endTurn(.ended)
    }

    func send(_ event: Event) {
        guard context != nil else { return }
        write(event.bytes(form))
        hub.delivered(event)
    }

    /// Sends a keep-alive if nothing else waits, once for all stores.
    func keepAlive(at place: Int) {
        guard !hasEnded, isFree, place == places.firstIndex(where: { $0.subscriber != nil }) else {
            return
        }
        write(.keepAlive)
    }

    private func write(_ bytes: EventBytes) {
        guard let context else { return }
        context.write(wrapOutboundOut(isChunked ? bytes.chunk : bytes.payload), promise: nil)
        if let rest = isChunked ? bytes.chunkRest : bytes.payloadRest {
            context.write(wrapOutboundOut(rest), promise: nil)
        }
        context.flush()
    }

    // MARK: - The connection

    /// The stream gets its connection.
    /// - Parameter open: Opens a store after the first.
    func connect(isChunked: Bool, _ open: @escaping (Int) -> Void) {
        self.isChunked = isChunked
        if places.count < count { self.open = open }
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if hasEnded { finish(within: Self.closedMilliseconds) } else { advance() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        leave()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        advance()
        context.fireChannelWritabilityChanged()
    }

    /// The other side has nothing more to say.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    // MARK: - The end

    /// Ends the stream of all stores.
    func end() {
        guard !hasEnded else {
            // After another end, this still matters, because it leaves less time.
            context?.close(after: Self.closedMilliseconds)
            return
        }
        for place in places { place.subscriber?.drop(all: true) }
        finish(within: Self.closedMilliseconds)
    }

    /// The time in which the rest must be sent. A revocation must take effect within a second, and
    /// may be noticed late.
    private static let closedMilliseconds: Int64 = 500

    /// Sends the end of the stream and closes the connection.
    private func finish(within milliseconds: Int64) {
        (hasEnded, open) = (true, nil)
        guard let context else { return }
        let last = isChunked ? Self.lastChunk : ByteBuffer()
        context.finish(wrapOutboundOut(last), within: milliseconds)
    }

    private static let lastChunk = ByteBuffer(string: AnswerText.lastChunk)

    /// Ends the subscriptions. Call if the stream never got a connection, too.
    func leave() {
        (hasEnded, open) = (true, nil)
        for place in places.indices {
            places[place].subscriber?.leave()
            places[place].subscriber = nil
        }
    }
}
