// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityHTTP
internal import UbiquityServer
internal import UbiquityWire

/// A running server on a port of its own, and requests to it.
struct RunningServer: Sendable {
    let folder: TemporaryFolder
    let port: Int
    /// Of the metrics, where the settings ask for them.
    private let metricsPort: Int?
    private let running: Task<Void, any Error>

    static func start(
        in folder: TemporaryFolder? = nil, log: LogRecorder? = nil,
        _ configure: (inout ServerSettings) -> Void = { _ in }
    ) async throws -> RunningServer {
        let folder = try folder ?? TemporaryFolder()
        var settings = ServerSettings(dataFolder: folder.file("data"))
        settings.port = 0
        // The names that raw requests use.
        settings.hostNames = ["a", "b"]
        configure(&settings)
        let (ready, isReady) = AsyncStream.makeStream(of: (Int, Int?).self)
        let running = Task { [settings] in
            defer { isReady.finish() }
            let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            try await runServer(settings, logger: log?.logger ?? silent) {
                isReady.yield(($0.port, $0.metricsPort))
            }
        }
        for await (port, metricsPort) in ready {
            return RunningServer(
                folder: folder, port: port, metricsPort: metricsPort, running: running)
        }
        try await running.value
        throw CancellationError()
    }

    func stop() async throws {
        running.cancel()
        try await running.value
    }

    struct Answer: Sendable {
        var status: Int
        var headers: [String: String]
        var body: [UInt8]

        var text: String { String(decoding: body, as: UTF8.self) }

        func message<M: Message>(_ type: M.Type, _ format: WireFormat = .json) throws -> M {
            try format.decode(type, from: body)
        }

        var problem: WireProblem {
            get throws { try message(WireProblem.self) }
        }
    }

    /// The metrics as Prometheus would get them.
    func metrics() async throws -> String {
        let answer = try await TestAnswer.to("GET", "http://127.0.0.1:\(metricsPort ?? 0)/metrics")
        return String(decoding: try await answer.body, as: UTF8.self)
    }

    /// A request to the port for metrics.
    func sendToMetrics(
        _ method: String = "GET", _ path: String = "/metrics", headers: [String: String]
    ) async throws -> Answer {
        try await Self.send(
            Self.request(
                at: "http://127.0.0.1:\(metricsPort ?? 0)", method, path, credential: nil,
                body: nil,
                headers: headers))
    }

    /// The number of times that a limit was reached.
    func count(of limit: String) async throws -> Int {
        let prefix = "ubiquity_limits_total{limit=\"\(limit)\"} "
        let line = try await metrics().split(separator: "\n").first { $0.hasPrefix(prefix) }
        return Int(line?.dropFirst(prefix.count) ?? "") ?? 0
    }

    func send(
        _ method: String, _ path: String, credential: String? = nil, body: [UInt8]? = nil,
        headers: [String: String] = [:]
    ) async throws -> Answer {
        try await Self.send(
            request(method, path, credential: credential, body: body, headers: headers))
    }

    /// A request through the data folder, as by an operator's command.
    func sendInFolder(
        _ method: String, _ path: String, credential: String? = nil, body: [UInt8]? = nil,
        headers: [String: String] = [:]
    ) async throws -> Answer {
        try await Self.send(
            to: FolderSocket.ofServer(on: folder.file("data")), method, path,
            credential: credential, body: body, headers: headers)
    }

    static func send(
        to socket: FolderSocket, _ method: String, _ path: String, credential: String? = nil,
        body: [UInt8]? = nil, headers: [String: String] = [:]
    ) async throws -> Answer {
        defer { withExtendedLifetime(socket) {} }
        var request = request(
            at: "http://localhost", method, path, credential: credential, body: body,
            headers: headers.merging(["Connection": "close"]) { $1 })
        request.socket = socket.path
        return try await send(request)
    }

    static func send(
        to socket: FolderSocket, _ method: String, _ path: String, _ message: some Message
    ) async throws -> Answer {
        try await send(
            to: socket, method, path, body: WireFormat.json.encode(message),
            headers: ["Content-Type": WireFormat.json.rawValue])
    }

    private static func send(_ request: HTTPRequest) async throws -> Answer {
        let answer = try await TestAnswer.to(request)
        return Answer(
            status: answer.status, headers: answer.headers, body: try await answer.body)
    }

    func send(
        _ method: String, _ path: String, credential: String? = nil, _ message: some Message,
        _ format: WireFormat = .json
    ) async throws -> Answer {
        try await send(
            method, path, credential: credential, body: format.encode(message),
            headers: ["Content-Type": format.rawValue, "Accept": format.rawValue])
    }

    /// Without telling the length before.
    /// - Returns: The status.
    func sendChunks(
        _ method: String, _ path: String, credential: String, chunks: [String]
    ) async throws -> Int {
        let connection = try await RawConnection.open(port)
        defer { connection.close() }
        await connection.send(
            "\(method) \(path) HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(credential)\r\n"
                + "Content-Type: \(WireFormat.protobuf.rawValue)\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for chunk in chunks {
            connection.throwIn("\(String(chunk.utf8.count, radix: 16))\r\n\(chunk)\r\n")
        }
        connection.throwIn("0\r\n\r\n")
        let answer = try await connection.receive("\r\n\r\n")
        return Int(answer.split(separator: " ").dropFirst().first ?? "") ?? 0
    }

    func listen(
        _ device: RunningDevice, since: String? = nil, lastEvent: String? = nil,
        store: String = "notes", accept: String = "text/event-stream"
    ) async throws -> EventReader {
        let query = since.map { "?since=\($0)" } ?? ""
        var headers = ["Accept": accept]
        headers["Last-Event-ID"] = lastEvent
        let request = request(
            "GET", "/v1/stores/\(store)/changes\(query)", credential: device.credential,
            headers: headers)
        return EventReader(try await TestAnswer.to(request))
    }

    /// Opens one stream of several stores.
    func listen(
        _ device: RunningDevice, stores: [WireNewStream.Store],
        accept: String = "text/event-stream", _ format: WireFormat = .json
    ) async throws -> EventReader {
        var message = WireNewStream()
        message.stores = stores
        let request = request(
            "POST", "/v1/changes", credential: device.credential, body: format.encode(message),
            headers: ["Accept": accept, "Content-Type": format.rawValue])
        return EventReader(try await TestAnswer.to(request))
    }

    private func request(
        _ method: String, _ path: String, credential: String?, body: [UInt8]? = nil,
        headers: [String: String]
    ) -> HTTPRequest {
        Self.request(
            at: "http://127.0.0.1:\(port)", method, path, credential: credential, body: body,
            headers: headers)
    }

    private static func request(
        at address: String, _ method: String, _ path: String, credential: String?,
        body: [UInt8]?, headers: [String: String]
    ) -> HTTPRequest {
        var request = HTTPRequest(method, address + path)
        if let credential { request.fields.append(("Authorization", "Bearer \(credential)")) }
        request.fields += headers.map { ($0.key, $0.value) }
        request.body = body
        return request
    }
}

/// Runs a test against a server, and stops it.
func withServer(
    in folder: TemporaryFolder? = nil, _ configure: (inout ServerSettings) -> Void = { _ in },
    _ body: (RunningServer) async throws -> Void
) async throws {
    let server = try await RunningServer.start(in: folder, configure)
    do { try await body(server) } catch {
        try? await server.stop()
        throw error
    }
    try await server.stop()
}

extension TemporaryFolder {
    /// The names of the files in the server's data folder.
    func dataFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: file("data")).filter { $0 != "sockets" }
    }
}
