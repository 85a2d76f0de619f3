// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

/// The head of an answer that is passed on in pieces, and the body of an error response.
struct ReceivedAnswer {
    var head: HTTPResponseHead?
    private var refusal = ByteBuffer()

    private static let refusalBytesMax = 64 << 10

    /// The answer's type; nil unless the request succeeded.
    var contentType: String? {
        head?.status == .ok ? head?.headers.first(name: "content-type") : nil
    }

    /// Keeps data that is not passed on, as far as an error needs it.
    mutating func keep(_ buffer: ByteBuffer) {
        guard refusal.readableBytes + buffer.readableBytes <= Self.refusalBytesMax else { return }
        refusal.writeImmutableBuffer(buffer)
    }

    /// Call when an answer that was not passed on has ended.
    /// - Throws: ``LinkFailure``, unless there was no answer.
    func refuse(_ address: ServerAddress) throws {
        guard let head else { return }
        guard head.status == .ok else {
            throw LinkFailure(
                status: head.status, headers: head.headers, body: refusal, address)
        }
        throw LinkFailure(.unreachable, "what answers at \(address) is no Ubiquity server")
    }
}
