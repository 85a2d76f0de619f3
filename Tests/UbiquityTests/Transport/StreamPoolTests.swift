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

    private func server(knowsSeveral: Bool = true) async throws -> StubServer {
        try await StubServer { request in
            guard request.method == .GET || knowsSeveral else {
                var problem = WireProblem()
                (problem.code, problem.status) = (ProblemCode.notFound.rawValue, 404)
                problem.detail = "There is nothing here."
                return .init(
                    "application/problem+json", status: .notFound, WireFormat.json.encode(problem))
            }
            return .init(headers: ["content-type": "text/event-stream"], ends: false)
        }
    }

    private func stores(_ request: StubServer.Request) throws -> [WireNewStream.Store] {
        try WireFormat.protobuf.decode(WireNewStream.self, from: request.body).stores
    }

    private func changes(_ number: Int, of store: String?) throws -> String {
        let changes = ChangeSet(
            records: [], cursor: Cursor("1-\(number)")!, serverMilliseconds: 3, isWhole: false)
        let wire = WireChanges(changes, of: try store.map { try StoreIdentifier($0) })
        let data = String(decoding: WireFormat.json.encode(wire), as: UTF8.self)
        return "event: changes\ndata: \(data)\n\n"
    }

    @Test func `two stores share a stream, which goes on where each of them was`() async throws {
        let server = try await server()
        let a = try Hearer("a", at: server)
        try await until("a stream") { server.requests.count == 1 }
        server.send(try changes(5, of: nil))
        try await until("a change") { a.heard == ["1-5"] }
        let b = try Hearer("b", at: server)
        try await until("a stream for both") { server.requests.count == 2 }
        let request = server.requests[1]
        #expect(request.method == .POST)
        #expect(request.uri == "/v1/changes")
        #expect(request.headers["accept"] == ["text/event-stream;events=binary"])
        #expect(try stores(request).map(\.identifier) == ["a", "b"])
        #expect(try stores(request).map(\.since) == ["1-5", ""])
        #expect(try stores(request).allSatisfy { $0.hasSaved && !$0.saved })
        server.send(try changes(6, of: "b"))
        server.send(try changes(7, of: "a"))
        try await until("both changes") { a.heard == ["1-5", "1-7"] && b.heard == ["1-6"] }
        #expect(a.end.withLock(\.self) == nil)
        a.cancel()
        b.cancel()
    }

    @Test func `a store ends alone, and the end of the connection is that of the others`()
        async throws
    {
        let server = try await server()
        let hearers = try ["a", "b", "c"].map { try Hearer($0, at: server) }
        try await until("a stream for all") {
            guard let request = server.requests.last, request.method == .POST else { return false }
            return try stores(request).count == 3
        }
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

    @Test func `a server that knows only streams of one store is asked for those`() async throws {
        let server = try await server(knowsSeveral: false)
        let hearers = try ["a", "b", "c"].map { try Hearer($0, at: server) }
        try await until("a stream for each") {
            Set(server.requests.filter { $0.method == .GET }.map(\.uri)).count == 3
        }
        #expect(server.requests.filter { $0.method == .POST }.count == 1)
        #expect(hearers.allSatisfy { $0.end.withLock(\.self) == nil })
        for hearer in hearers { hearer.cancel() }
    }

    @Test func `devices of two accounts share none`() async throws {
        let server = try await server()
        let hearers = try ["x", "y"].map { try Hearer("a", at: server, credential: $0) }
        try await until("a stream for each") { server.requests.count == 2 }
        #expect(server.requests.allSatisfy { $0.method == .GET })
        for hearer in hearers { hearer.cancel() }
    }
}
