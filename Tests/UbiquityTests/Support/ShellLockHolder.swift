// SPDX-License-Identifier: Apache-2.0

#if os(Linux)

import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Another process that holds a lock by `flock(1)`, until it is killed.
final class ShellLockHolder {
    private let process = Process()

    /// Returns when the lock is held.
    init(_ path: String) throws {
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        // exec: the killed process must be the one that has the file open.
        process.arguments = [
            "-c", "exec 9>>\"$0\"; flock -x 9; echo held; exec tail -f /dev/null", path,
        ]
        process.standardOutput = output
        try process.run()
        _ = output.fileHandleForReading.availableData
    }

    deinit { kill() }

    /// With the signal that no process can answer.
    func kill() {
        guard process.isRunning else { return }
        _ = sendSignal(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}

/// The system's `kill`, which the method hides.
private func sendSignal(_ process: pid_t, _ signal: Int32) -> Int32 { kill(process, signal) }

#endif
