// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
package import UbiquityHTTP

/// The answer to a request that a test wrote by hand.
package struct TestAnswer: Sendable {
    package let head: HTTPAnswerHead
    /// The body in the pieces that come. Dropping it ends the request.
    package let pieces: AsyncThrowingStream<[UInt8], any Error>

    package var status: Int { head.status }

    /// The fields, with the names in lower case.
    package var headers: [String: String] {
        Dictionary(head.fields.map { ($0.name.lowercased(), $0.value) }) { $1 }
    }

    /// The whole body.
    package var body: [UInt8] {
        get async throws {
            var body: [UInt8] = []
            for try await piece in pieces { body += piece }
            return body
        }
    }

    /// Sends the request, and waits until its answer begins.
    package static func to(_ request: HTTPRequest) async throws -> TestAnswer {
        let (pieces, continuation) = AsyncThrowingStream.makeStream(of: [UInt8].self)
        let receiver = Receiver(continuation)
        let head = try await withCheckedThrowingContinuation { waiter in
            receiver.waiter.withLock { $0 = waiter }
            let cancel = CurlClient.shared.begin(request, receiver)
            continuation.onTermination = { _ in cancel() }
        }
        return TestAnswer(head: head, pieces: pieces)
    }

    package static func to(
        _ method: String, _ url: String, socket: String? = nil,
        headers: [(name: String, value: String)] = [], body: [UInt8]? = nil
    ) async throws -> TestAnswer {
        var request = HTTPRequest(method, url)
        request.socket = socket
        request.fields = headers
        request.body = body
        return try await to(request)
    }

    /// Shared state: `waiter`, by its mutex.
    private final class Receiver: HTTPReceiver, Sendable {
        let waiter = Mutex<CheckedContinuation<HTTPAnswerHead, any Error>?>(nil)
        private let pieces: AsyncThrowingStream<[UInt8], any Error>.Continuation

        init(_ pieces: AsyncThrowingStream<[UInt8], any Error>.Continuation) {
            self.pieces = pieces
        }

        /// Against hanging only.
        var silenceMillisecondsMax: Int64 { 600_000 }

        func began(_ head: HTTPAnswerHead) {
            waiter.withLock { $0.take() }?.resume(returning: head)
        }

        func received(_ piece: UnsafeRawBufferPointer) { pieces.yield([UInt8](piece)) }

        func ended(_ error: (any Error)?) {
            waiter.withLock { $0.take() }?.resume(throwing: error ?? HTTPFailure.closed)
            pieces.finish(throwing: error)
        }
    }
}
