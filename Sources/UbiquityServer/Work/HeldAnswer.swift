// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import Synchronization
internal import UbiquityWire

/// The bytes of an answer that may be large. They are its account's until the connection has taken them.
///
/// State: `pieces`, guarded by its lock.
final class HeldAnswer: Sendable {
    let count: Int
    /// The next one last. Each is released when the connection has taken it.
    private let pieces: Mutex<[ByteBuffer]>
    private let permit: AccountShares.Permit

    /// - Parameter permit: Has noted the pieces.
    init(_ pieces: [ByteBuffer], _ permit: AccountShares.Permit) {
        count = pieces.reduce(0) { $0 + $1.readableBytes }
        self.pieces = Mutex(pieces.reversed())
        self.permit = permit
    }

    /// Writes it once. Waits for whoever reads.
    @concurrent func write(to writer: inout any ResponseBodyWriter) async throws {
        defer { permit.end() }
        while let piece = pieces.withLock({ $0.popLast() }) { try await writer.write(piece) }
    }

    func response(_ format: WireFormat) -> Response {
        Response(status: .ok, headers: [.contentType: format.rawValue], body: body)
    }

    private var body: ResponseBody {
        // In one write with its head, and no larger than what a connection always may have.
        if count <= Self.smallBytes {
            defer { permit.end() }
            return ResponseBody(byteBuffer: pieces.withLock { $0.first } ?? ByteBuffer())
        }
        return ResponseBody(contentLength: count) { writer in
            try await self.write(to: &writer)
            try await writer.finish(nil)
        }
    }

    /// Fits one piece of a ``StoreAnswer``.
    private static let smallBytes = 16 << 10
}
