// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import NIOHTTP1
import Synchronization
import Testing
import UbiquityCore
import UbiquityWire

@testable import Ubiquity

/// The streams of a process's stores, on the way to a server.
struct StreamPoolTests {
    /// What a store's listener has been told.
    private final class Hearer: Sendable {
        let cursors = Mutex<[String]>([])
        let end = Mutex<LinkFailure??>(nil)
        let cancel: @Sendable () -> Void

        init(_ store: String, at server: StubServer, credential: String = "secret") throws {
            let transport = HTTPTransport(
                server: server.address, store: try StoreIdentifier(store), credential: credential,
                device: DeviceID(rawValue: 1))
            // The closures are made before this object has its constant.
            let box = Box()
            cancel = transport.listen(since: nil, isSaved: false, within: IntakeLimits(nil)) {
                if case .changes(let changes) = $0 {
                    box.hearer?.cursors.withLock { $0.append(changes.cursor.text) }
                }
            } ended: { failure in
                box.hearer?.end.withLock { $0 = .some(failure) }
            }
            box.hearer = self
        }

        /// Unchecked: written once, before anything comes.
        private final class Box: @unchecked Sendable { weak var hearer: Hearer? }

        var heard: [String] { cursors.withLock(\.self) }
    }

    /// Each stream has brought its stores to revision 5.
    private func server(knowsSeveral: Bool = true) async throws -> StubServer {
        try await StubServer { request in
            guard request.method == .GET || knowsSeveral else {
                var problem = WireProblem()
                (problem.code, problem.status) = (ProblemCode.notFound.rawValue, 404)
                problem.detail = "There is nothing here."
                return .init(
                    "application/problem+json", status: .notFound, WireFormat.json.encode(problem))
            }
            let stores = (try? Self.stores(request).map(\.identifier)) ?? []
            let body = request.method == .GET ? Self.ready() : stores.map(Self.ready).joined()
            return .init(
                headers: ["content-type": "text/event-stream"], body: Array(body.utf8), ends: false)
        }
    }

    private static func stores(_ request: StubServer.Request) throws -> [WireNewStream.Store] {
        try WireFormat.protobuf.decode(WireNewStream.self, from: request.body).stores
    }

    private static func ready(_ store: String = "") -> String {
        var ready = WireReady()
        (ready.cursor, ready.store) = ("1-5", store)
        ready.config = WireConfig(
            ServerConfig(
                serverMilliseconds: 3, limits: StoreLimits(), allowance: Allowance(),
                deletionsRememberedSeconds: 1))
        let data = String(decoding: WireFormat.json.encode(ready), as: UTF8.self)
        return "event: ready\ndata: \(data)\n\n"
    }

    private func changes(_ number: Int, of store: String?) throws -> String {
        let changes = ChangeSet(
            records: [], cursor: Cursor("1-\(number)")!, serverMilliseconds: 3, isWhole: false)
        let wire = WireChanges(changes, of: try store.map { try StoreIdentifier($0) })
        let data = String(decoding: WireFormat.json.encode(wire), as: UTF8.self)
        return "event: changes\ndata: \(data)\n\n"
    }

    /// Waits until the stores have a stream in common.
    private func shared(_ count: Int, at server: StubServer) async throws -> StubServer.Request {
        try await until("a shared stream") { server.requests.contains { $0.method == .POST } }
        let request = try #require(server.requests.last { $0.method == .POST })
        #expect(try Self.stores(request).count == count)
        return request
    }

    @Test func `two stores share a stream, which goes on where each of them was`() async throws {
        let server = try await server()
        let a = try Hearer("a", at: server)
        let b = try Hearer("b", at: server)
        let request = try await shared(2, at: server)
        #expect(request.uri == "/v1/changes")
        #expect(request.headers["accept"] == ["text/event-stream;events=binary"])
        #expect(try Set(Self.stores(request).map(\.identifier)) == ["a", "b"])
        #expect(try Self.stores(request).map(\.since) == ["1-5", "1-5"])
        #expect(try Self.stores(request).allSatisfy { $0.hasSaved && !$0.saved })
        server.send(try changes(6, of: "b"))
        server.send(try changes(7, of: "a"))
        try await until("both changes") { a.heard == ["1-7"] && b.heard == ["1-6"] }
        #expect(server.requests.filter { $0.method == .GET }.count == 2)
        #expect(a.end.withLock(\.self) == nil)
        a.cancel()
        b.cancel()
    }

    @Test func `a store ends alone, and the end of the connection is that of the others`()
        async throws
    {
        let server = try await server()
        let hearers = try ["a", "b", "c"].map { try Hearer($0, at: server) }
        _ = try await shared(3, at: server)
        var problem = WireProblem()
        (problem.code, problem.status, problem.store) = ("cursor-other-history", 410, "b")
        problem.detail = "It is another one."
        let data = String(decoding: WireFormat.json.encode(problem), as: UTF8.self)
        server.send("event: ended\ndata: \(data)\n\n")
        try await until("an end") { hearers[1].end.withLock(\.self) != nil }
        #expect(hearers[1].end.withLock(\.self)??.kind == .cursorGone(isOtherHistory: true))
        #expect(hearers[0].end.withLock(\.self) == nil)
        server.end()
        try await until("the other ends") { hearers.allSatisfy { $0.end.withLock(\.self) != nil } }
        #expect(hearers[2].end.withLock(\.self) == .some(nil))
    }

    @Test func `with a server that knows only streams of one store each has its own again`()
        async throws
    {
        let server = try await server(knowsSeveral: false)
        let hearers = try ["a", "b", "c"].map { try Hearer($0, at: server) }
        try await until("two streams of each") {
            server.requests.filter { $0.method == .GET }.count >= 6
        }
        #expect(server.requests.suffix(3).allSatisfy { $0.uri.contains("since=1-5") })
        server.send(try changes(6, of: nil))
        try await until("a change for each") { hearers.allSatisfy { $0.heard.contains("1-6") } }
        #expect(hearers.allSatisfy { $0.end.withLock(\.self) == nil })
        for hearer in hearers { hearer.cancel() }
    }

    /// As behind a proxy that allows a request a few seconds.
    @Test func `a shared stream that broke is not followed by another at once`() async throws {
        let server = try await server()
        let first = try ["a", "b"].map { try Hearer($0, at: server) }
        _ = try await shared(2, at: server)
        server.send(try changes(6, of: "a"))
        try await until("the change") { first[0].heard == ["1-6"] }
        let begun = ContinuousClock.now
        server.end()
        try await until("the ends") { first.allSatisfy { $0.end.withLock(\.self) != nil } }
        let second = try ["a", "b"].map { try Hearer($0, at: server) }
        try await until("a second one") {
            server.requests.filter { $0.method == .POST }.count == 2
        }
        #expect(ContinuousClock.now - begun > .milliseconds(1_900))
        for hearer in second { hearer.cancel() }
    }

    @Test func `an event that names no store of the stream ends it for all`() async throws {
        let server = try await server()
        let hearers = try ["a", "b"].map { try Hearer($0, at: server) }
        _ = try await shared(2, at: server)
        server.send(try changes(6, of: "a"))
        try await until("the change") { hearers[0].heard == ["1-6"] }
        server.send(try changes(7, of: nil))
        try await until("the ends") { hearers.allSatisfy { $0.end.withLock(\.self) != nil } }
    }

    @Test func `devices of two accounts share none`() async throws {
        let server = try await server()
        let of = try [("x", "a"), ("y", "a"), ("y", "b")].map {
            try Hearer($0.1, at: server, credential: $0.0)
        }
        let request = try await shared(2, at: server)
        #expect(request.headers["authorization"] == ["Bearer y"])
        for hearer in of { hearer.cancel() }
    }
}
