// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
import ClientTestSupport
import Foundation
import Testing
import UbiquityHTTP

/// Requests without a complete answer, and servers that mean harm.
@Suite struct HTTPFailureTests {
    private let client = CurlClient.shared

    private func failure(_ serve: @escaping @Sendable (RawServer.Connection) -> Void) async throws
        -> HTTPFailure?
    {
        let server = try RawServer(serve)
        let outcome = try await HTTPRequest("GET", server.url).sent(by: client)
        #expect(outcome.errors.count == 1)
        return outcome.failure
    }

    @Test func `a port that nobody listens at refuses`() async throws {
        let port = try RawServer { _ in }.port
        let request = HTTPRequest("GET", "http://127.0.0.1:\(port)")
        try await until("the port's end") {
            try await request.sent(by: client).failure == .unreachable("connection refused")
        }
    }

    @Test func `a name without an address is unknown`() async throws {
        let request = HTTPRequest("GET", "http://nowhere.invalid/")
        #expect(try await request.sent(by: client).failure == .unknownHost)
    }

    @Test func `a connection that is closed in place of an answer is said to be`() async throws {
        #expect(try await failure { _ = $0.request() } == .closed)
    }

    @Test(arguments: [
        "Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf",
    ])
    func `an answer that ends early is cut short`(answer: String) async throws {
        #expect(
            try await failure { connection in
                _ = connection.request()
                connection.write("HTTP/1.1 200 OK\r\n" + answer)
            } == .cutShort)
    }

    @Test func `a connection that breaks is said to have broken, with the system's words`()
        async throws
    {
        #expect(
            try await failure { connection in
                _ = connection.request()
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
                connection.reset()
            } == .broken("connection reset by peer"))
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
    func `a server that falls silent is left`(answer: String) async throws {
        let server = try RawServer { connection in
            _ = connection.request()
            connection.write(answer)
            connection.drain()
        }
        let outcome = try await HTTPRequest("GET", server.url).sent(
            by: client, to: TestReceiver(silence: 300))
        #expect(outcome.failure == .silent)
        #expect(outcome.errors.count == 1)
    }

    @Test func `a server that does not read a body is left`() async throws {
        let server = try RawServer(receiveBufferBytes: 16 << 10) { connection in
            _ = connection.head()
            usleep(3_000_000)
        }
        let request = HTTPRequest("POST", server.url).with {
            $0.body = [UInt8](repeating: 1, count: 5_000_000)
        }
        let outcome = try await request.sent(by: client, to: TestReceiver(silence: 500))
        #expect(outcome.failure == .silent)
    }

    @Test func `a server that accepts and does no more is left, in time`() async throws {
        let server = try RawServer { $0.drain() }
        let request = HTTPRequest("GET", "https://127.0.0.1:\(server.port)")
        #expect(try await request.sent(by: client).failure == .connectTimedOut)
    }

    @Test(arguments: [
        "220 mail.example ESMTP\r\n", "\0\0\0", "<html></html>", "HTTP/9 hello\r\n\r\n",
    ])
    func `what is not HTTP is not read`(bytes: String) async throws {
        let found = try await failure { connection in
            _ = connection.request()
            connection.write(bytes)
            shutdown(connection.socket, Int32(SHUT_WR))
            connection.drain()
        }
        guard case .other = found else {
            Issue.record("\(String(describing: found))")
            return
        }
    }

    @Test(arguments: [
        "A: \(String(repeating: "a", count: 1_000))\r\n", "A: 1\r\n", "a", "A: b\r\n ",
    ])
    func `a header without end is not read to its end`(piece: String) async throws {
        let found = try await failure { connection in
            _ = connection.request()
            connection.write("HTTP/1.1 200 OK\r\n")
            while connection.write(piece) {}
        }
        guard case .other = found else {
            Issue.record("\(String(describing: found))")
            return
        }
    }

    @Test func `provisional answers without end are not read to their end`() async throws {
        let found = try await failure { connection in
            _ = connection.request()
            while connection.write("HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n") {}
        }
        #expect(found == .other("the answer's header is too large"))
    }

    @Test func `a receiver's error ends a request whose answer has no end, and is its reason`()
        async throws
    {
        let server = try RawServer { connection in
            _ = connection.request()
            connection.write("HTTP/1.1 200 OK\r\n\r\n")
            while connection.write(String(repeating: "a", count: 1_000)) {}
        }
        let receiver = TestReceiver(atPiece: { if $0 == 3 { throw Unwanted() } })
        let outcome = try await HTTPRequest("GET", server.url).sent(by: client, to: receiver)
        #expect(outcome.pieces == 3)
        #expect(outcome.errors.count == 1)
        #expect(outcome.errors.first as? Unwanted == Unwanted())
    }

    @Test func `a receiver's error at the head is the reason`() async throws {
        let server = try RawServer { connection in
            _ = connection.request()
            connection.answer()
        }
        let receiver = TestReceiver(atHead: { throw Unwanted() })
        let outcome = try await HTTPRequest("GET", server.url).sent(by: client, to: receiver)
        #expect(outcome.pieces == 0)
        #expect(outcome.errors.count == 1)
        #expect(outcome.errors.first as? Unwanted == Unwanted())
    }

    @Test(arguments: [
        HTTPRequest("GET", "ftp://127.0.0.1/"), HTTPRequest("GET", "http://a:b@127.0.0.1/"),
        HTTPRequest("GET", "http://127.0.0.1/ a"), HTTPRequest("GET", ""),
        HTTPRequest("GET", "http://127.0.0.1\0.example/"), HTTPRequest("GET", "http://"),
        HTTPRequest("GE T", "http://127.0.0.1/"), HTTPRequest("", "http://127.0.0.1/"),
        HTTPRequest("GET", "http://127.0.0.1:99999/"), HTTPRequest("GET", "file:///etc/passwd"),
        HTTPRequest("GET", "http://127.0.0.1/").with { $0.fields = [("a", "b\r\nc: d")] },
        HTTPRequest("GET", "http://127.0.0.1/").with { $0.fields = [("a\n", "b")] },
        HTTPRequest("GET", "http://127.0.0.1/").with { $0.socket = "/tmp/a\0b" },
    ])
    func `a request that cannot be made is not made`(request: HTTPRequest) async throws {
        let outcome = try await request.sent(by: client)
        guard case .other = outcome.failure else {
            Issue.record("\(String(describing: outcome.failure))")
            return
        }
        #expect(outcome.errors.count == 1)
    }

    // MARK: - Kept connections

    @Test func `a request whose kept connection was closed goes once more, on a new one`()
        async throws
    {
        let client = CurlClient(environment: [:])
        let server = try RawServer { connection in
            _ = connection.request()
            connection.answer()
            // The next one finds the connection open, and its end in place of an answer.
            if connection.number == 1 { _ = connection.request() } else { connection.drain() }
        }
        let request = HTTPRequest("POST", server.url).with { $0.body = Array("body".utf8) }
        #expect(try await request.sent(by: client).isComplete)
        #expect(try await request.sent(by: client).isComplete)
        #expect(server.accepted == 2)
        #expect(server.heads.count == 3)
    }

    @Test func `where several kept connections were closed, it goes to a new one, too`()
        async throws
    {
        let client = CurlClient(environment: [:])
        // Answered when all are there: an early one's connection would do for a late one.
        let areFour = DispatchSemaphore(value: 0)
        let server = try RawServer { connection in
            _ = connection.request()
            if connection.number == 4 { for _ in 0..<3 { areFour.signal() } }
            if connection.number < 4 { areFour.wait() }
            connection.answer()
            _ = connection.request()
        }
        let request = HTTPRequest("POST", server.url)
        let receivers = (0..<4).map { _ in TestReceiver() }
        for receiver in receivers { _ = client.begin(request, receiver) }
        for receiver in receivers { #expect(try await receiver.end().isComplete) }
        #expect(server.heads.count == 4)
        #expect(try await request.sent(by: client).isComplete)
        #expect(server.heads.count == 6)
        #expect(server.accepted == 5)
    }

    // MARK: - Cancelling

    @Test func `a request that is cancelled before it began, ends so`() async throws {
        let server = try RawServer { $0.drain() }
        let receiver = TestReceiver()
        client.begin(HTTPRequest("GET", server.url), receiver)()
        #expect(try await receiver.end().failure == .cancelled)
    }

    @Test func `a request that is cancelled ends so, from any thread, and once`() async throws {
        let server = try await StubServer { _ in .init(body: Array("a".utf8), ends: false) }
        let receiver = TestReceiver()
        let cancel = client.begin(HTTPRequest("GET", server.address), receiver)
        try await until("a piece") { receiver.outcome.pieces == 1 }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { cancel() } }
        }
        #expect(try await receiver.end().failure == .cancelled)
        server.send("b")
        #expect(try await HTTPRequest("HEAD", server.address).sent(by: client).head != nil)
        #expect(receiver.outcome.text == "a")
        #expect(receiver.outcome.errors.count == 1)
    }

    @Test func `cancelling after the end changes nothing`() async throws {
        let server = try RawServer { connection in
            while connection.request() != nil { connection.answer() }
        }
        let receiver = TestReceiver()
        let cancel = client.begin(HTTPRequest("GET", server.url), receiver)
        #expect(try await receiver.end().isComplete)
        cancel()
        #expect(try await HTTPRequest("GET", server.url).sent(by: client).isComplete)
        #expect(receiver.outcome.errors.count == 1)
    }

    @Test func `a receiver can cancel its own request`() async throws {
        let server = try RawServer { connection in
            _ = connection.request()
            connection.write("HTTP/1.1 200 OK\r\n\r\n")
            while connection.write(String(repeating: "a", count: 1_000)) {}
        }
        let place = CancelPlace()
        let receiver = TestReceiver(atPiece: { _ in place.cancel() })
        place.set(client.begin(HTTPRequest("GET", server.url), receiver))
        #expect(try await receiver.end().failure == .cancelled)
    }

    @Test func `requests that are cancelled while they end, end once`() async throws {
        let server = try RawServer { connection in
            while connection.request() != nil { connection.answer() }
        }
        for round in 0..<300 {
            let receiver = TestReceiver()
            let cancel = client.begin(HTTPRequest("GET", server.url), receiver)
            usleep(UInt32(round))
            cancel()
            let outcome = try await receiver.end()
            #expect(outcome.errors.count == 1)
            #expect(outcome.isComplete || outcome.failure == .cancelled)
        }
    }

    @Test func `a receiver is freed after the end, even if it keeps what cancels the request`()
        async throws
    {
        let server = try RawServer { connection in
            while connection.request() != nil { connection.answer() }
        }
        weak var freed: TestReceiver?
        do {
            let place = CancelPlace()
            let receiver = TestReceiver(atHead: { _ = place })
            freed = receiver
            place.set(client.begin(HTTPRequest("GET", server.url), receiver))
            #expect(try await receiver.end().isComplete)
        }
        try await until("the end of the receiver") { freed == nil }
    }
}
#endif
