// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import UbiquityCore
internal import UbiquityWire

/// An answer in the making. Decodes one record or version at a time.
struct AnswerDraft<Item: AnswerItem, Finished>: Sendable {
    /// The items still to be encoded, in reverse order.
    private var waiting: [Item]
    private var encoder: WireListEncoder
    private var pieces: AnswerPieces
    private let permit: AccountShares.Permit
    private let encode: @Sendable (Item, inout WireListEncoder) throws -> [UInt8]
    private let end: @Sendable (WireListEncoder, inout AnswerPieces) -> Finished

    /// - Parameters:
    ///   - beginning: What comes before the items.
    ///   - end: Appends what comes after them, and makes the answer.
    init(
        _ items: [Item], _ format: WireFormat, _ permit: AccountShares.Permit,
        beginning: String = "",
        encode: @escaping @Sendable (Item, inout WireListEncoder) throws -> [UInt8],
        end: @escaping @Sendable (WireListEncoder, inout AnswerPieces) -> Finished
    ) {
        waiting = items.reversed()
        encoder = WireListEncoder(format)
        pieces = AnswerPieces(permit)
        self.permit = permit
        self.encode = encode
        self.end = end
        permit.note(items.reduce(0) { $0 + $1.bytes })
        pieces.append(beginning.utf8)
    }

    /// - Returns: The answer; nil if there is more to encode.
    /// - Throws: ``StorageError``, ``Problem``.
    mutating func encodeSlice() throws -> Finished? {
        var encoded = 0
        while encoded < AnswerPieces.sliceBytes, let item = waiting.popLast() {
            encoded += item.bytes
            pieces.append(try encode(item, &encoder))
            permit.give(item.bytes)
            guard pieces.bytes <= StoreReader.answerBytesMax else { throw Problem.answerTooLarge }
        }
        return waiting.isEmpty ? end(encoder, &pieces) : nil
    }
}

/// An element of a long answer, as stored.
protocol AnswerItem: Sendable {
    /// The bytes that it takes in memory.
    var bytes: Int { get }
}

extension StoredRecord: AnswerItem {}

extension StoredVersion: AnswerItem {}

/// The pieces of an answer in the making, which count as its account's.
struct AnswerPieces: Sendable {
    private let permit: AccountShares.Permit
    private var pieces: [ByteBuffer] = []
    private var piece = ByteBuffer()
    private(set) var bytes = 0

    /// The number of stored bytes encoded before others have their turn. A single value may be
    /// larger.
    static let sliceBytes = 128 << 10

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
