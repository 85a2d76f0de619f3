// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The demo's own folder and processes. Nothing of them is left, however the demo ends.
///
/// Shared state: `children`, guarded by a mutex, because the story starts processes, and whatever
/// ends the program ends them.
final class DemoStage: Sendable {
    let folder: String
    private let children = Mutex<[Process]>([])

    init() throws {
        let template = NSTemporaryDirectory() + "/ubiquity-demo-XXXXXX"
        var path = Array(template.replacing("//", with: "/").utf8CString)
        guard mkdtemp(&path) != nil else {
            throw Failure(.cannotCreate, "no temporary folder: \(String(cString: strerror(errno)))")
        }
        folder = String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        Self.current.withLock { $0 = self }
        // Also runs if the output's reader has gone and the program ends in the middle of a line.
        atexit { DemoStage.current.withLock(\.self)?.clean() }
    }

    private static let current = Mutex<DemoStage?>(nil)

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    /// Starts this program with other arguments, without the environment's settings for stores.
    func start(
        _ arguments: [String], input: Pipe? = nil, output: Pipe, errors: FileHandle
    ) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try Self.program())
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("UBIQUITY_") }
        process.standardInput = input ?? FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        children.withLock { $0.append(process) }
        return process
    }

    private static func program() throws -> String {
        guard let path = Bundle.main.executablePath else {
            throw Failure(.system, "the program does not find its own file")
        }
        return path
    }

    /// Ends all processes and removes the folder. May be called again.
    func clean() {
        let children = children.withLock { children in
            defer { children = [] }
            return children
        }
        for child in children where child.isRunning { kill(child.processIdentifier, SIGKILL) }
        for child in children { child.waitUntilExit() }
        try? FileManager.default.removeItem(atPath: folder)
    }
}

extension DemoStage {
    /// Runs a command of this program to completion.
    /// - Returns: The output, without the final line break.
    /// - Throws: ``Failure`` with the error output, if the status is not 0 or there is any such
    ///   output.
    @concurrent func run(_ arguments: String...) async throws -> String {
        let (output, errors) = (Pipe(), Pipe())
        let process = try start(
            arguments, output: output, errors: errors.fileHandleForWriting)
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        try errors.fileHandleForWriting.close()
        let complaint = try errors.fileHandleForReading.readToEnd() ?? Data()
        guard process.terminationStatus == 0, complaint.isEmpty else {
            throw Failure(
                .no,
                "`ubiquity \(arguments.joined(separator: " "))`: "
                    + String(decoding: complaint, as: UTF8.self).trimmed)
        }
        return String(decoding: text, as: UTF8.self).trimmed
    }
}

extension String {
    var trimmed: String { trimmingCharacters(in: .newlines) }
}
