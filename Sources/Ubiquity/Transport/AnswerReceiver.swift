// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

/// Collects an answer, and gives up when no byte has moved for too long.
///
/// Shared state: all variables. Unchecked because AsyncHTTPClient calls every method of a delegate
/// on the task's event loop, and the timer runs on it too.
final class AnswerReceiver: HTTPClientResponseDelegate, @unchecked Sendable {
    struct Answer: Sendable {
        var head: HTTPResponseHead
        var body = ByteBuffer()
    }

    private var answer: Answer?
    private var patience = TransferPatience(now: NIODeadline.milliseconds)
    private var timer: Scheduled<Void>?

    /// Begins to watch a task that has this delegate.
    func watch(_ task: HTTPClient.Task<Answer>) {
        task.eventLoop.execute { [self] in schedule(task) }
        task.futureResult.whenComplete { [self] _ in
            timer?.cancel()
            timer = nil
        }
    }

    private func schedule(_ task: HTTPClient.Task<Answer>) {
        let rest = patience.end - NIODeadline.milliseconds
        guard rest > 0 else { return task.fail(reason: HTTPClientError.deadlineExceeded) }
        timer = task.eventLoop.scheduleTask(in: .milliseconds(rest)) { [self] in schedule(task) }
    }

    func didSendRequestPart(task: HTTPClient.Task<Answer>, _ part: IOData) { move() }

    func didReceiveHead(
        task: HTTPClient.Task<Answer>, _ head: HTTPResponseHead
    ) -> EventLoopFuture<Void> {
        move()
        answer = Answer(head: head)
        let length = head.headers.first(name: "content-length").flatMap { Int($0) }
        return admit(bytes: length ?? 0, on: task.eventLoop)
    }

    func didReceiveBodyPart(
        task: HTTPClient.Task<Answer>, _ buffer: ByteBuffer
    ) -> EventLoopFuture<Void> {
        move()
        let bytes = (answer?.body.readableBytes ?? 0) + buffer.readableBytes
        if bytes <= ServerRequest.answerBytesMax { answer?.body.writeImmutableBuffer(buffer) }
        return admit(bytes: bytes, on: task.eventLoop)
    }

    private func admit(bytes: Int, on loop: any EventLoop) -> EventLoopFuture<Void> {
        guard bytes <= ServerRequest.answerBytesMax else {
            return loop.makeFailedFuture(
                ResponseAccumulator.ResponseTooBigError(maxBodySize: ServerRequest.answerBytesMax))
        }
        return loop.makeSucceededVoidFuture()
    }

    func didFinishRequest(task: HTTPClient.Task<Answer>) throws -> Answer {
        guard let answer else { throw HTTPClientError.remoteConnectionClosed }
        return answer
    }

    private func move() { patience.moved(at: NIODeadline.milliseconds) }
}

extension NIODeadline {
    fileprivate static var milliseconds: Int64 { Int64(now().uptimeNanoseconds / 1_000_000) }
}
