// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// What a stage has on the disk. It is gone with the program.
enum StageFolder {
    /// The same after the program has started again.
    static let path: String = {
        let known = ProcessInfo.processInfo.environment[variable] ?? ""
        // What is removed in the end must be the stage's own.
        return known.contains(prefix) ? known : new()
    }()

    static func remove() { try? FileManager.default.removeItem(atPath: path) }

    private static func new() -> String {
        let folder = NSTemporaryDirectory() + prefix + UUID().uuidString
        setenv(variable, folder, 1)
        return folder
    }

    private static let prefix = "/ubiquity-example-"
    private static let variable = "UBIQUITY_EXAMPLE_STAGE"
}

/// A real server, `ubiquity serve`, in the stage's folder.
@MainActor
final class StageServer {
    private let folder: String
    private let process = Process()
    /// The server ends when this is closed: with this program, however that ends.
    private let input = Pipe()
    private(set) var port = 0

    private static var current: StageServer?

    /// Returns when it takes requests.
    init(in folder: String) async throws {
        self.folder = folder
        Self.current = self
        atexit { MainActor.assumeIsolated { StageServer.current?.end() } }
        let output = Pipe()
        process.standardInput = input
        try run(
            process,
            ["serve", "--port", "0", "--data", data, "--json", "--log-level", "error"]
                + ["--end-with-input"],
            output: output)
        port = try await Self.answer(Ready.self, from: output).port
    }

    /// A one-time code for a device to sign in by.
    /// - Parameter isFirst: Whether the account is to be made.
    func newCode(isFirst: Bool) async throws -> String {
        let (command, output) = (Process(), Pipe())
        command.standardInput = FileHandle.nullDevice
        try run(
            command, ["account", isFirst ? "create" : "code", "ada", "--data", data, "--json"],
            output: output)
        return try await Self.answer(Code.self, from: output).code
    }

    private struct Ready: Decodable { var port: Int }
    private struct Code: Decodable { var code: String }

    private var data: String { folder + "/server" }

    private func end() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        StageFolder.remove()
    }

    private func run(_ process: Process, _ arguments: [String], output: Pipe) throws {
        let own = URL(fileURLWithPath: Bundle.main.executablePath ?? CommandLine.arguments[0])
        let program = own.deletingLastPathComponent().appendingPathComponent("ubiquity")
        guard FileManager.default.isExecutableFile(atPath: program.path) else {
            throw StageTrouble("the program ubiquity is not built: `make example` does it")
        }
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("UBIQUITY_") }
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    /// What a command prints as its first line.
    @concurrent private static func answer<Answer: Decodable & Sendable>(
        _ type: Answer.Type, from output: Pipe
    ) async throws -> Answer {
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let more = output.fileHandleForReading.availableData
            guard !more.isEmpty else { throw StageTrouble("the server did not start") }
            line += more
        }
        return try JSONDecoder().decode(Answer.self, from: line)
    }
}

/// Why the stage cannot be set, one sentence.
struct StageTrouble: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
