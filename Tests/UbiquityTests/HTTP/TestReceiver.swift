// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Synchronization
import UbiquityHTTP

/// The receiver's or the request's test wanted an error, and here it is.
struct Unwanted: Error, Equatable {}

/// Notes what becomes of a request.
///
/// Shared state: `state`, guarded by its mutex: the client and the test meet there.
final class TestReceiver: HTTPReceiver {
    struct Outcome {
        var head: HTTPAnswerHead?
        var body: [UInt8] = []
        var pieces = 0
        var errors: [(any Error)?] = []

        var text: String { String(decoding: body, as: UTF8.self) }
        var failure: HTTPFailure? { errors.first.flatMap { $0 as? HTTPFailure } }
        var isComplete: Bool { errors.count == 1 && errors[0] == nil }
    }

    let silenceMillisecondsMax: Int64
    private let atHead: @Sendable () throws -> Void
    private let atPiece: @Sendable (Int) throws -> Void
    private let atEnd: @Sendable () -> Void
    private let state = Mutex(Outcome())

    /// - Parameter atPiece: With the number of the piece, from 1.
    init(
        silence: Int64 = 120_000, atHead: @escaping @Sendable () throws -> Void = {},
        atPiece: @escaping @Sendable (Int) throws -> Void = { _ in },
        atEnd: @escaping @Sendable () -> Void = {}
    ) {
        silenceMillisecondsMax = silence
        (self.atHead, self.atPiece, self.atEnd) = (atHead, atPiece, atEnd)
    }

    var outcome: Outcome { state.withLock { $0 } }

    func began(_ head: HTTPAnswerHead) throws {
        state.withLock { $0.head = head }
        try atHead()
    }

    func received(_ piece: UnsafeRawBufferPointer) throws {
        let bytes = Array(piece)
        let count = state.withLock { state in
            state.body += bytes
            state.pieces += 1
            return state.pieces
        }
        try atPiece(count)
    }

    func ended(_ error: (any Error)?) {
        state.withLock { $0.errors.append(error) }
        atEnd()
    }

    func end() async throws -> Outcome {
        try await until("the end") { !self.outcome.errors.isEmpty }
        return outcome
    }
}

extension HTTPRequest {
    /// Carries out the request and waits for its end.
    func sent(
        by client: some HTTPClient, to receiver: TestReceiver = TestReceiver()
    ) async throws -> TestReceiver.Outcome {
        _ = client.begin(self, receiver)
        return try await receiver.end()
    }

    func with(_ change: (inout HTTPRequest) -> Void) -> HTTPRequest {
        var request = self
        change(&request)
        return request
    }
}
