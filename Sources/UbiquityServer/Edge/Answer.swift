// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// The answer to a request. A large body is in pieces, which count as its account's until the
/// connection has taken them.
struct Answer: Sendable {
    var status: HTTPResponseStatus = .ok
    var headers: HTTPHeaders = [:]
    /// In order, none larger than ``pieceBytes``.
    private(set) var pieces: CircularBuffer<ByteBuffer> = []
    /// Nil for a small answer.
    private(set) var permit: AccountShares.Permit?
    /// Makes a body of unknown length, in a task; nil for a body in pieces.
    private(set) var stream: Stream?

    /// - Parameter write: Returns when the other side has read enough for more.
    typealias Stream =
        @Sendable (_ write: (ByteBuffer) async throws -> Void) async throws -> Void

    static let pieceBytes = 64 << 10
    /// The size of an answer that is always allowed for a connection.
    private static let smallBytes = 16 << 10

    init(
        _ status: HTTPResponseStatus = .ok, headers: HTTPHeaders = [:], body: ByteBuffer? = nil
    ) {
        self.status = status
        self.headers = headers
        if let body { pieces = [body] }
    }

    init(headers: HTTPHeaders, stream: @escaping Stream) {
        self.headers = headers
        self.stream = stream
    }

    /// - Parameters:
    ///   - permit: Is already charged with the pieces.
    ///   - format: Nil for a stream, which has headers of its own.
    init(_ pieces: [ByteBuffer], _ permit: AccountShares.Permit, _ format: WireFormat? = nil) {
        if let format { headers.add(name: "Content-Type", value: format.rawValue) }
        for piece in pieces {
            var piece = piece
            // So that a connection takes a large value in several steps.
            while let part = piece.readSlice(length: min(Self.pieceBytes, piece.readableBytes)),
                part.readableBytes > 0
            {
                self.pieces.append(part)
            }
        }
        if bytes > Self.smallBytes { self.permit = permit } else { permit.end() }
    }

    mutating func append(_ piece: ByteBuffer) { pieces.append(piece) }

    var bytes: Int { pieces.reduce(0) { $0 + $1.readableBytes } }

    /// Removes and returns the next piece. After the last one, the account's share is free again.
    mutating func next() -> ByteBuffer? {
        guard let piece = pieces.popFirst() else {
            permit?.end()
            permit = nil
            return nil
        }
        return piece
    }
}
