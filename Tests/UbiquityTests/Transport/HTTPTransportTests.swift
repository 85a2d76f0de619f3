// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import NIOHTTP1
import Synchronization
import Testing
import Ubiquity
import UbiquityCore
import UbiquityWire

/// Pushes and pulls, and what each answer of a server means.
struct HTTPTransportTests {
    private let device = DeviceID(rawValue: 0xABCD)

    private func transport(_ server: String) throws -> HTTPTransport {
        HTTPTransport(
            server: server, store: try StoreIdentifier("TEAM.com.example"), credential: "secret",
            device: device)
    }

    private func failure(
        _ body: () async throws(LinkFailure) -> some Sendable
    ) async -> LinkFailure? {
        do throws(LinkFailure) {
            _ = try await body()
            return nil
        } catch { return error }
    }

    @Test(arguments: WireFormat.allCases)
    func `a push goes out in the binary form, and its answer is read in either`(
        form: WireFormat
    ) async throws {
        let answer = PushAnswer(
            cursor: Cursor("7-8")!, serverMilliseconds: 5, results: [.committed([.applied])])
        let server = try await StubServer { _ in
            .init(
                headers: ["content-type": form.rawValue],
                body: form.encode(WirePushAnswer(answer)))
        }
        let write = Record(
            key: try Key("a"), content: .value(.integer(1)),
            stamp: Stamp(HybridTimestamp(milliseconds: 9), device))
        let push = Push([try Transaction([write])])
        #expect(try await transport(server.address).push(push, within: IntakeLimits(nil)) == answer)

        let request = try #require(server.requests.first)
        #expect(request.method == .POST)
        #expect(request.uri == "/v1/stores/TEAM.com.example/changes")
        #expect(request.headers["authorization"] == ["Bearer secret"])
        #expect(request.headers["content-type"] == ["application/x-protobuf"])
        #expect(request.headers["accept"].isEmpty)
        #expect(request.headers["user-agent"].isEmpty)
        let wire = try WireFormat.protobuf.decode(WirePush.self, from: request.body)
        #expect(try Push(wire, author: device) == push)
    }

    @Test(arguments: [1, 2])
    func `what ends without an answer is sent a second time, and no third time`(
        failures: Int
    ) async throws {
        let changes = ChangeSet(
            records: [], cursor: Cursor("2")!, serverMilliseconds: 1, isWhole: true)
        let answer = PushAnswer(cursor: Cursor("2")!, serverMilliseconds: 5, results: [])
        let count = Mutex(0)
        let server = try await StubServer { request in
            var reply = StubServer.Reply()
            if request.method == .POST {
                reply.headers = ["content-type": "application/x-protobuf"]
                reply.body = WireFormat.protobuf.encode(WirePushAnswer(answer))
            } else {
                reply.body = WireFormat.protobuf.encode(WireChanges(changes))
            }
            reply.closes = count.withLock { count in
                count += 1
                return count <= failures
            }
            return reply
        }
        let transport = try transport(server.address)
        let pulled = await failure { () throws(LinkFailure) in
            try await transport.pull(since: nil)
        }
        #expect((pulled == nil) == (failures == 1))
        #expect(server.requests.count == 2)
        count.withLock { $0 = 0 }
        let pushed = await failure { () throws(LinkFailure) in
            try await transport.push(Push([]), within: IntakeLimits(nil))
        }
        #expect((pushed == nil) == (failures == 1))
        #expect(server.requests.count == 4)
    }

    @Test func `a sign-in that ends without an answer is not sent again`() async throws {
        let server = try await StubServer { _ in
            var reply = StubServer.Reply()
            reply.closes = true
            return reply
        }
        let answer = await failure { () throws(LinkFailure) in
            try await AccountClient.signIn(
                server: server.address, by: .code("7KQ2-M9XD-4TRW"), deviceName: "d")
        }
        #expect(answer?.kind == .unreachable)
        #expect(server.requests.count == 1)
    }

    @Test func `a pull names its cursor, escaped`() async throws {
        let changes = ChangeSet(
            records: [try record("a", nil, at: 1 << 20)], cursor: Cursor("2")!,
            serverMilliseconds: 1, isWhole: true)
        let server = try await StubServer { _ in
            .init(body: WireFormat.protobuf.encode(WireChanges(changes)))
        }
        let transport = try transport(server.address + "/")
        #expect(try await transport.pull(since: Cursor("a&b=c%d+/?#")) == changes)
        #expect(try await transport.pull(since: nil) == changes)
        for request in server.requests {
            #expect(request.headers.first(name: "user-agent")?.hasPrefix("ubiquity/") == true)
        }
        #expect(
            server.requests.map(\.uri) == [
                "/v1/stores/TEAM.com.example/changes?since=a%26b%3Dc%25d%2B%2F%3F%23",
                "/v1/stores/TEAM.com.example/changes",
            ])
    }

    @Test(
        arguments: [
            (401, "credential-invalid", 0, nil, LinkFailure.Kind.unauthorized),
            (401, "credential-expired", 0, nil, .unauthorized),
            (400, "malformed", 0, nil, .refused), (403, "not-yours", 0, nil, .refused),
            (404, "not-found", 0, nil, .refused),
            (413, "", 0, nil, .tooLarge), (413, "body-too-large", 0, nil, .tooLarge),
            (413, "too-many", 0, nil, .refused),
            (415, "unsupported-media-type", 0, nil, .refused), (422, "else", 0, nil, .refused),
            (409, "clock-ahead", 77, nil, .clockAhead(serverMilliseconds: 77)),
            (409, "else", 77, nil, .refused),
            (410, "cursor-other-history", 0, nil, .cursorGone(isOtherHistory: true)),
            (410, "cursor-forgotten", 0, nil, .cursorGone(isOtherHistory: false)),
            (429, "", 0, "2", .busy(retryAfterMilliseconds: 2_000)),
            (429, "", 0, nil, .busy(retryAfterMilliseconds: 1_000)),
            (503, "", 0, "0.5", .busy(retryAfterMilliseconds: 500)),
            (503, "", 0, "-1", .busy(retryAfterMilliseconds: 5_000)),
            (507, "", 0, "1e300", .busy(retryAfterMilliseconds: 3_600_000)),
            (500, "", 0, nil, .unreachable),
            (502, "", 0, nil, .unreachable),
        ] as [(Int, String, UInt64, String?, LinkFailure.Kind)])
    func `each status has its meaning, and the problem's detail is the sentence`(
        _ status: Int, _ code: String, _ milliseconds: UInt64, _ retryAfter: String?,
        _ kind: LinkFailure.Kind
    ) async throws {
        var problem = WireProblem()
        problem.detail = "What is wrong."
        problem.code = code
        if !code.isEmpty { problem.type = "urn:ubiquity:problem:\(code)" }
        problem.serverMilliseconds = milliseconds
        let body = WireFormat.json.encode(problem)
        let server = try await StubServer { _ in
            var reply = StubServer.Reply(status: .init(statusCode: status), body: body)
            reply.headers.add(name: "content-type", value: "application/problem+json")
            if let retryAfter { reply.headers.add(name: "retry-after", value: retryAfter) }
            return reply
        }
        let transport = try transport(server.address)
        var expected = LinkFailure(kind, "What is wrong")
        expected.code = ProblemCode(rawValue: code)?.rawValue
        #expect(
            await failure { () throws(LinkFailure) in try await transport.pull(since: nil) }
                == expected)
        #expect(
            await failure { () throws(LinkFailure) in
                try await transport.listen(since: nil, within: IntakeLimits(nil)) { _ in }
            }
                == expected)
        #expect(server.requests.count == 2)
    }

    @Test(
        arguments: [
            (302, "text/html", ""), (401, "text/html", "<p>Please sign in"), (403, "", ""),
            (404, "text/plain", "no route"), (410, "", ""),
            (401, "application/problem+json", #"{"code": "unauthorized", "detail": "No."}"#),
            (200, "text/html", "<p>Welcome"), (200, "text/html", ""), (200, "", ""),
        ])
    func `what something in front of the server answers is tried again, and says nothing of it`(
        _ status: Int, _ type: String, _ body: String
    ) async throws {
        let server = try await StubServer { _ in
            var reply = StubServer.Reply(
                status: .init(statusCode: status), body: [UInt8](body.utf8))
            reply.headers.remove(name: "content-type")
            if !type.isEmpty { reply.headers.add(name: "content-type", value: type) }
            if status == 302 { reply.headers.add(name: "location", value: "/elsewhere") }
            return reply
        }
        let transport = try transport(server.address)
        let account = SignedInAccount(
            server: server.address, account: "42", accountName: "Ada", device: "00ff",
            deviceName: "desk", credential: "secret")
        let push = Push([try Transaction([try record("a", nil, at: 1 << 20)])])
        let failures = [
            await failure { () throws(LinkFailure) in try await transport.pull(since: nil) },
            await failure { () throws(LinkFailure) in
                try await transport.push(push, within: IntakeLimits(nil))
            },
            await failure { () throws(LinkFailure) in
                try await transport.listen(since: nil, within: IntakeLimits(nil)) { _ in }
            },
            await failure { () throws(LinkFailure) in try await AccountClient.signOut(account) },
        ]
        for failure in failures {
            #expect(failure?.kind == .unreachable)
            #expect(failure?.code == nil)
            #expect(
                failure?.detail.hasPrefix(
                    "something other than the Ubiquity server answered at \(server.address) "
                        + "(\(status) ") == true, "\(failure?.detail ?? "")")
        }
    }

    @Test func `a refusal is understood, however long the page that comes with it`() async throws {
        let server = try await StubServer { _ in
            var reply = StubServer.Reply(
                status: .tooManyRequests, body: Array(repeating: UInt8(ascii: "x"), count: 100_000))
            reply.headers.add(name: "content-type", value: "text/html")
            reply.headers.add(name: "retry-after", value: "7")
            return reply
        }
        let transport = try transport(server.address)
        let failure = await failure { () throws(LinkFailure) in try await transport.pull(since: nil)
        }
        #expect(failure?.kind == .busy(retryAfterMilliseconds: 7_000))
    }

    @Test func `without a server the sentence says where none answers and why`() async throws {
        let server = try await StubServer { _ in nil }
        let address = server.address
        try await server.close()
        let transport = try transport(address)
        let failure = await failure { () throws(LinkFailure) in try await transport.pull(since: nil)
        }
        #expect(
            failure
                == LinkFailure(.unreachable, "no server answers at \(address) (connection refused)")
        )
    }

    @Test(arguments: [
        "", "example.org", "ftp://example.org", "http://", "http://a:b@c", "unix:///x",
    ])
    func `a text that is not an address is reported as such`(_ text: String) async throws {
        let transport = try transport(text)
        let failure = await failure { () throws(LinkFailure) in try await transport.pull(since: nil)
        }
        #expect(failure?.kind == .refused)
        #expect(failure?.detail.contains("\"\(text)\"") == true)
    }

    @Test func `an answer that cannot be read does not count as one`() async throws {
        let server = try await StubServer { _ in .init(body: Array("<html>".utf8)) }
        let transport = try transport(server.address)
        let failure = await failure { () throws(LinkFailure) in try await transport.pull(since: nil)
        }
        #expect(failure?.kind == .unreachable)
    }

    @Test func `an answer larger than allowed is given up`() async throws {
        let server = try await StubServer { _ in
            .init(headers: ["content-length": "67108865"], ends: false)
        }
        let transport = try transport(server.address)
        let failure = await failure { () throws(LinkFailure) in try await transport.pull(since: nil)
        }
        #expect(failure?.kind == .unreachable)
    }

    @Test func `a cancelled request ends at once`() async throws {
        let server = try await StubServer { _ in nil }
        let transport = try transport(server.address)
        let task = Task {
            await failure { () throws(LinkFailure) in try await transport.pull(since: nil) }
        }
        while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        task.cancel()
        #expect(await task.value?.kind == .unreachable)
    }
}
