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
            return StoreAnswer(head: head, answer: answer)
        }

        private var answer: Answer {
            switch form {
            case .message(let format): Answer(format, pieces, permit)
            case .event: Answer(pieces, permit)
            }
        }

        private mutating func append(_ encoded: [UInt8]) {
            piece.writeBytes(encoded)
            bytes += encoded.count
            if piece.readableBytes >= Answer.pieceBytes { endPiece() }
        }

        private mutating func endPiece() {
            guard piece.readableBytes > 0 else { return }
            permit.note(piece.readableBytes)
            pieces.append(piece)
            piece = ByteBuffer()
        }
    }
}
