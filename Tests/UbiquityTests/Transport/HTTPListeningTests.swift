// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import NIOHTTP1
import Synchronization
import Testing
import Ubiquity
import UbiquityCore
import UbiquityWire

/// A stream of changes, as a server sends it.
struct HTTPListeningTests {
    private final class Heard: Sendable {
        private let events = Mutex<[StreamMessage]>([])

        var all: [StreamMessage] { events.withLock { $0 } }

        func append(_ event: StreamMessage) { events.withLock { $0.append(event) } }
    }

    private struct Listener {
        let heard = Heard()
        let signal = Signal()
        let task: Task<LinkFailure?, Never>

        /// - Parameter server: Where, and from when on.
        init(_ server: StubServer, since cursor: Cursor? = nil) throws {
            let transport = HTTPTransport(
                server: server.address, store: try StoreIdentifier("a"), credential: "secret",
                device: DeviceID(rawValue: 1))
            task = Task { [heard, signal] in
                do throws(LinkFailure) {
                    try await transport.listen(since: cursor, within: IntakeLimits(nil)) { event in
                        if event == .progress { return }
                        heard.append(event)
                        signal.fire()
                    }
                    return nil
                } catch { return error }
            }
        }
    }

    private func server() async throws -> StubServer {
        try await StubServer { _ in
            .init(
                headers: ["content-type": "text/event-stream; charset=utf-8"],
                body: Array(": hello\n\n".utf8), ends: false)
        }
    }

    private func event(_ name: String, _ data: [UInt8]) -> String {
        "event: \(name)\ndata: \(String(decoding: data, as: UTF8.self))\n\n"
    }

    private func changes(_ number: Int) throws -> ChangeSet {
        ChangeSet(
            records: [try record("k\(number)", .real(.nan), at: 1 << 20)],
            cursor: Cursor("1-\(number)")!, serverMilliseconds: 3, isWhole: false)
    }

    private func text(_ changes: ChangeSet) -> String {
        event("changes", WireFormat.json.encode(WireChanges(changes)))
    }

    @Test func `events arrive in their order, the unknown are passed over`() async throws {
        let server = try await server()
        let listener = try Listener(server, since: Cursor("1-0"))
        try await wait { server.requests.count == 1 }
        var ready = WireReady()
        ready.cursor = "1-2"
        let config = ServerConfig(
            serverMilliseconds: 4, limits: StoreLimits(), allowance: Allowance(burst: 3),
            deletionsRememberedSeconds: 5, keepAliveSeconds: 6)
        ready.config = WireConfig(config)
        for number in 1...2 { server.send(text(try changes(number))) }
        server.send(event("ready", WireFormat.json.encode(ready)) + ": alive\n\n")
        server.send("event: news\ndata: x\n\nevent: resync\ndata: {}\n\n")
        try await listener.signal.wait(times: 4)
        #expect(
            listener.heard.all == [
                .changes(try changes(1)), .changes(try changes(2)), .ready(Cursor("1-2")!, config),
                .resync,
            ])
        server.end()
        #expect(await listener.task.value == nil)

        let request = try #require(server.requests.first)
        #expect(request.uri == "/v1/stores/a/changes?since=1-0")
        #expect(request.headers["accept"] == ["text/event-stream;events=binary"])
        #expect(request.headers["authorization"] == ["Bearer secret"])
    }

    @Test func `an event that arrives in pieces is handed on when it is whole`() async throws {
        let server = try await server()
        let listener = try Listener(server)
        try await wait { server.requests.count == 1 }
        let text = text(try changes(1))
        for piece in text.dropLast() {
            server.send(String(piece))
        }
        try await Task.sleep(for: .milliseconds(20))
        #expect(!listener.signal.hasFired)
        server.send("\n")
        try await listener.signal.wait()
        listener.task.cancel()
    }

    @Test func `a cancelled listener ends at once and hears no more`() async throws {
        let server = try await server()
        let listener = try Listener(server)
        server.send(text(try changes(1)))
        try await wait { server.requests.count == 1 }
        server.send(text(try changes(1)))
        try await listener.signal.wait()
        listener.task.cancel()
        #expect(await listener.task.value?.kind == .unreachable)
        let heard = listener.signal.times
        server.send(text(try changes(2)))
        try await Task.sleep(for: .milliseconds(30))
        #expect(listener.signal.times == heard)
    }

    @Test func `a stream that is cut off is broken`() async throws {
        let server = try await server()
        let listener = try Listener(server)
        try await wait { server.requests.count == 1 }
        server.send("data: half")
        server.cut()
        let failure = await listener.task.value
        #expect(failure?.kind == .unreachable)
        #expect(
            failure?.detail
                == "the server at \(server.address) closed the connection in the middle of an "
                + "answer")
    }

    @Test func `an event that means nothing breaks the stream`() async throws {
        let server = try await server()
        let listener = try Listener(server)
        try await wait { server.requests.count == 1 }
        server.send("event: changes\ndata: {\"cursor\": \"\"}\n\n")
        #expect(await listener.task.value?.kind == .unreachable)
    }

    @Test func `an answer that is not a stream is not from a Ubiquity server`() async throws {
        let server = try await StubServer { _ in
            .init(headers: ["content-type": "text/html"], body: Array("data: x\n\n".utf8))
        }
        let listener = try Listener(server)
        #expect(await listener.task.value?.kind == .unreachable)
        #expect(!listener.signal.hasFired)
    }

    private func wait(_ condition: () -> Bool) async throws {
        while !condition() { try await Task.sleep(for: .milliseconds(2)) }
        // The head of the answer follows the note of the request.
        try await Task.sleep(for: .milliseconds(5))
    }
}
