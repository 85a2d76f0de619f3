// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import UbiquityTestWorker

/// An app without a screen, in a process of its own; see `Worker`. It ends with the tests' process,
/// however that ends.
///
/// Shared state: `log`, what it printed, guarded by a mutex: several tasks of a test may look.
final class WorkerProcess: Sendable {
    private struct Log {
        var file: FileHandle
        /// The beginning of a line that is not complete.
        var rest = Data()
        var messages: [WorkerMessage] = []
    }

    private let child: ChildProcess
    private let input: Pipe
    private let log: Mutex<Log>

    /// Starts it; it is not ready yet.
    init(_ stage: Stage, home: String, options: [String] = []) throws {
        // A worker that died is to be an error of the next command, not the end of the tests.
        signal(SIGPIPE, SIG_IGN)
        input = Pipe()
        child = try stage.start(
            ["--home", home, "--store", Device.identifier] + options, program: .worker,
            input: input)
        log = Mutex(
            Log(file: try FileHandle(forReadingFrom: URL(fileURLWithPath: child.outputPath))))
    }

    static func ready(
        _ stage: Stage, home: String, options: [String] = []
    ) async throws -> WorkerProcess {
        let worker = try WorkerProcess(stage, home: home, options: options)
        try await worker.isReady()
        return worker
    }

    /// Returns when it has opened the store.
    func isReady() async throws { _ = try await answer(number: 0) }

    var processID: Int32 { child.processID }

    // MARK: - What it printed

    /// All so far; a line that a kill cut off is none.
    func messages() throws -> [WorkerMessage] {
        try log.withLock { log in
            log.rest += try log.file.readToEnd() ?? Data()
            while let end = log.rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = log.rest[..<end]
                log.messages.append(try JSONDecoder().decode(WorkerMessage.self, from: line))
                log.rest = log.rest[log.rest.index(after: end)...]
            }
            return log.messages
        }
    }

    func notices() throws -> [WorkerMessage.Notice] {
        try messages().compactMap { if case .noticed(let notice) = $0 { notice } else { nil } }
    }

    /// Waits for the change of a key, to nil where it is gone.
    /// - Returns: When its observer was called, in ``MonotonicTime``.
    func arrival(of text: String?, forKey key: String) async throws -> UInt64 {
        var arrival: UInt64?
        try await until("the arrival of \(text ?? "nothing") for \(key)") {
            try mustRun()
            arrival = try notices().last { $0.keys.contains(key) && $0.values[key] == text }?.at
            return arrival != nil
        }
        return arrival ?? 0
    }

    private func answers() throws -> [WorkerMessage] {
        try messages().filter { if case .noticed = $0 { false } else { true } }
    }

    private func answer(number: Int) async throws -> WorkerMessage {
        try await until("the worker's answer") {
            try mustRun()
            return try answers().count > number
        }
        return try answers()[number]
    }

    /// - Throws: ``Trouble``, with what it said last, if it ended by itself.
    func mustRun() throws {
        if !child.isRunning { throw Trouble("the worker ended: \(child.errors)") }
    }

    // MARK: - What it is told

    /// Sends a command, and does not wait.
    func send(_ command: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
    }

    func ask(_ command: String) async throws -> WorkerMessage {
        let number = try answers().count
        try send(command)
        return try await answer(number: number)
    }

    /// - Returns: When the write was begun, in ``MonotonicTime``.
    func set(_ text: String, forKey key: String) async throws -> UInt64 {
        guard case .wrote(let time) = try await ask("set \(key) \(text)") else {
            throw Trouble("`set` was answered with something else")
        }
        return time
    }

    func values() async throws -> [String: String] {
        guard case .values(let values) = try await ask("values") else {
            throw Trouble("`values` was answered with something else")
        }
        return values
    }

    func status() async throws -> WorkerMessage.Status {
        guard case .status(let status) = try await ask("status") else {
            throw Trouble("`status` was answered with something else")
        }
        return status
    }

    func send(signal number: Int32) throws {
        try mustRun()
        child.signal(number)
    }

    // MARK: - Its end

    /// `kill -9`.
    func kill() async throws {
        child.kill()
        try await child.exit()
    }

    /// Ends it cleanly.
    func end() async throws {
        try input.fileHandleForWriting.close()
        let status = try await child.exit()
        if status != 0 { throw Trouble("the worker ended with \(status): \(child.errors)") }
    }
}
