// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

/// Passes on the pieces of an answer as they arrive, on the connection's event loop.
///
/// Shared state: `answer` and `failure`. Unchecked because AsyncHTTPClient calls every method of a
/// delegate on the task's event loop, and `failure` is read after the task has ended.
final class ArchiveReceiver: HTTPClientResponseDelegate, @unchecked Sendable {
    let silence: SilenceWatch
    private let address: ServerAddress
    private let mediaType: String
    private let take: @Sendable ([UInt8]) throws -> Void
    private var answer = ReceivedAnswer()
    /// The error of `take`, if any.
    private(set) var failure: (any Error)?

    init(
        _ address: ServerAddress, mediaType: String,
        take: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        self.address = address
        silence = SilenceWatch(address)
        self.mediaType = mediaType
        self.take = take
    }

    func didReceiveHead(
        task: HTTPClient.Task<Void>, _ head: HTTPResponseHead
    ) -> EventLoopFuture<Void> {
        silence.move()
        answer.head = head
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(
        task: HTTPClient.Task<Void>, _ buffer: ByteBuffer
    ) -> EventLoopFuture<Void> {
        silence.move()
        guard isArchive else {
            answer.keep(buffer)
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
        if !isArchive { try answer.refuse(address) }
    }

    private var isArchive: Bool { answer.contentType == mediaType }
}
