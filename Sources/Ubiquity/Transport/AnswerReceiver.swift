// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// Collects an answer.
///
/// Shared state: `answer`. Unchecked because AsyncHTTPClient calls every method of a delegate on
/// the task's event loop.
final class AnswerReceiver: HTTPClientResponseDelegate, @unchecked Sendable {
    struct Answer: Sendable {
        var head: HTTPResponseHead
        var body = ByteBuffer()

        /// The failure that the answer's status means; nil for success.
        func refusal(_ address: ServerAddress) -> LinkFailure? {
            (200..<300).contains(head.status.code)
                ? nil : LinkFailure(status: head.status, headers: head.headers, body: body, address)
        }
    }

    private let silence: SilenceWatch
    private let address: ServerAddress
    private let bounds: MessageBounds
    private var answer: Answer?

    init(_ address: ServerAddress, _ bounds: MessageBounds, _ silence: SilenceWatch) {
        self.address = address
        self.bounds = bounds
        self.silence = silence
    }

    func didSendRequestPart(task: HTTPClient.Task<Answer>, _ part: IOData) { silence.move() }

    func didReceiveHead(
        task: HTTPClient.Task<Answer>, _ head: HTTPResponseHead
    ) -> EventLoopFuture<Void> {
        silence.move()
        answer = Answer(head: head)
        let length = head.headers.first(name: "content-length").flatMap { Int($0) }
        return admit(bytes: length ?? 0, on: task.eventLoop)
    }

    func didReceiveBodyPart(
        task: HTTPClient.Task<Answer>, _ buffer: ByteBuffer
    ) -> EventLoopFuture<Void> {
        silence.move()
        let bytes = (answer?.body.readableBytes ?? 0) + buffer.readableBytes
        if bytes <= bounds.bytes { answer?.body.writeImmutableBuffer(buffer) }
        return admit(bytes: bytes, on: task.eventLoop)
    }

    /// A refusal counts, however long the page is that a proxy sends with it.
    private func admit(bytes: Int, on loop: any EventLoop) -> EventLoopFuture<Void> {
        do throws(WireError) { try bounds.check(bytes: bytes) } catch {
            return loop.makeFailedFuture(answer?.refusal(address) ?? error)
        }
        return loop.makeSucceededVoidFuture()
    }

    func didFinishRequest(task: HTTPClient.Task<Answer>) throws -> Answer {
        guard let answer else { throw HTTPClientError.remoteConnectionClosed }
        return answer
    }
}
