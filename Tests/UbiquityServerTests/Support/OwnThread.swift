// SPDX-License-Identifier: Apache-2.0

internal import Dispatch

/// Runs tests that block one after the other on a thread of their own: the concurrent tests share two
/// threads on a small machine, and their servers' answers would wait.
@globalActor
actor OwnThread {
    static let shared = OwnThread()
    private static let executor = QueueExecutor()

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        Self.executor.asUnownedSerialExecutor()
    }
}

private final class QueueExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "tests that block")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
