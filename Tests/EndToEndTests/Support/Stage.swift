// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// A test's own folder and processes. However the test ends, nothing of them is left.
///
/// Shared state, guarded by a mutex each: `children`, for processes are started by several tasks;
/// `filesMade`, which gives each of them files of its own.
final class Stage: Sendable {
    let folder: String
    private let children = Mutex<[Child]>([])
    private let filesMade = Mutex(0)

    init() throws {
        folder = NSTemporaryDirectory() + "ubiquity-end-to-end-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    /// Starts a program, without what the environment says of stores.
    /// - Parameter megabytesMax: The memory that the system allows it; nil for no limit.
    func start(
        _ arguments: [String], input: Pipe? = nil, program: ProgramFile = .ubiquity,
        megabytesMax: Int? = nil
    ) throws -> Child {
        let file = try program.path()
        let limited = megabytesMax.map {
            ["-c", "ulimit -d \($0 << 10); exec \"$0\" \"$@\"", file] + arguments
        }
        let number = filesMade.withLock { count in
            count += 1
            return count
        }
        let child = try Child(
            program: limited == nil ? file : "/bin/sh", limited ?? arguments, in: folder,
            input: input,
            output: path("output-\(number)"), errors: path("errors-\(number)"))
        children.withLock { $0.append(child) }
        return child
    }

    func start(_ arguments: String...) throws -> Child { try start(arguments) }

    /// Runs a command to its end.
    func run(_ arguments: [String], megabytesMax: Int? = nil) async throws -> ProgramRun {
        let child = try start(arguments, megabytesMax: megabytesMax)
        let status = try await child.exit()
        return ProgramRun(status: status, output: child.output, errors: child.errors)
    }

    func run(_ arguments: String...) async throws -> ProgramRun { try await run(arguments) }

    /// Runs a command that must succeed.
    /// - Returns: What it printed.
    @discardableResult
    func succeed(_ arguments: String...) async throws -> String {
        let run = try await run(arguments)
        guard run.status == 0 else {
            throw Trouble(
                "`ubiquity \(arguments.joined(separator: " "))` ended with \(run.status): "
                    + run.errors)
        }
        return run.output
    }

    deinit {
        let children = children.withLock(\.self)
        for child in children { child.kill() }
        try? FileManager.default.removeItem(atPath: folder)
    }
}

/// Runs a test on a stage, which lives until its end.
func onStage(_ body: (Stage) async throws -> Void) async throws {
    let stage = try Stage()
    defer { withExtendedLifetime(stage) {} }
    try await body(stage)
}
