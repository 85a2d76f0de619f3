// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// One event stream: carries out its ``SendQueue``, and is later the only handler of its connection
/// besides TLS and ``OutboundByteHandler``. So an idle stream costs little memory.
///
/// State: confined to `loop`. Unchecked because the hub knows subscribers on every thread, but only
/// uses their constants there.
final class Subscriber: ChannelInboundHandler, HubSubscriber, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let number: UInt64
    let device: DeviceReference
    /// As ``DeviceRights/expiresMilliseconds``.
    let expiresMilliseconds: Int64?
    let store: StoreReference
    /// Whether it accepts small pushes in protobuf's binary format.
    let takesBinary: Bool
    /// The connection's event loop.
    let loop: any EventLoop
    private let hub: PushHub
    /// Its place among those of its account, and its part of the budget that all subscribers share.
    private let permit: AccountShares.Permit
    private var queue: SendQueue<Event>
    /// The beginning of the stream that is still to be sent.
    private var start = Answer()
    private var context: ChannelHandlerContext?
    /// Whether events are HTTP chunks, which HTTP/1.0 does not have.
    private var isChunked = true

    init(
        number: UInt64, rights: DeviceRights, store: StoreReference, takesBinary: Bool,
        permit: AccountShares.Permit, hub: PushHub, on loop: any EventLoop
    ) {
        self.number = number
        device = rights.reference
        expiresMilliseconds = rights.expiresMilliseconds
        self.store = store
        self.takesBinary = takesBinary
        self.permit = permit
        self.hub = hub
        self.loop = loop
        queue = SendQueue(bytesMax: hub.bytesPerStreamMax)
    }

    // MARK: - Events

    /// Sends an event, or lets it wait.
    func offer(_ event: Event) {
        let offer = queue.offer(
            event, revision: event.revision, canSend: canSend,
            bytes: { bytes(of: event).readableBytes }, reserve: permit.take)
        switch offer {
        case .send: send(event)
        case .waits, .dropped: break
        case .overflow:
            hub.noteOverflow()
            end(.overflow)
        }
    }

    /// Sends a keep-alive if nothing else waits.
    func keepAlive() {
        guard queue.isOpen, queue.isEmpty, canSend, let context else { return }
        context.writeAndFlush(wrapOutboundOut(framed(.keepAlive)), promise: nil)
    }

    /// Whether the connection can take an event, with nothing of the beginning before it.
    private var canSend: Bool {
        start.pieces.isEmpty && context?.channel.isWritable == true
    }

    private func send(_ event: Event) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(framed(bytes(of: event))), promise: nil)
        hub.delivered(event)
    }

    private func sendWaiting() {
        guard queue.isOpen, let context else { return }
        while context.channel.isWritable, let piece = start.next() {
            context.writeAndFlush(
                wrapOutboundOut(framed(EventBytes(piece))), promise: nil)
        }
        while context.channel.isWritable, let event = queue.next(release: permit.give) {
            send(event)
        }
    }

    private func bytes(of event: Event) -> EventBytes { event.bytes(isBinary: takesBinary) }

    private func framed(_ bytes: EventBytes) -> ByteBuffer {
        isChunked ? bytes.chunk : bytes.payload
    }

    // MARK: - The connection

    /// Says how the stream begins. Call before the subscriber gets its connection.
    func begin(with bytes: Answer, _ beginning: StreamStart, isChunked: Bool) {
        self.isChunked = isChunked
        if !queue.hasEnded { start = bytes }
        queue.begin(beginning)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if queue.open() { sendWaiting() } else { close(after: .closed) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        leave()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        sendWaiting()
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

    /// Ends the stream.
    func end(_ end: StreamEnd) {
        guard queue.end(release: permit.give) else {
            // After an overflow, a close still matters, because it leaves less time.
            if end == .closed { context?.close(after: lingerMilliseconds(after: end)) }
            return
        }
        start = Answer()
        close(after: end)
    }

    /// The time in which the rest must be sent. A revocation must take effect within a second, and
    /// may be noticed late; an overflow only affects the slow reader.
    private func lingerMilliseconds(after end: StreamEnd) -> Int64 {
        switch end {
        case .overflow: hub.slowMilliseconds
        case .closed: 500
        }
    }

    /// Sends the end of the stream and closes the connection.
    private func close(after end: StreamEnd) {
        guard let context else { return }
        if end == .overflow { context.write(wrapOutboundOut(framed(.resync)), promise: nil) }
        let last = isChunked ? Self.lastChunk : ByteBuffer()
        context.finish(wrapOutboundOut(last), within: lingerMilliseconds(after: end))
    }

    private static let lastChunk = ByteBuffer(string: AnswerText.lastChunk)

    /// Ends the subscription. Call if the stream was never opened, too.
    func leave() {
        end(.closed)
        hub.unsubscribe(self)
        permit.end()
    }
}

/// Changes as they are sent to the subscribers of their store.
///
/// State: `encoded`, guarded by its lock: the first loop that needs a form of it makes it. A large event
/// has only the text form, which ``encodeLarge()`` makes before it is offered to anybody. `reserved`, too.
final class Event: HubEvent {
    let revision: Int64
    /// The time of the commit, or when others' commits were read.
    let committed: NIODeadline
    /// The size of the changes, counted as for a push.
    let bytes: Int
    private let changes: ChangeSet
    private let encode: Encoder
    private let encoded = Mutex<(text: EventBytes?, binary: EventBytes?)>((nil, nil))
    /// Makes its part of the budget for what is not encoded yet.
    private let takePermit: @Sendable () -> AccountShares.Permit?
    private let reserved = Mutex<AccountShares.Permit?>(nil)

    /// Encodes changes; the flag is ``Subscriber/takesBinary``.
    typealias Encoder = @Sendable (ChangeSet, _ isBinary: Bool) -> ByteBuffer

    init(
        _ changes: ChangeSet, revision: Int64,
        permit: @escaping @Sendable () -> AccountShares.Permit?, _ encode: @escaping Encoder
    ) {
        self.changes = changes
        self.revision = revision
        self.encode = encode
        takePermit = permit
        bytes = changes.records.reduce(0) { $0 + $1.pushBytes }
        committed = .now()
    }

    /// With more, the text takes so long to make that an event loop's other connections would notice.
    private static let smallBytesMax = 8_192

    /// Whether it is encoded on no event loop.
    var isLarge: Bool { bytes > Self.smallBytesMax }

    func reserve() -> Bool {
        guard let permit = takePermit(), permit.take(bytes) else { return false }
        reserved.withLock { $0 = permit }
        return true
    }

    /// It is offered to the subscribers, who reserve what they need.
    func release() { reserved.withLock { $0 = nil } }

    /// Makes the text that all subscribers get.
    func encodeLarge() {
        let bytes = EventBytes(encode(changes, false))
        encoded.withLock { $0.text = bytes }
    }

    /// - Parameter takesBinary: As ``Subscriber/takesBinary``.
    func bytes(isBinary takesBinary: Bool) -> EventBytes {
        let isBinary = takesBinary && !isLarge
        return encoded.withLock { encoded in
            if let bytes = isBinary ? encoded.binary : encoded.text { return bytes }
            let bytes = EventBytes(encode(changes, isBinary))
            if isBinary { encoded.binary = bytes } else { encoded.text = bytes }
            return bytes
        }
    }
}

/// An event's text, with and without the frame of an HTTP chunk.
struct EventBytes: Sendable {
    let chunk: ByteBuffer
    private let payloadIndex: Int
    let readableBytes: Int

    init(_ payload: ByteBuffer) {
        readableBytes = payload.readableBytes
        var chunk = ByteBuffer()
        chunk.reserveCapacity(payload.readableBytes + 16)
        chunk.writeString(AnswerText.chunkBegin(payload.readableBytes))
        payloadIndex = chunk.writerIndex
        chunk.writeImmutableBuffer(payload)
        chunk.writeString(AnswerText.chunkEnd)
        self.chunk = chunk
    }

    var payload: ByteBuffer {
        chunk.getSlice(at: payloadIndex, length: readableBytes) ?? ByteBuffer()
    }

    static let keepAlive = EventBytes(ServerSentEvent.keepAlive)
    static let resync = EventBytes(ServerSentEvent.resync)
}
