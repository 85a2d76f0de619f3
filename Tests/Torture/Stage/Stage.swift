// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The torture's folder and processes.
///
/// Shared state, guarded by one mutex: the processes that run, and whether the curtain has fallen,
/// after which none may be started; for tasks start them, and a signal ends them all.
final class Stage: Sendable {
    private struct State {
        var children: [Int32: ChildProcess] = [:]
        var started = 0
        var isOver = false
    }

    let folder: String
    private let state = Mutex(State())

    /// - Parameter folder: Is made.
    init(folder: String) throws {
        self.folder = folder
        try FileManager.default.createDirectory(
            atPath: folder + "/errors", withIntermediateDirectories: true)
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    func start(
        _ program: ProgramFile, _ arguments: [String], environment: [String: String] = [:]
    ) throws -> ChildProcess {
        try state.withLock { state in
            guard !state.isOver else { throw CancellationError() }
            state.started += 1
            let child = try ChildProcess(
                program, arguments, errors: path("errors/\(state.started)"),
                environment: environment)
            state.children = state.children.filter { $0.value.isRunning }
            state.children[child.number] = child
            return child
        }
    }

    /// Kills all processes, waits for their end, and lets none be started.
    func end() {
        let children = state.withLock { state in
            state.isOver = true
            return state.children.values
        }
        for child in children { child.kill() }
        for child in children {
            for _ in 0..<1_000 where child.isRunning { usleep(10_000) }
        }
    }

    func removeFolder() { try? FileManager.default.removeItem(atPath: folder) }
}
