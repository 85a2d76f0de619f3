// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import Synchronization
internal import UbiquityWire

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
