// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// Receives the answer to a request, whole or piece by piece, and ends a request when no byte has
/// moved for too long.
///
/// Shared state: all variables. Unchecked because AsyncHTTPClient calls every method of a delegate
/// on the task's event loop, and the timer runs on it too. What others read is read after the
/// task has ended.
final class AnswerReceiver: HTTPClientResponseDelegate, @unchecked Sendable {
    /// A reader of an answer that is too long to be collected, or has no end.
    struct Pieces {
        /// The type of an answer to read, without parameters.
        var mediaType: String
        /// Takes each piece, in order: an empty one first, when the answer begins. May change how
        /// long the server may be silent.
        var take: (ByteBuffer, inout IdleTimeout) throws -> Void
    }

    /// Whether an answer has begun.
    var hasBegun: Bool { head != nil }

    /// The form of the answer.
    var format: WireFormat {
        head?.headers.first(name: "content-type").flatMap(WireFormat.init(mediaType:)) ?? .protobuf
    }

    private let address: ServerAddress
    /// The maximum size of an answer that is collected.
    let bounds: MessageBounds
    private let pieces: Pieces?
    private var idle: IdleTimeout
    private var timer: Scheduled<Void>?
    private var head: HTTPResponseHead?
    /// Whether the answer has the type that ``pieces`` reads.
    private var isRead = false
    /// The answer as far as it is not read.
    private var body = ByteBuffer()
    /// The error of the reader, if any.
    private(set) var failure: (any Error)?

    /// - Parameters:
    ///   - bounds: See ``bounds``.
    ///   - pieces: The reader of a successful answer; nil to collect it.
    init(
        _ address: ServerAddress, _ bounds: MessageBounds = .small,
        silenceMilliseconds: Int64 = IdleTimeout.answerMilliseconds, pieces: Pieces? = nil
    ) {
        self.address = address
        self.bounds = bounds
        self.pieces = pieces
        idle = IdleTimeout(
            now: NIODeadline.milliseconds, silenceMilliseconds: silenceMilliseconds)
    }

    // MARK: - The answer

    func didSendRequestPart(task: HTTPClient.Task<ByteBuffer>, _ part: IOData) { moved() }

    func didReceiveHead(
        task: HTTPClient.Task<ByteBuffer>, _ head: HTTPResponseHead
    ) -> EventLoopFuture<Void> {
        moved()
        self.head = head
        let type = head.headers.first(name: "content-type")?.lowercased() ?? ""
        isRead = head.status == .ok && pieces.map { type.hasPrefix($0.mediaType) } ?? false
        let length = head.headers.first(name: "content-length").flatMap { Int($0) }
        return task.eventLoop.makeCompletedFuture {
            try isRead ? read(ByteBuffer()) : admit(bytes: length ?? 0)
        }
    }

    func didReceiveBodyPart(
        task: HTTPClient.Task<ByteBuffer>, _ buffer: ByteBuffer
    ) -> EventLoopFuture<Void> {
        moved()
        return task.eventLoop.makeCompletedFuture {
            try isRead ? read(buffer) : collect(buffer)
        }
    }

    func didFinishRequest(task: HTTPClient.Task<ByteBuffer>) throws -> ByteBuffer {
        guard head != nil else { throw HTTPClientError.remoteConnectionClosed }
        if let refusal { throw refusal }
        return body
    }

    private func read(_ piece: ByteBuffer) throws {
        do { try pieces?.take(piece, &idle) } catch {
            failure = error
            throw error
        }
    }

    private func collect(_ buffer: ByteBuffer) throws {
        let bytes = body.readableBytes + buffer.readableBytes
        if bytes <= bounds.bytes { body.writeImmutableBuffer(buffer) }
        try admit(bytes: bytes)
    }

    /// A refusal counts, however long the page is that a proxy sends with it.
    private func admit(bytes: Int) throws {
        do { try bounds.check(bytes: bytes) } catch { throw refusal ?? error }
    }

    /// The failure that the answer means; nil for success.
    private var refusal: LinkFailure? {
        guard let head else { return nil }
        guard (200..<300).contains(head.status.code) else {
            return LinkFailure(status: head.status, headers: head.headers, body: body, address)
        }
        return isRead || pieces == nil && isOfServer(head) ? nil : .foreign(head.status, address)
    }

    /// Whether a successful answer has one of the protocol's types, or no content.
    private func isOfServer(_ head: HTTPResponseHead) -> Bool {
        guard head.status != .noContent else { return true }
        return head.headers.first(name: "content-type").flatMap(WireFormat.init(mediaType:)) != nil
    }

    // MARK: - Silence

    private func moved() { idle.moved(at: NIODeadline.milliseconds) }

    /// Begins to watch the task whose delegate this is.
    func watch(_ task: HTTPClient.Task<ByteBuffer>) {
        let loop = task.eventLoop
        loop.execute { [self] in
            // A repeated request gets as much time as the first one.
            moved()
            schedule(on: loop) { [address] seconds in
                task.fail(
                    reason: LinkFailure(
                        .timedOut,
                        "the server at \(address) sent nothing for \(seconds) seconds"))
            }
        }
        task.futureResult.whenComplete { [self] _ in
            timer?.cancel()
            timer = nil
        }
    }

    private func schedule(on loop: any EventLoop, fail: @escaping @Sendable (Int64) -> Void) {
        let rest = idle.end - NIODeadline.milliseconds
        guard rest > 0 else { return fail(idle.silenceMilliseconds / 1_000) }
        timer = loop.scheduleTask(in: .milliseconds(rest)) { [self] in
            schedule(on: loop, fail: fail)
        }
    }
}

extension NIODeadline {
    fileprivate static var milliseconds: Int64 { Int64(now().uptimeNanoseconds / 1_000_000) }
}
