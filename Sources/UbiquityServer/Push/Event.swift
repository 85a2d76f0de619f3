// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// Changes as they are sent to the subscribers of their store.
///
/// State: `encoded`, guarded by its lock: the first loop that needs a form of it makes it. A large event
/// has only the text, which ``encodeLarge()`` makes before it is offered to anybody. `reserved`, too.
final class Event: HubEvent {
    let revision: Int64
    /// The time of the commit, or when others' commits were read.
    let committed: NIODeadline
    /// The size of the changes, counted as for a push.
    let bytes: Int
    private let changes: ChangeSet
    private let store: StoreIdentifier
    private let encode: Encoder
    private let encoded = Mutex<[EventForm: EventBytes]>([:])
    /// Makes its part of the budget for what is not encoded yet.
    private let takePermit: @Sendable () -> AccountShares.Permit?
    private let reserved = Mutex<AccountShares.Permit?>(nil)

    /// Encodes changes, of a store if that is to be named.
    typealias Encoder =
        @Sendable (ChangeSet, _ store: StoreIdentifier?, _ isBinary: Bool) -> ByteBuffer

    init(
        _ changes: ChangeSet, of store: StoreIdentifier, revision: Int64,
        permit: @escaping @Sendable () -> AccountShares.Permit?, _ encode: @escaping Encoder
    ) {
        self.changes = changes
        self.store = store
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
        let bytes = EventBytes(encode(changes, nil, false))
        encoded.withLock { $0[.text] = bytes }
    }

    func bytes(_ form: EventForm) -> EventBytes {
        let form = EventForm(isBinary: form.isBinary && !isLarge, isNamed: form.isNamed)
        return encoded.withLock { encoded in
            if let bytes = encoded[form] { return bytes }
            // The bytes of a large event are not copied.
            let text = isLarge ? encoded[.text] : nil
            let bytes =
                text?.naming(store)
                ?? EventBytes(encode(changes, form.isNamed ? store : nil, form.isBinary))
            encoded[form] = bytes
            return bytes
        }
    }
}

/// A form in which events are sent.
struct EventForm: Hashable, Sendable {
    /// Whether small pushes are in protobuf's binary format.
    var isBinary: Bool
    /// Whether an event names its store.
    var isNamed: Bool

    static let text = EventForm(isBinary: false, isNamed: false)
}

/// An event's text, with and without the frame of an HTTP chunk.
struct EventBytes: Sendable {
    /// All of it, or what comes before ``chunkRest``.
    let chunk: ByteBuffer
    let chunkRest: ByteBuffer?
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
        chunkRest = nil
    }

    /// - Parameters:
    ///   - beginning: What takes the place of the first bytes of another event, of which it shares the
    ///     rest.
    ///   - count: The number of these bytes.
    private init(_ beginning: String, insteadOf count: Int, of event: EventBytes) {
        readableBytes = event.readableBytes - count + beginning.utf8.count
        var chunk = ByteBuffer(string: AnswerText.chunkBegin(readableBytes))
        payloadIndex = chunk.writerIndex
        chunk.writeString(beginning)
        self.chunk = chunk
        var rest = event.chunk
        rest.moveReaderIndex(forwardBy: event.payloadIndex + count)
        chunkRest = rest
    }

    /// The text of changes, with the name of their store.
    func naming(_ store: StoreIdentifier) -> EventBytes {
        EventBytes(
            ServerSentEvent.pushHead + "\"store\":\"\(store.string)\",",
            insteadOf: ServerSentEvent.pushHead.utf8.count, of: self)
    }

    /// As ``chunk``, without the frame.
    var payload: ByteBuffer {
        let end = chunkRest == nil ? AnswerText.chunkEnd.utf8.count : 0
        let length = chunk.writerIndex - end - payloadIndex
        return chunk.getSlice(at: payloadIndex, length: length) ?? ByteBuffer()
    }

    var payloadRest: ByteBuffer? {
        chunkRest.flatMap { rest in
            rest.getSlice(
                at: rest.readerIndex, length: rest.readableBytes - AnswerText.chunkEnd.utf8.count)
        }
    }

    static let keepAlive = EventBytes(ServerSentEvent.keepAlive)
}
