// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// One event stream: a bounded queue of events that wait to be sent, and later the only handler of
/// its connection besides TLS and ``OutboundByteHandler``. So an idle stream costs little memory.
///
/// `starting` (the store is being read, and events wait) → `open` (the beginning and the events are
/// sent, as fast as the other side reads) → `ended` (they are dropped, and the connection is
/// closed).
///
/// State: confined to `loop`. Unchecked because the hub knows subscribers on every thread, but only
/// uses their constants there.
final class Subscriber: ChannelInboundHandler, @unchecked Sendable {
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
    private var phase = Phase.starting
    /// The beginning of the stream that is still to be sent.
    private var start = Answer()
    /// Nil until the store has been read.
    private var beginning: StreamStart?
    private var waiting = CircularBuffer<Event>()
    private var waitingBytes = 0
    private var context: ChannelHandlerContext?
    /// Whether events are HTTP chunks, which HTTP/1.0 does not have.
    private var isChunked = true

    private enum Phase {
        case starting
        case open
        case ended
    }

    enum End: Sendable {
        /// The queue overflowed, and was dropped.
        case overflow
        /// The server is shutting down, the device may no longer listen, or the connection is gone.
        case closed
    }

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
    }

    // MARK: - Events

    /// Sends an event, or lets it wait.
    func offer(_ event: Event) {
        guard !hasEnded, beginning?.isNews(event.revision) ?? true else { return }
        if isIdle { return send(event) }
        let size = bytes(of: event).readableBytes
        guard waiting.isEmpty || waitingBytes + size <= hub.bytesPerStreamMax, permit.take(size)
        else {
            hub.noteOverflow()
            return end(.overflow)
        }
        waiting.append(event)
        waitingBytes += size
    }

    /// Sends a keep-alive if nothing else waits.
    func keepAlive() {
        guard isIdle, let context else { return }
        context.writeAndFlush(wrapOutboundOut(framed(.keepAlive)), promise: nil)
    }

    private var hasEnded: Bool { if case .ended = phase { true } else { false } }

    /// Whether an event can be sent at once.
    private var isIdle: Bool {
        guard case .open = phase, let context else { return false }
        return waiting.isEmpty && start.pieces.isEmpty && context.channel.isWritable
    }

    private func send(_ event: Event) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(framed(bytes(of: event))), promise: nil)
        hub.delivered(event)
    }

    private func sendWaiting() {
        guard case .open = phase, let context else { return }
        while context.channel.isWritable, let piece = start.next() {
            context.writeAndFlush(
                wrapOutboundOut(framed(EventBytes(piece))), promise: nil)
        }
        while context.channel.isWritable, let event = waiting.popFirst() {
            let size = bytes(of: event).readableBytes
            waitingBytes -= size
            permit.give(size)
            if beginning?.isNews(event.revision) ?? true { send(event) }
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
        if !hasEnded { start = bytes }
        self.beginning = beginning
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        switch phase {
        case .starting:
            phase = .open
            sendWaiting()
        case .open: break
        case .ended: close(after: .closed)
        }
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
    func end(_ end: End) {
        guard !hasEnded else {
            // After an overflow, a close still matters, because it leaves less time.
            if end == .closed { context?.close(after: lingerMilliseconds(after: end)) }
            return
        }
        let isOpen = context != nil
        phase = .ended
        permit.give(waitingBytes)
        (waiting, waitingBytes, start) = ([], 0, Answer())
        if isOpen { close(after: end) }
    }

    /// The time in which the rest must be sent. A revocation must take effect within a second, and
    /// may be noticed late; an overflow only affects the slow reader.
    private func lingerMilliseconds(after end: End) -> Int64 {
        switch end {
        case .overflow: hub.slowMilliseconds
        case .closed: 500
        }
    }

    /// Sends the end of the stream and closes the connection.
    private func close(after end: End) {
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
/// has only the text form, which ``encodeLarge()`` makes before it is offered to anybody.
final class Event: Sendable {
    let revision: Int64
    /// The time of the commit, or when others' commits were read.
    let committed: NIODeadline
    /// What the changes count as a push.
    let bytes: Int
    private let changes: ChangeSet
    private let encode: Encoder
    private let encoded = Mutex<(text: EventBytes?, binary: EventBytes?)>((nil, nil))

    /// Encodes changes; the flag is ``Subscriber/takesBinary``.
    typealias Encoder = @Sendable (ChangeSet, _ isBinary: Bool) -> ByteBuffer

    init(_ changes: ChangeSet, revision: Int64, _ encode: @escaping Encoder) {
        self.changes = changes
        self.revision = revision
        self.encode = encode
        bytes = changes.records.reduce(0) { $0 + $1.pushBytes }
        committed = .now()
    }

    /// With more, the text takes so long to make that an event loop's other connections would notice.
    private static let smallBytesMax = 8_192

    /// Whether it is encoded on no event loop.
    var isLarge: Bool { bytes > Self.smallBytesMax }

    var isReady: Bool { !isLarge || encoded.withLock { $0.text != nil } }

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
