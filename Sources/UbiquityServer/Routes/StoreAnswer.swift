// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import Synchronization
internal import UbiquityCore
internal import UbiquityWire

/// The answer to a read of a store.
struct StoreAnswer: Sendable {
    enum Form: Hashable, Sendable {
        case message(WireFormat)
        /// The event `changes`; nothing if a listener that resumes is up to date.
        case event
    }

    /// Everything except the records.
    let head: ChangeSet
    let held: HeldAnswer

    /// An answer in the making. Decodes one record at a time.
    struct Draft: Sendable {
        private let form: Form
        private let head: ChangeSet
        private let permit: AccountShares.Permit
        private let isSilent: Bool
        /// The records that are still to be encoded, in reverse order.
        private var waiting: [StoredRecord]
        private var encoder: WireChangesEncoder
        private var pieces: [ByteBuffer] = []
        private var piece = ByteBuffer()
        private var bytes = 0

        /// The number of stored bytes encoded before others have their turn. A single value may be
        /// larger.
        private static let sliceBytes = 128 << 10

        init(
            _ form: Form, _ head: ChangeSet, _ records: [StoredRecord],
            _ permit: AccountShares.Permit
        ) {
            self.form = form
            self.head = head
            self.permit = permit
            waiting = records.reversed()
            isSilent = form == .event && records.isEmpty && !head.isWhole
            permit.note(records.reduce(0) { $0 + $1.bytes })
            switch form {
            case .message(let format): encoder = WireChangesEncoder(format)
            case .event:
                encoder = WireChangesEncoder(.json)
                if !isSilent { piece.writeString(ServerSentEvent.changesHead(head.cursor)) }
            }
        }

        /// - Returns: The answer; nil if there is more to encode.
        /// - Throws: ``StorageError``, ``Problem``.
        mutating func encodeSlice() throws -> StoreAnswer? {
            var encoded = 0
            while encoded < Self.sliceBytes, let stored = waiting.popLast() {
                encoded += stored.bytes
                append(encoder.encode(try stored.record()))
                permit.give(stored.bytes)
                guard bytes <= StoreReader.answerBytesMax else { throw Problem.answerTooLarge }
            }
            guard waiting.isEmpty else { return nil }
            if !isSilent { append(encoder.end(head)) }
            if !isSilent, form == .event { piece.writeString(ServerSentEvent.end) }
            endPiece()
            return StoreAnswer(head: head, held: HeldAnswer(pieces, permit))
        }

        private mutating func append(_ encoded: [UInt8]) {
            piece.writeBytes(encoded)
            bytes += encoded.count
            if piece.readableBytes >= HeldAnswer.pieceBytes { endPiece() }
        }

        private mutating func endPiece() {
            guard piece.readableBytes > 0 else { return }
            permit.note(piece.readableBytes)
            pieces.append(piece)
            piece = ByteBuffer()
        }
    }
}

/// The bytes of an answer that may be large. They count as its account's until the connection has
/// taken them.
///
/// State: `pieces`, guarded by its lock.
final class HeldAnswer: Sendable {
    let count: Int
    /// The pieces in reverse order. Each is released when the connection has taken it.
    private let pieces: Mutex<[ByteBuffer]>
    private let permit: AccountShares.Permit

    /// - Parameter permit: Is already charged with the pieces.
    init(_ pieces: [ByteBuffer], _ permit: AccountShares.Permit) {
        count = pieces.reduce(0) { $0 + $1.readableBytes }
        self.pieces = Mutex(pieces.flatMap(Self.parts).reversed())
        self.permit = permit
    }

    /// So that a connection takes a large value in several steps, and the rest is still held.
    private static func parts(of piece: ByteBuffer) -> [ByteBuffer] {
        var (piece, parts) = (piece, [ByteBuffer]())
        while piece.readableBytes > 0,
            let part = piece.readSlice(length: min(pieceBytes, piece.readableBytes))
        {
            parts.append(part)
        }
        return parts
    }

    /// Writes the answer, which is possible once. Waits for the other side to read.
    /// - Parameter loop: The connection's.
    @concurrent func write(
        to writer: inout any ResponseBodyWriter, on loop: any EventLoop
    ) async throws {
        defer { permit.end() }
        while let piece = pieces.withLock({ $0.popLast() }) {
            try await writer.write(piece)
            // The writer learns on the loop that a connection takes no more.
            try await loop.submit {}.get()
        }
    }

    /// - Parameter loop: The connection's.
    func response(_ format: WireFormat, on loop: any EventLoop) -> Response {
        Response(status: .ok, headers: [.contentType: format.rawValue], body: body(on: loop))
    }

    private func body(on loop: any EventLoop) -> ResponseBody {
        // Written together with the head, and within the size that is always allowed for a
        // connection.
        if count <= Self.smallBytes {
            defer { permit.end() }
            return ResponseBody(byteBuffer: pieces.withLock { $0.first } ?? ByteBuffer())
        }
        return ResponseBody(contentLength: count) { writer in
            try await self.write(to: &writer, on: loop)
            try await writer.finish(nil)
        }
    }

    /// Small enough to be one piece of a ``StoreAnswer``.
    private static let smallBytes = 16 << 10
    static let pieceBytes = 64 << 10
}
