// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
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
    /// For a message, with its headers.
    let answer: Answer

    /// An answer in the making. Decodes one record at a time.
    struct Draft: Sendable {
        private let form: Form
        private let head: ChangeSet
        private let permit: AccountShares.Permit
        private let isSilent: Bool
        /// The records that are still to be encoded, in reverse order.
        private var waiting: [StoredRecord]
        private var encoder: WireListEncoder
        private var pieces: AnswerPieces

        /// The number of stored bytes encoded before others have their turn. A single value may be
        /// larger.
        static let sliceBytes = 128 << 10

        init(
            _ form: Form, _ head: ChangeSet, _ records: [StoredRecord],
            _ permit: AccountShares.Permit
        ) {
            self.form = form
            self.head = head
            self.permit = permit
            pieces = AnswerPieces(permit)
            waiting = records.reversed()
            isSilent = form == .event && records.isEmpty && !head.isWhole
            permit.note(records.reduce(0) { $0 + $1.bytes })
            switch form {
            case .message(let format): encoder = WireListEncoder(format)
            case .event:
                encoder = WireListEncoder(.json)
                if !isSilent { pieces.append(ServerSentEvent.changesHead(head.cursor).utf8) }
            }
        }

        /// - Returns: The answer; nil if there is more to encode.
        /// - Throws: ``StorageError``, ``Problem``.
        mutating func encodeSlice() throws -> StoreAnswer? {
            var encoded = 0
            while encoded < Self.sliceBytes, let stored = waiting.popLast() {
                encoded += stored.bytes
                pieces.append(encoder.encode(try stored.record()))
                permit.give(stored.bytes)
                guard pieces.bytes <= StoreReader.answerBytesMax else {
                    throw Problem.answerTooLarge
                }
            }
            guard waiting.isEmpty else { return nil }
            if !isSilent { pieces.append(encoder.end(head)) }
            if !isSilent, form == .event { pieces.append(ServerSentEvent.end.utf8) }
            let pieces = pieces.end()
            switch form {
            case .message(let format):
                return StoreAnswer(head: head, answer: Answer(format, pieces, permit))
            case .event: return StoreAnswer(head: head, answer: Answer(pieces, permit))
            }
        }
    }
}

/// The pieces of an answer in the making, which count as its account's.
struct AnswerPieces: Sendable {
    private let permit: AccountShares.Permit
    private var pieces: [ByteBuffer] = []
    private var piece = ByteBuffer()
    private(set) var bytes = 0

    init(_ permit: AccountShares.Permit) { self.permit = permit }

    mutating func append(_ encoded: some Collection<UInt8>) {
        piece.writeBytes(encoded)
        bytes += encoded.count
        if piece.readableBytes >= Answer.pieceBytes { endPiece() }
    }

    /// - Returns: All of them.
    mutating func end() -> [ByteBuffer] {
        endPiece()
        return pieces
    }

    private mutating func endPiece() {
        guard piece.readableBytes > 0 else { return }
        permit.note(piece.readableBytes)
        pieces.append(piece)
        piece = ByteBuffer()
    }
}
