// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation

/// A process that a test started. What it prints goes to files, so that it never waits for a
/// reader.
struct Child: Sendable {
    private let process: Process
    let outputPath: String
    private let errorsPath: String

    /// - Parameter folder: Where preferences lie, so that none of them outlives the test.
    init(
        program: String, _ arguments: [String], in folder: String, input: Pipe?, output: String,
        errors: String
    ) throws {
        process = Process()
        (outputPath, errorsPath) = (output, errors)
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("UBIQUITY_") }
        process.environment?["XDG_CONFIG_HOME"] = folder
        process.standardInput = input ?? FileHandle.nullDevice
        process.standardOutput = try Self.newFile(output)
        process.standardError = try Self.newFile(errors)
        try process.run()
    }

    var output: String { Self.text(outputPath) }
    var errors: String { Self.text(errorsPath) }
    var isRunning: Bool { process.isRunning }
    var number: Int32 { process.processIdentifier }

    func signal(_ number: Int32) {
        if process.isRunning { Foundation.kill(process.processIdentifier, number) }
    }

    /// As if the machine had lost its power.
    func kill() { signal(SIGKILL) }

    /// - Returns: The exit status.
    /// - Throws: ``Trouble`` if the process hangs; it is then killed.
    @discardableResult
    func exit() async throws -> Int32 {
        do {
            try await until("the end of \(process.arguments ?? [])") { !process.isRunning }
        } catch {
            kill()
            throw error
        }
        return process.terminationStatus
    }

    private static func newFile(_ path: String) throws -> FileHandle {
        try Data().write(to: URL(fileURLWithPath: path))
        return try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    }

    private static func text(_ path: String) -> String {
        (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }
}
