// SPDX-License-Identifier: Apache-2.0

package import Foundation
internal import Synchronization

/// A folder of its own and the processes that were started in it. Both go with it, unless
/// ``keepFolder()`` was called.
///
/// Shared state, guarded by one mutex: the processes, the number of files made for them, and whether it
/// is over, after which no process may be started. Several tasks start processes, and a signal ends them
/// all.
package final class Stage: Sendable {
    private struct State {
        var children: [ChildProcess] = []
        var started = 0
        var isOver = false
        var keepsFolder = false
    }

    package let folder: String
    private let environment: [String: String]
    private let state = Mutex(State())

    /// - Parameters:
    ///   - name: A word of the new folder's name.
    ///   - parent: The folder in which it is made.
    ///   - environment: Variables for all processes.
    package convenience init(
        _ name: String, in parent: String = NSTemporaryDirectory(),
        environment: (_ folder: String) -> [String: String] = { _ in [:] }
    ) throws {
        let template = "\(parent)/ubiquity-\(name)-XXXXXX".replacing("//", with: "/")
        var path = Array(template.utf8CString)
        guard mkdtemp(&path) != nil else { throw Trouble.system("no folder in \(parent)") }
        let folder = String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        try self.init(folder: folder, environment: environment(folder))
    }

    /// - Parameter folder: Is made, if it does not exist.
    package init(folder: String, environment: [String: String] = [:]) throws {
        (self.folder, self.environment) = (folder, environment)
        try FileManager.default.createDirectory(
            atPath: folder + "/processes", withIntermediateDirectories: true)
    }

    deinit { clean() }

    package func path(_ name: String) -> String { "\(folder)/\(name)" }

    // MARK: - Processes

    /// Starts a program, without the environment's settings for stores.
    /// - Parameters:
    ///   - megabytesMax: The memory that the system allows it; nil for no limit.
    /// - Throws: ``Trouble``, and `CancellationError` after ``end()``.
    package func start(
        _ arguments: [String], program: ProgramFile = .ubiquity, input: Pipe? = nil,
        output: Pipe? = nil, environment: [String: String] = [:], megabytesMax: Int? = nil
    ) throws -> ChildProcess {
        let limit = megabytesMax.map {
            ["/bin/sh", "-c", "ulimit -d \($0 << 10); exec \"$0\" \"$@\""]
        }
        let command = (limit ?? []) + [try program.path()] + arguments
        return try state.withLock { state in
            guard !state.isOver else { throw CancellationError() }
            state.started += 1
            let child = try ChildProcess(
                command, environment: self.environment.merging(environment) { $1 }, input: input,
                output: output, outputPath: path("processes/\(state.started).output"),
                errorsPath: path("processes/\(state.started).errors"))
            state.children.removeAll { !$0.isRunning }
            state.children.append(child)
            return child
        }
    }

    /// Runs a program to its end.
    package func run(
        _ arguments: [String], program: ProgramFile = .ubiquity,
        environment: [String: String] = [:],
        megabytesMax: Int? = nil
    ) async throws -> ProgramRun {
        let child = try start(
            arguments, program: program, environment: environment, megabytesMax: megabytesMax)
        let status = try await child.exit()
        return ProgramRun(status: status, output: child.output, errors: child.errors)
    }

    package func run(_ arguments: String...) async throws -> ProgramRun { try await run(arguments) }

    /// Runs a command of `ubiquity` that must succeed.
    /// - Returns: Its output.
    @discardableResult
    package func succeed(
        _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> String {
        let run = try await run(arguments, environment: environment)
        guard run.status == 0 else {
            throw Trouble(
                "`ubiquity \(arguments.joined(separator: " "))` ended with \(run.status): "
                    + run.errors)
        }
        return run.output
    }

    @discardableResult
    package func succeed(_ arguments: String...) async throws -> String {
        try await succeed(arguments)
    }

    // MARK: - The end

    /// Kills all processes, waits for their end, and lets none be started.
    package func end() {
        let children = state.withLock { state in
            state.isOver = true
            return state.children
        }
        for child in children { child.kill() }
        for child in children {
            for _ in 0..<1_000 where child.isRunning { usleep(10_000) }
        }
    }

    /// Leaves the folder where it is.
    package func keepFolder() { state.withLock { $0.keepsFolder = true } }

    /// Ends all processes and removes the folder. Can be called repeatedly.
    package func clean() {
        end()
        if !state.withLock(\.keepsFolder) { try? FileManager.default.removeItem(atPath: folder) }
    }

    /// Cleans up when this process exits, too. For one stage of a process: a second one replaces the
    /// first.
    package func cleanAtExit() {
        Self.current.withLock { $0 = self }
        atexit { Stage.current.withLock(\.self)?.clean() }
    }

    private static let current = Mutex<Stage?>(nil)
}

/// The result of a command.
package struct ProgramRun: Sendable {
    package var status: Int32
    package var output: String
    package var errors: String
}
