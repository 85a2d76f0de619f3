// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A process that the torture started. It ends with its input, and so with the torture.
struct ChildProcess: Sendable {
    private let process: Process
    let input: Pipe
    let output: Pipe
    private let errorsPath: String

    /// - Parameter environment: What the child has besides this process's, without what that says of
    ///   stores.
    init(
        _ program: ProgramFile, _ arguments: [String], errors: String,
        environment: [String: String] = [:]
    ) throws {
        process = Process()
        (input, output) = (Pipe(), Pipe())
        errorsPath = errors
        // A library loaded before all others may change the environment, behind which Swift looks for
        // the arguments: that is for another program to bear.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [try program.path()] + arguments
        process.environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("UBIQUITY_") }
            .merging(environment) { $1 }
        process.standardInput = input
        process.standardOutput = output
        _ = FileManager.default.createFile(atPath: errors, contents: nil)
        let errorsFile = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
        process.standardError = errorsFile
        try process.run()
        // The child has its own. Foundation would keep this one, and cannot count to more than 1,024.
        try? errorsFile.close()
    }

    var isRunning: Bool { process.isRunning }
    var number: Int32 { process.processIdentifier }
    /// Of one that has ended.
    var status: Int32 { process.terminationStatus }

    /// `kill -9`: as if the machine had lost its power.
    func kill() { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

    /// Lets it go on, or not.
    func stop(_ isStopped: Bool) {
        if process.isRunning {
            Foundation.kill(process.processIdentifier, isStopped ? SIGSTOP : SIGCONT)
        }
    }

    func endInput() { try? input.fileHandleForWriting.close() }

    /// What it wrote last on its standard error.
    var lastWords: String {
        let text = (try? String(contentsOfFile: errorsPath, encoding: .utf8)) ?? ""
        return String(text.suffix(400)).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Where nobody wants to know any more what it said.
    func forget() {
        try? input.fileHandleForWriting.close()
        try? output.fileHandleForReading.close()
        try? FileManager.default.removeItem(atPath: errorsPath)
    }
}
