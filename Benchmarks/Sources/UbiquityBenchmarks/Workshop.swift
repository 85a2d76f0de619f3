// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The run's own folder and processes. However the run ends, nothing of them is left.
///
/// Shared state: `children`, guarded by a mutex, since a signal or the time limit ends them from
/// another thread.
final class Workshop: Sendable {
    let folder: String
    private let children = Mutex<[Process]>([])

    /// - Parameter parent: Where the folder is made; its disk is the one that is measured.
    init(in parent: String) throws {
        var path = Array("\(parent)/ubiquity-benchmarks-XXXXXX".utf8CString)
        guard mkdtemp(&path) != nil else { throw Failure.system("no folder in \(parent)") }
        folder = String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

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

    /// Starts a program of the build folder. It ends when its input does, so with this process.
    func start(_ program: Program, _ arguments: [String]) throws -> Child {
        let process = Process()
        let child = Child(process: process)
        process.executableURL = try program.url
        process.arguments = arguments
        process.environment = environment
        process.standardInput = child.input
        process.standardOutput = child.output
        try process.run()
        children.withLock { $0.append(process) }
        return child
    }

    /// Runs a command of `ubiquity` to its end.
    /// - Returns: What it printed, as JSON.
    func run<Answer: Decodable>(_ arguments: [String], giving: Answer.Type) throws -> Answer {
        var child = try start(.ubiquity, arguments + ["--json"])
        let line = try child.lines.next(seconds: 30)
        child.process.waitUntilExit()
        return try JSONDecoder().decode(Answer.self, from: Data(line.utf8))
    }

    /// Without what it says of stores, and with a home that is thrown away.
    private var environment: [String: String] {
        var environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("UBIQUITY_") }
        for variable in ["HOME", "CFFIXED_USER_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            environment[variable] = folder
        }
        return environment
    }
}

enum Program: String {
    case ubiquity
    case benchmarks = "ubiquity-benchmarks"

    /// Beside this program: one build makes both.
    fileprivate var url: URL {
        get throws {
            guard let path = Bundle.main.executablePath else {
                throw Failure("the program does not find its own file")
            }
            return URL(fileURLWithPath: path).deletingLastPathComponent()
                .appendingPathComponent(rawValue)
        }
    }
}

struct Child {
    let process: Process
    let input = Pipe()
    let output = Pipe()
    var lines: LineReader

    fileprivate init(process: Process) {
        self.process = process
        lines = LineReader(output.fileHandleForReading)
    }

    /// Ends it in good order.
    func end() {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }
}
