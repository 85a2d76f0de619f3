// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A process that was started on a ``Stage``. Its output goes to a file, so that it never waits for a
/// reader, unless there is a pipe for it.
package struct ChildProcess: Sendable {
    private let process: SpawnedProcess
    private let command: [String]
    package let outputPath: String
    private let errorsPath: String
    private let pipes: [Pipe]

    /// - Parameter environment: The child's variables besides those that it inherits, which are
    ///   all of this process except the ones about stores.
    init(
        _ command: [String], environment: [String: String], input: Pipe?, output: Pipe?,
        outputPath: String, errorsPath: String
    ) throws {
        (self.command, self.outputPath, self.errorsPath) = (command, outputPath, errorsPath)
        pipes = [input, output].compactMap(\.self)
        // A library loaded before all others may change the environment, behind which Swift looks for
        // the arguments: another program must deal with that.
        let command = environment["LD_PRELOAD"] == nil ? command : ["/usr/bin/env"] + command
        let files = try [outputPath, errorsPath].map(Self.newFile)
        defer {
            // The child has its own.
            for file in files + [input?.fileHandleForReading, output?.fileHandleForWriting] {
                try? file?.close()
            }
        }
        process = try SpawnedProcess(
            command,
            environment: ProcessInfo.processInfo.environment
                .filter { !$0.key.hasPrefix("UBIQUITY_") }
                .merging(environment) { $1 },
            files: (
                input?.fileHandleForReading.fileDescriptor,
                (output?.fileHandleForWriting ?? files[0]).fileDescriptor,
                files[1].fileDescriptor
            ))
    }

    private static func newFile(_ path: String) throws -> FileHandle {
        try Data().write(to: URL(fileURLWithPath: path))
        return try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    }

    /// The output so far, if it goes to a file.
    package var output: String { Self.text(outputPath) }
    package var errors: String { Self.text(errorsPath) }
    package var isRunning: Bool { process.status == nil }
    package var processID: Int32 { process.id }
    /// The exit status, or the number of the signal, of a process that has ended.
    package var status: Int32 { process.status ?? -1 }

    /// The end of its errors.
    package var lastWords: String {
        String(errors.suffix(400)).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    package func signal(_ number: Int32) { process.signal(number) }

    /// `kill -9`.
    package func kill() { signal(SIGKILL) }

    /// Waits for the end.
    /// - Returns: The exit status.
    /// - Throws: ``Trouble`` with what the process said last, if it hangs; it is then killed.
    @discardableResult
    package func exit() async throws -> Int32 {
        do {
            try await wait(for: "the end of \(command)") { !isRunning }
        } catch {
            kill()
            throw Trouble("\(error); it said last: \((output + errors).suffix(4_000))")
        }
        return status
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
