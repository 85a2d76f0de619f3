// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore
internal import Synchronization

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
        let router = Router()
        router.get("keys") { _, _ in site.answer() }
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { port.yield($0.localAddress?.port ?? 0) },
            logger: Logger(label: "keys") { _ in SwiftLogNoOpLogHandler() })
        let task = Task {
            defer { port.finish() }
            try await application.run()
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

    private func answer() -> Response {
        let content = state.withLock { state in
            state.requests += 1
            return state.content
        }
        guard let content else { return Response(status: .internalServerError) }
        return Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: content)))
    }

    func stop() async throws {
        let task = running.withLock(\.self)
        task?.cancel()
        try? await task?.value
    }
}
