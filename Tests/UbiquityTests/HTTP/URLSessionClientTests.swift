// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
import ClientTestSupport
import Foundation
import NIOHTTP1
import Testing
import URLSessionHTTP
import UbiquityHTTP

/// The client of Apple's systems, as far as this one can carry it out: without trust of its own.
@Suite struct URLSessionClientTests {
    private let client = URLSessionClient.shared

    @Test func `an answer has its status, its fields and its body`() async throws {
        let server = try await StubServer { request in
            .init("text/plain", status: .notFound, request.body)
        }
        var request = HTTPRequest("POST", server.address + "/a?b=c%2F")
        request.fields = [("authorization", "Bearer x"), ("content-type", "a/b")]
        request.body = Array("hello".utf8)
        let outcome = try await request.sent(by: client)
        #expect(outcome.isComplete)
        #expect(outcome.head?.status == 404)
        #expect(outcome.head?["content-type"] == "text/plain")
        #expect(outcome.text == "hello")
        let heard = try #require(server.requests.first)
        #expect(heard.method == .POST)
        #expect(heard.uri == "/a?b=c%2F")
        #expect(heard.headers["authorization"] == ["Bearer x"])
        #expect(heard.headers["content-type"] == ["a/b"])
    }

    @Test func `a redirect is an answer`() async throws {
        let server = try await StubServer { request in
            var reply = StubServer.Reply(status: .found)
            reply.headers.add(name: "location", value: "/elsewhere")
            reply.headers.add(name: "content-length", value: "0")
            return reply
        }
        let outcome = try await HTTPRequest("GET", server.address).sent(by: client)
        #expect(outcome.head?.status == 302)
        #expect(server.requests.count == 1)
    }

    @Test func `a stream comes in pieces, and its end is its end`() async throws {
        let server = try await StubServer { _ in
            .init(headers: ["content-type": "text/event-stream"], ends: false)
        }
        let receiver = TestReceiver()
        _ = client.begin(HTTPRequest("GET", server.address), receiver)
        try await until("the request") { server.requests.count == 1 }
        for text in ["a", "b", "c"] {
            server.send(text)
            try await until("a piece") { receiver.outcome.text.hasSuffix(text) }
        }
        server.end()
        let outcome = try await receiver.end()
        #expect(outcome.isComplete)
        #expect(outcome.text == "abc")
    }

    @Test func `a receiver's error is the reason of the end`() async throws {
        let server = try await StubServer { _ in
            .init(headers: ["content-type": "a/b"], body: Array("hello".utf8), ends: false)
        }
        let receiver = TestReceiver(atPiece: { _ in throw Unwanted() })
        let outcome = try await HTTPRequest("GET", server.address).sent(by: client, to: receiver)
        #expect(outcome.errors.count == 1)
        #expect(outcome.errors.first is Unwanted)
    }

    @Test func `without a server the connection is refused, and silence has an end`() async throws {
        let server = try await StubServer { _ in nil }
        let silent = TestReceiver(silence: 1_000)
        let outcome = try await HTTPRequest("GET", server.address).sent(by: client, to: silent)
        #expect(outcome.failure == .silent)
        let address = server.address
        try await server.close()
        let refused = try await HTTPRequest("GET", address).sent(by: client)
        #expect(refused.failure == .unreachable("connection refused"))
    }

    @Test func `a request that is cancelled ends so, once`() async throws {
        let server = try await StubServer { _ in nil }
        let receiver = TestReceiver()
        let cancel = client.begin(HTTPRequest("GET", server.address), receiver)
        try await until("the request") { server.requests.count == 1 }
        cancel()
        cancel()
        #expect(try await receiver.end().failure == .cancelled)
        try await Task.sleep(for: .milliseconds(20))
        #expect(receiver.outcome.errors.count == 1)
    }

    @Test func `what this system cannot do is refused`() async throws {
        var request = HTTPRequest("GET", "http://localhost")
        request.socket = "/tmp/none"
        #expect(try await request.sent(by: client).failure != nil)
        request.socket = nil
        request.certificates = "x"
        #expect(try await request.sent(by: client).failure != nil)
        #expect(try await HTTPRequest("GET", "http://[").sent(by: client).failure != nil)
    }
}
#endif
