// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A server in a process of its own, which can be ended and restarted at the same address.
struct DemoServer {
    private let stage: DemoStage
    private var process: Process?
    /// The server ends when this is closed, which happens when this program ends in any way.
    private var input = Pipe()
    private(set) var port = 0

    init(_ stage: DemoStage) { self.stage = stage }

    var url: String { "http://127.0.0.1:\(port)" }
    var data: String { stage.path("server") }

    /// Returns when the server accepts requests.
    mutating func start() async throws {
        input = Pipe()
        let output = Pipe()
        let log = try log()
        process = try stage.start(
            [
                "serve", "--port", "\(port)", "--data", data, "--json", "--log-level", "error",
                "--end-with-input",
            ], input: input, output: output, errors: log)
        port = try await Self.port(from: output.fileHandleForReading)
    }

    /// Ends the server abruptly, as in a power failure, or in good order.
    mutating func end(_ signal: Int32) async throws {
        guard let process else { return }
        kill(process.processIdentifier, signal)
        await Self.exit(of: process)
        self.process = nil
    }

    private func log() throws -> FileHandle {
        let path = stage.path("server.log")
        if !FileManager.default.fileExists(atPath: path) {
            try Data().write(to: URL(fileURLWithPath: path))
        }
        let log = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try log.seekToEnd()
        return log
    }

    @concurrent private static func exit(of process: Process) async { process.waitUntilExit() }

    private struct Ready: Decodable { var port: Int }

    @concurrent private static func port(from output: FileHandle) async throws -> Int {
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let more = output.availableData
            guard !more.isEmpty else { throw Failure(.no, "the server did not start") }
            line += more
        }
        return try JSONDecoder().decode(Ready.self, from: line).port
    }
}
