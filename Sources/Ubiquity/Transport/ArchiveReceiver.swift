// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

/// Hands the pieces of an answer on as they arrive, on the connection's event loop.
///
/// Shared state: `head`, `refusal` and `failure`. Unchecked: AsyncHTTPClient calls every method of a
/// delegate on the task's one event loop, and `failure` is read when the task has ended.
final class ArchiveReceiver: HTTPClientResponseDelegate, @unchecked Sendable {
    private let address: ServerAddress
    private let mediaType: String
    private let take: @Sendable ([UInt8]) throws -> Void
    private var head: HTTPResponseHead?
    /// What a server says instead of an archive.
    private var refusal = ByteBuffer()
    /// What `take` threw.
    private(set) var failure: (any Error)?

    private static let refusalBytesMax = 64 << 10

    init(
        _ address: ServerAddress, mediaType: String,
        take: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        self.address = address
        self.mediaType = mediaType
        self.take = take
    }

    func didReceiveHead(
        task: HTTPClient.Task<Void>, _ head: HTTPResponseHead
    ) -> EventLoopFuture<Void> {
        self.head = head
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(
        task: HTTPClient.Task<Void>, _ buffer: ByteBuffer
    ) -> EventLoopFuture<Void> {
        guard isArchive else {
            if refusal.readableBytes + buffer.readableBytes <= Self.refusalBytesMax {
                refusal.writeImmutableBuffer(buffer)
            }
            return task.eventLoop.makeSucceededVoidFuture()
        }
        do {
            try take(Array(buffer.readableBytesView))
            return task.eventLoop.makeSucceededVoidFuture()
        } catch {
            failure = error
            return task.eventLoop.makeFailedFuture(error)
        }
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {
        guard !isArchive, let head else { return }
        guard head.status == .ok else {
            throw LinkFailure(
                status: head.status, headers: head.headers, body: refusal, address)
        }
        throw LinkFailure(.unreachable, "what answers at \(address) is no Ubiquity server")
    }

    private var isArchive: Bool {
        head?.status == .ok && head?.headers.first(name: "content-type") == mediaType
    }
}
