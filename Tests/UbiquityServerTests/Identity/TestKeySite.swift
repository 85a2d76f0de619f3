// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

@testable internal import UbiquityServer

/// Where an identity provider publishes its keys.
final class TestKeySite: Sendable {
    private struct State {
        var content: String?
        var requests = 0
    }

    private let state: Mutex<State>
    private let running = Mutex<Task<Void, any Error>?>(nil)
    private let port = Mutex(0)

    private init(_ content: String) { state = Mutex(State(content: content)) }

    static func start(_ content: String) async throws -> TestKeySite {
        let site = TestKeySite(content)
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let edge = Edge(
            ServerSettings(dataFolder: ""), tls: nil, metrics: ServerMetrics(), logger: .off)
        let acceptor = Acceptor(
            address: .hostname("127.0.0.1", port: 0), connectionsMax: 16,
            channel: EdgeChannel(edge: edge) { $0.answer(site.answer()) },
            onReady: { port.yield($0) })
        let task = Task {
            defer { port.finish() }
            try await acceptor.run()
        }
        site.running.withLock { $0 = task }
        for await number in ports {
            site.port.withLock { $0 = number }
            return site
        }
        try await task.value
        throw CancellationError()
    }

    var address: String { "http://127.0.0.1:\(port.withLock(\.self))/keys" }
    var requests: Int { state.withLock(\.requests) }

    /// Nil: it answers that it is broken.
    var content: String? {
        get { state.withLock(\.content) }
        set { state.withLock { $0.content = newValue } }
    }

    private func answer() -> Answer {
        let content = state.withLock { state in
            state.requests += 1
            return state.content
        }
        guard let content else { return Answer(.internalServerError) }
        return Answer(
            headers: ["Content-Type": "application/json"], body: ByteBuffer(string: content))
    }

    func stop() async throws {
        let task = running.withLock(\.self)
        task?.cancel()
        try? await task?.value
    }
}
