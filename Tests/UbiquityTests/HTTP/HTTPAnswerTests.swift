// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
import ClientTestSupport
import Foundation
import Testing
import UbiquityHTTP

/// Requests that are answered.
@Suite struct HTTPAnswerTests {
    private let client = CurlClient.shared

    @Test func `an answer has its status, its reason, its fields in order and its body`()
        async throws
    {
        let server = try RawServer { connection in
            _ = connection.request()
            connection.write(
                "HTTP/1.1 404 Not Here\r\nB: 1\r\nA:  2 \r\nB:\r\nContent-Length: 5\r\n\r\nhello")
        }
        let outcome = try await HTTPRequest("GET", server.url + "/a").sent(by: client)
        #expect(outcome.isComplete)
        #expect(outcome.head?.status == 404)
        #expect(outcome.head?.reason == "Not Here")
        #expect(outcome.head?.fields.map(\.name) == ["B", "A", "B", "Content-Length"])
        #expect(outcome.head?.fields.map(\.value) == ["1", "2", "", "5"])
        #expect(outcome.head?["content-length"] == "5")
        #expect(outcome.text == "hello")
    }

    @Test func `a request has the fields that it was given, and no others`() async throws {
        let server = try RawServer { connection in
            while connection.request() != nil { connection.answer() }
        }
        var request = HTTPRequest("PUT", server.url + "/v1/../%2F?q=1")
        request.fields = [("accept", "a/b"), ("x-empty", ""), ("authorization", "Bearer ü")]
        request.body = Array("body".utf8)
        #expect(try await request.sent(by: client).isComplete)
        #expect(
            server.heads.first?.split(separator: "\r\n").map(String.init) == [
                "PUT /v1/../%2F?q=1 HTTP/1.1", "Host: 127.0.0.1:\(server.port)", "accept: a/b",
                "x-empty:", "authorization: Bearer ü", "Content-Length: 4",
            ])
    }

    @Test(arguments: ["GET", "DELETE", "HEAD", "POST", "PATCH", "PUT"])
    func `a request without a body says so where one is expected`(method: String) async throws {
        let server = try RawServer { connection in
            _ = connection.request()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            if method != "HEAD" { connection.write("ok") }
        }
        let outcome = try await HTTPRequest(method, server.url).sent(by: client)
        #expect(outcome.isComplete)
        #expect(outcome.text == (method == "HEAD" ? "" : "ok"))
        let head = try #require(server.heads.first)
        #expect(head.hasPrefix("\(method) / HTTP/1.1\r\n"))
        #expect(head.contains("Content-Length: 0") == ["POST", "PATCH", "PUT"].contains(method))
    }

    @Test func `a body comes in pieces, as the server sends it`() async throws {
        let server = try await StubServer { _ in .init(body: [], ends: false) }
        let receiver = TestReceiver()
        let cancel = client.begin(HTTPRequest("GET", server.address), receiver)
        try await until("the head") { receiver.outcome.head != nil }
        for (index, piece) in ["a", "b", "c"].enumerated() {
            server.send(piece)
            try await until("the piece") { receiver.outcome.pieces == index + 1 }
        }
        server.end()
        let outcome = try await receiver.end()
        #expect(outcome.isComplete)
        #expect(outcome.text == "abc")
        cancel()
    }

    @Test func `a provisional answer and the fields after a body are ignored`() async throws {
        let server = try RawServer { connection in
            _ = connection.request()
            connection.write(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n"
                    + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: 1\r\n\r\n"
            )
        }
        let outcome = try await HTTPRequest("GET", server.url).sent(by: client)
        #expect(outcome.isComplete)
        #expect(outcome.head?.status == 200)
        #expect(outcome.head?["link"] == nil)
        #expect(outcome.head?["x"] == nil)
        #expect(outcome.text == "ok")
    }

    @Test func `a redirect is an answer`() async throws {
        let server = try RawServer { connection in
            _ = connection.request()
            connection.write("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n")
            connection.drain()
        }
        let outcome = try await HTTPRequest("GET", server.url).sent(by: client)
        #expect(outcome.head?.status == 302)
        #expect(server.heads.count == 1)
    }

    @Test func `requests one after the other share a connection, unless repeating does harm`()
        async throws
    {
        // Others would compete for the connections that are kept.
        let client = CurlClient(environment: [:])
        let server = try RawServer { connection in
            while connection.request() != nil { connection.answer() }
        }
        let request = HTTPRequest("POST", server.url)
        for _ in 0..<3 { #expect(try await request.sent(by: client).isComplete) }
        #expect(server.accepted == 1)
        let once = request.with { $0.isIdempotent = false }
        for _ in 0..<2 { #expect(try await once.sent(by: client).isComplete) }
        #expect(server.accepted == 3)
    }

    @Test func `two hundred requests run at once`() async throws {
        let server = try await StubServer { _ in .init(body: [], ends: false) }
        let receivers = (0..<200).map { _ in TestReceiver() }
        for (index, receiver) in receivers.enumerated() {
            _ = client.begin(HTTPRequest("GET", server.address + "/\(index)"), receiver)
        }
        try await until("all heads") { receivers.allSatisfy { $0.outcome.head != nil } }
        server.send("ok")
        server.end()
        for receiver in receivers { #expect(try await receiver.end().text == "ok") }
        #expect(Set(server.requests.map(\.uri)).count == 200)
    }

    @Test func `a long answer arrives unchanged`() async throws {
        let text = String((0..<2_000_000).map { Character(UnicodeScalar(UInt8(33 + $0 % 90))) })
        let server = try RawServer { connection in
            _ = connection.request()
            connection.answer(text)
        }
        let outcome = try await HTTPRequest("GET", server.url).sent(by: client)
        #expect(outcome.isComplete)
        #expect(outcome.text == text)
    }

    @Test func `a request goes to a Unix domain socket, on a connection of its own`() async throws {
        let folder = try TemporaryFolder()
        let server = try RawServer(path: folder.file("socket")) { connection in
            while connection.request() != nil { connection.answer() }
        }
        let request = HTTPRequest("GET", "http://localhost/a").with {
            $0.socket = folder.file("socket")
        }
        for _ in 0..<2 { #expect(try await request.sent(by: client).text == "ok") }
        #expect(server.accepted == 2)
        #expect(server.heads.first?.hasPrefix("GET /a HTTP/1.1\r\nHost: localhost\r\n") == true)
        let absent = request.with { $0.socket = folder.file("absent") }
        #expect(
            try await absent.sent(by: client).failure == .unreachable("no such file or directory"))
        let long = request.with { $0.socket = folder.file(String(repeating: "a", count: 200)) }
        #expect(try await long.sent(by: client).failure == .unreachable("file name too long"))
    }

    @Test func `a body that a slow server reads is not silence`() async throws {
        let server = try RawServer(receiveBufferBytes: 16 << 10) { connection in
            guard connection.head() != nil else { return }
            var left = 2_000_000
            var sinceRest = 0
            while left > 0, case let count = connection.read(16 << 10).count, count > 0 {
                left -= count
                sinceRest += count
                if sinceRest > 100_000 {
                    usleep(400_000)
                    sinceRest = 0
                }
            }
            connection.answer()
        }
        let request = HTTPRequest("POST", server.url).with {
            $0.body = [UInt8](repeating: 1, count: 2_000_000)
        }
        // Less than the server takes in all, but more than its rests.
        let receiver = TestReceiver(silence: 5_000)
        let outcome = try await request.sent(by: client, to: receiver)
        #expect(outcome.isComplete)
        #expect(outcome.text == "ok")
    }

    @Test(arguments: [false, true])
    func `an answer before the end of the request is taken`(closes: Bool) async throws {
        let server = try RawServer(receiveBufferBytes: 16 << 10) { connection in
            guard connection.head() != nil else { return }
            connection.answer("too large", status: "413 Content Too Large")
            if closes { shutdown(connection.socket, Int32(SHUT_WR)) }
            connection.drain()
        }
        let request = HTTPRequest("POST", server.url).with {
            $0.body = [UInt8](repeating: 1, count: 5_000_000)
        }
        let outcome = try await request.sent(by: client)
        #expect(outcome.isComplete)
        #expect(outcome.head?.status == 413)
        #expect(outcome.text == "too large")
    }

    @Test func `a receiver that is told of the end begins another request`() async throws {
        let client = CurlClient(environment: [:])
        let server = try RawServer { connection in
            while connection.request() != nil { connection.answer() }
        }
        let second = TestReceiver()
        let request = HTTPRequest("GET", server.url)
        let first = TestReceiver(atEnd: { _ = client.begin(request, second) })
        #expect(try await request.sent(by: client, to: first).isComplete)
        #expect(try await second.end().isComplete)
        #expect(server.accepted == 1)
    }
}
#endif
