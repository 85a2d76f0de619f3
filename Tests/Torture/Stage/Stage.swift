// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The torture's folder and processes.
///
/// Shared state, guarded by one mutex: the processes that run, the disks that are mounted, and whether
/// the curtain has fallen, after which no process may be started; for tasks start them, and a signal
/// ends them all.
final class Stage: Sendable {
    private struct State {
        var children: [Int32: ChildProcess] = [:]
        var started = 0
        var disks: [SmallDisk] = []
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

    /// A disk of its own for a folder of the stage's.
    func mountSmallDisk(_ name: String) throws -> SmallDisk {
        let folder = path(name)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let disk = try SmallDisk(mountingAt: folder)
        state.withLock { $0.disks.append(disk) }
        return disk
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

    /// Leaves nothing behind. All processes must have ended.
    func removeFolder() {
        for disk in state.withLock(\.disks) { disk.unmount() }
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// The small disks go with this process; what is on them shall not.
    func keepDisks() {
        for disk in state.withLock(\.disks) { disk.copy(to: disk.folder + "-kept") }
    }
}
