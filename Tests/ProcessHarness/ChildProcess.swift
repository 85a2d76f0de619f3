// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A process that was started on a ``Stage``. Its output goes to a file, so that it never waits for a
/// reader, unless there is a pipe for it.
package struct ChildProcess: Sendable {
    private let process: Process
    package let outputPath: String
    private let errorsPath: String
    private let pipes: [Pipe]

    /// Foundation's `Process.run` reads beyond a page, and traps, where this process has more than some
    /// 1,300 open files: a test of many connections has them for a moment.
    private static func waitForFewFiles() {
        let deadline = ContinuousClock.now + .seconds(300)
        while ContinuousClock.now < deadline {
            let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            guard let open, open > 1_000 else { return }
            usleep(20_000)
        }
    }

    /// - Parameter environment: The child's variables besides those that it inherits, which are
    ///   all of this process except the ones about stores.
    init(
        _ command: [String], environment: [String: String], input: Pipe?, output: Pipe?,
        outputPath: String, errorsPath: String
    ) throws {
        process = Process()
        (self.outputPath, self.errorsPath) = (outputPath, errorsPath)
        pipes = [input, output].compactMap(\.self)
        // A library loaded before all others may change the environment, behind which Swift looks for
        // the arguments: another program must deal with that.
        let command = environment["LD_PRELOAD"] == nil ? command : ["/usr/bin/env"] + command
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("UBIQUITY_") }
            .merging(environment) { $1 }
        process.standardInput = input ?? FileHandle.nullDevice
        let files = try [outputPath, errorsPath].map(Self.newFile)
        process.standardOutput = output ?? files[0]
        process.standardError = files[1]
        Self.waitForFewFiles()
        try process.run()
        // The child has its own. Foundation would keep these open, and cannot handle more than 1,024.
        for file in files { try? file.close() }
    }

    private static func newFile(_ path: String) throws -> FileHandle {
        try Data().write(to: URL(fileURLWithPath: path))
        return try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    }

    /// The output so far, if it goes to a file.
    package var output: String { Self.text(outputPath) }
    package var errors: String { Self.text(errorsPath) }
    package var isRunning: Bool { process.isRunning }
    package var processID: Int32 { process.processIdentifier }
    /// The exit status of a process that has ended.
    package var status: Int32 { process.terminationStatus }

    /// The end of its errors.
    package var lastWords: String {
        String(errors.suffix(400)).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    package func signal(_ number: Int32) {
        if process.isRunning { Foundation.kill(process.processIdentifier, number) }
    }

    /// `kill -9`.
    package func kill() { signal(SIGKILL) }

    /// Waits for the end.
    /// - Returns: The exit status.
    /// - Throws: ``Trouble`` if the process hangs; it is then killed.
    @discardableResult
    package func exit() async throws -> Int32 {
        do {
            try await wait(for: "the end of \(process.arguments ?? [])") { !process.isRunning }
        } catch {
            kill()
            throw error
        }
        return process.terminationStatus
    }

    /// Waits for five minutes at most. The limit guards against hanging, and does not test speed.
    func wait(for what: String, _ condition: () throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(300)
        while try !condition() {
            guard .now < deadline else { throw Trouble("\(what) never came") }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Closes its pipes and removes its files, when nobody needs its output any more.
    package func forget() {
        try? pipes.first?.fileHandleForWriting.close()
        try? pipes.last?.fileHandleForReading.close()
        for path in [outputPath, errorsPath] { try? FileManager.default.removeItem(atPath: path) }
    }

    private static func text(_ path: String) -> String {
        (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }
}
