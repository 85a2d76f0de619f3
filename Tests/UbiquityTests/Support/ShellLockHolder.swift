// SPDX-License-Identifier: Apache-2.0

#if os(Linux)

import Foundation
import ProcessHarness

/// Another process that holds a lock by `flock(1)`, until it is killed.
final class ShellLockHolder {
    private let stage: Stage

    /// Returns when the lock is held.
    init(_ path: String) throws {
        stage = try Stage("lock")
        let output = Pipe()
        // exec: the killed process must be the one that has the file open.
        let script = "exec 9>>\"$0\"; flock -x 9; echo held; exec tail -f /dev/null"
        _ = try stage.start(
            ["-c", script, path], program: ProgramFile(path: "/bin/sh"), output: output)
        _ = output.fileHandleForReading.availableData
    }

    /// With the signal that no process can answer.
    func kill() { stage.end() }
}

#endif
