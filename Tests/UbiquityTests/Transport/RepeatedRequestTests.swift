// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import UbiquityCore
import UbiquityHTTP

@testable import Ubiquity

/// Tests which requests are sent a second time at once.
struct RepeatedRequestTests {
    /// Ends every request with one error, and counts them.
    private final class FailingClient: HTTPClient {
        let requests = Mutex<[HTTPRequest]>([])
        private let failure: HTTPFailure
        private let begins: Bool

        init(_ failure: HTTPFailure, begins: Bool) {
            (self.failure, self.begins) = (failure, begins)
        }

        func begin(_ request: HTTPRequest, _ receiver: any HTTPReceiver) -> @Sendable () -> Void {
            requests.withLock { $0.append(request) }
            if begins { try? receiver.began(HTTPAnswerHead(status: 200)) }
            receiver.ended(failure)
            return {}
        }
    }

    private func requests(
        _ method: ServerRequest.Method, endingWith failure: HTTPFailure, begins: Bool = false
    ) async throws -> [HTTPRequest] {
        let client = FailingClient(failure, begins: begins)
        let address = try ServerAddress("http://127.0.0.1:7717")
        await #expect(throws: LinkFailure.self) {
            try await ServerRequest(method, ["config"], at: address)
                .send(to: AnswerReceiver(address, client: client))
        }
        return client.requests.withLock(\.self)
    }

    @Test(arguments: [HTTPFailure.closed, .broken("connection reset by peer")])
    func `a request that the server may have is repeated once if that does no harm`(
        failure: HTTPFailure
    ) async throws {
        #expect(try await requests(.get, endingWith: failure).map(\.isIdempotent) == [true, true])
        #expect(try await requests(.post, endingWith: failure).map(\.isIdempotent) == [false])
    }

    @Test func `a request with another end, or an answer, is not repeated`() async throws {
        #expect(try await requests(.get, endingWith: .closed, begins: true).count == 1)
        for failure in [
            HTTPFailure.silent, .unreachable("connection refused"), .cutShort, .cancelled,
        ] {
            #expect(try await requests(.get, endingWith: failure).count == 1)
        }
    }
}
